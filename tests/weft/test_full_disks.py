"""What cannot be written is an error that names the file and why, whatever it is: results, captures, tables, output.

A limit on the size of files stands for a full disk: a write beyond it fails, as on a disk without space.
"""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.full_disk import WITHOUT_BYTECODE, files_limited_to
from tests.refusals import refused
from weft import topologies
from weft.clocks.real.lab_files import write_whole
from weft.errors import EnvironmentLacksError
from weft.paths import FABRIC_P4
from weft.run.fabric import Fabric
from weft.system.writing import written_whole

SCENARIO = """
name: full
clock: virtual
fabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 2}
traffic:
  - {permutation: 400K}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def weft(
    *arguments: object, file_bytes: int | None = None, stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess:
    """Run the command with files limited to `file_bytes`; return the finished process."""
    # A preexec_fn would fork this process, whose threads of gRPC do not survive that.
    limit = [] if file_bytes is None else ["prlimit", f"--fsize={file_bytes}"]
    return subprocess.run(
        [*limit, sys.executable, "-m", "weft", *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=os.environ | WITHOUT_BYTECODE,
    )


# More than any file that a run makes besides captures (machine code in the cache; there may be none yet).
ENOUGH_BYTES = 16 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize("of_switches", [False, True])
def test_a_capture_without_room_fails_the_run_and_keeps_its_results(scenario, tmp_path, of_switches):
    large = scenario.with_name("large.yaml")
    large.write_text(SCENARIO.replace("400K", "20M"), encoding="utf-8")
    arguments = ["--pcap-switch", "all"] if of_switches else []
    done = weft(
        *("run", large, "--out", tmp_path / "out", "--pcap", tmp_path / "pcap", *arguments),
        file_bytes=ENOUGH_BYTES,
    )
    assert done.returncode == 4, done.stderr
    assert f"capture file '{tmp_path}/pcap/h0-plane0.pcap' is incomplete: File too large" in done.stderr
    assert ("p0l0-eth1.pcap" in done.stderr) == of_switches
    assert "Traceback" not in done.stderr
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["ok"]
    assert len(results["incomplete_captures"]) == (4 if of_switches else 2)


def test_files_that_a_lab_writes_for_its_user_are_named(tmp_path):
    path = tmp_path / "logs" / "s1-p4runtime-requests.txt"
    path.parent.mkdir()
    with (
        files_limited_to(10),
        pytest.raises(EnvironmentLacksError, match=f"{path} cannot be written: File too"),
    ):
        write_whole(path, bytes(100))


def test_leaving_a_fabric_reports_an_incomplete_capture(tmp_path):
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)

    def captured() -> None:
        with Fabric(topology, clock="virtual") as fabric:
            fabric.capture("h0", 0, tmp_path / "h0.pcap")
            limits.enter_context(files_limited_to(20_000))
            fabric.permutation(400_000)

    with (
        contextlib.ExitStack() as limits,
        pytest.raises(EnvironmentLacksError, match=r"h0\.pcap' is incomplete: File too large"),
    ):
        captured()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["run", "topology"])
def test_output_without_room_is_an_error(scenario, tmp_path, command):
    arguments = {
        "run": ("run", scenario, "--json", "--out", tmp_path / "out"),
        "topology": ("topology", "show", scenario),
    }[command]
    with open("/dev/full", "w") as full:
        done = weft(*arguments, stdout=full.fileno())
    assert done.returncode == 4
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "results.json"
    with written_whole(path) as partial:
        partial.write_text("first", encoding="utf-8")

    def fail(partial: Path) -> None:
        partial.write_text("half", encoding="utf-8")
        raise OSError(28, "No space left on device")

    with (
        refused(EnvironmentLacksError, problem="results.json cannot be written"),
        written_whole(path) as partial,
    ):
        fail(partial)
    assert path.read_text(encoding="utf-8") == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_file_is_written_to_as_it_is(tmp_path):
    """As root, replacing a device would take it from the whole machine."""
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("before", encoding="utf-8")
    link.symlink_to(target)
    with written_whole(link) as partial:
        partial.write_text("after", encoding="utf-8")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "after"
    with written_whole(Path("/dev/null")) as partial:
        assert partial == Path("/dev/null")


@pytest.mark.parametrize("suffix", [".json", ".svg", ".html", ".png"])
def test_compiled_programs_and_drawings_are_not_left_half_written(scenario, tmp_path, suffix):
    output = tmp_path / f"output{suffix}"
    if suffix == ".json":
        done = weft("compile", FABRIC_P4, "-o", output, file_bytes=1000)
    else:
        done = weft("topology", "draw", scenario, "-o", output, file_bytes=1000)
    assert done.returncode == 4, done.stderr
    assert output.name in done.stderr
    assert not output.exists()


@pytest.mark.slow
def test_results_and_tables_without_room_are_errors_that_name_them(scenario, tmp_path):
    """A few files stand for all: every writer goes through `written_whole`."""
    observed = scenario.with_name("observed.yaml")
    observed.write_text(SCENARIO + "observe: {queues: all, interval: 1us}\n", encoding="utf-8")
    assert weft("run", observed, "--out", tmp_path / "first").returncode == 0
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "first").iterdir()}
    assert sizes["queues.csv"] > sizes["results.json"] > 1000
    for name in ("results.json", "queues.csv"):
        done = weft("run", observed, "--out", tmp_path / name, file_bytes=sizes[name] - 1)
        assert done.returncode == 4
        assert "cannot be written: File too large" in done.stderr
        assert "Traceback" not in done.stderr
