"""Programs on `mrc.h` and `mrc_ctl.h` in a lab of MRC: WRITEs over both planes, also when one fails in the middle.

What a program checks, its data and what is refused, it has checked when it ends with 0.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.end_to_end.test_mrc_real_clock import TOPOLOGY, controller
from verbs_programs import exec_in, needs_device
from weft.run.fabric import Fabric
from weft.scenario import TransportSection
from weft.verbs import libraries

SOURCE = Path(__file__).with_name("mrc_program.c")
pytestmark = [
    needs_device,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (apt install gcc)"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled as docs/verbs.md says."""
    made = tmp_path_factory.mktemp("mrc") / "mrc_program"
    places = [f"-I{libraries.INCLUDE_DIRECTORY}", f"-L{libraries.LIBRARY_DIRECTORY}"]
    command = ["cc", "-Wall", "-Wextra", "-Werror", *places, str(SOURCE), "-o", str(made), "-lmrc", "-libverbs"]
    subprocess.run(command, check=True)
    return made


@pytest.fixture(scope="module")
def lab() -> Iterator[Fabric]:
    transport = TransportSection(protocol="mrc")
    with Fabric(TOPOLOGY, clock="real", dilation=100, int_telemetry=False, transport=transport) as fabric:
        yield fabric


class Pair:
    """The program in h0, which is written to, and in h1."""

    def __init__(self, program: Path, fabric: Fabric, *options: str) -> None:
        address = str(fabric.lab.fabric.hosts[0].nics[0].ipv4.ip)
        self.ends = [self._started("h0", str(program))]
        assert self._line(self.ends[0]) == "listening\n", self.outcome()
        self.ends.append(self._started("h1", " ".join((str(program), *options, address))))

    def _started(self, host: str, line: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = exec_in(host, f"exec {line}")
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def _line(self, end: subprocess.Popen[str]) -> str:
        assert end.stdout is not None
        return end.stdout.readline()

    def wait_until_it_runs(self) -> None:
        """The writer has WRITEs under way, and goes on until `go_on`."""
        assert self._line(self.ends[1]) == "running\n", self.outcome()

    def go_on(self) -> None:
        """Let the writer finish, some WRITEs later."""
        stdin: IO[str] | None = self.ends[1].stdin
        assert stdin is not None
        stdin.write("\n")
        stdin.flush()

    def outcome(self) -> list[tuple[int, str, str]]:
        """Return how both end and what they print."""
        outcomes = []
        for end in self.ends:
            try:
                printed, errors = end.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                end.kill()
                printed, errors = end.communicate()
                errors += "no end"
            outcomes.append((end.returncode, printed, errors))
        return outcomes


DONE = [(0, "done\n", "")] * 2


def sent_by_plane(fabric: Fabric, host: int) -> list[int]:
    return [plane["transmit"]["transmitted"]["bytes"] for plane in fabric.hosts.stats()[host]["planes"]]


def test_writes_arrive_over_both_planes(program: Path, lab: Fabric) -> None:
    before = sent_by_plane(lab, 1)
    pair = Pair(program, lab)
    pair.wait_until_it_runs()
    pair.go_on()
    assert pair.outcome() == DONE
    sent = [after - earlier for after, earlier in zip(sent_by_plane(lab, 1), before, strict=True)]
    assert min(sent) > 0.5 * max(sent)


def test_a_plane_that_fails_in_the_middle(program: Path, lab: Fabric) -> None:
    """The other one: both ends' TCP connection is in plane 0."""
    pair = Pair(program, lab)
    pair.wait_until_it_runs()
    assert controller("link", "h1-p1l1", "down").returncode == 0
    try:
        before = sent_by_plane(lab, 1)
        pair.go_on()
        assert pair.outcome() == DONE
        sent = [after - earlier for after, earlier in zip(sent_by_plane(lab, 1), before, strict=True)]
        assert sent[0] > 60 * 4096 / 2 > sent[1]
    finally:
        assert controller("link", "h1-p1l1", "up").returncode == 0


def test_a_controller_names_evs_and_disables_a_port_in_the_middle(program: Path, lab: Fabric) -> None:
    assert Pair(program, lab, "-e 5", "-d").outcome() == DONE
    assert Pair(program, lab, "-e 5", "-d").outcome() == DONE  # all has been given back
