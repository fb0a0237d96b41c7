"""perftest in a lab's hosts over links that lose.

All commands of a module share a lab. Nothing is said of rates: the machine's own load decides them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from verbs_programs import FEW, PERFTEST, START_S, exec_in, perftest_lab, run_pair, weft_exec
from weft.run.fabric import Fabric
from weft.scenario import FaultsSection

pytestmark = PERFTEST
COMMANDS = [
    f"ib_write_bw -s 4096 {FEW}",
    f"ib_read_bw -s 4096 {FEW}",
    f"ib_send_bw -s 4096 {FEW}",
    f"ib_atomic_bw {FEW}",
    # Nobody waits for what unreliable queue pairs lose here: writes complete when they are sent, and a server of a
    # duration ends by the clock.
    "ib_write_bw -s 4096 -c UC -n 500 -F",
    "ib_write_bw -s 512 -c UC -n 500 -q 4 -b -F",
    "ib_send_bw -s 512 -c UC -D 2 -F",
    "ib_send_bw -s 512 -c UD -D 2 -F",
    "ib_send_bw -s 512 -c UD -b -D 2 -F",
]
# A server of these counts messages, and waits for those that were lost, as with adapters.
WAITS_FOR_ALL = ["ib_send_bw -s 512 -c UD -n 2000 -F", "ib_send_bw -s 512 -c UC -n 2000 -F"]


@pytest.fixture(scope="module")
def lab() -> Iterator[Fabric]:
    with perftest_lab(faults=FaultsSection(loss=0.01)) as fabric:
        yield fabric


@pytest.mark.parametrize("command", COMMANDS)
def test_it_completes(lab: Fabric, tmp_path: Path, command: str) -> None:
    assert run_pair(lab, tmp_path, command) == ""


@pytest.mark.parametrize("command", WAITS_FOR_ALL)
def test_only_the_sender_ends(lab: Fabric, command: str) -> None:
    address = str(lab.lab.fabric.hosts[0].nics[0].ipv4.ip)
    with subprocess.Popen(exec_in("h0", command), stdout=subprocess.DEVNULL) as server:
        try:
            sender = weft_exec("h1", f"for i in $(seq 10); do {command} {address} && exit 0; sleep 0.2; done; exit 1")
            assert sender.returncode == 0, sender.stdout + sender.stderr
            with pytest.raises(subprocess.TimeoutExpired):
                server.wait(START_S)
        finally:
            server.kill()
