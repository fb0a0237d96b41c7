"""perftest in a lab's hosts over links that lose.

All commands of a module share a lab. Nothing is said of rates: the machine's own load decides them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from verbs_programs import FEW, PERFTEST, perftest_lab, run_pair
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


@pytest.fixture(scope="module")
def lab() -> Iterator[Fabric]:
    with perftest_lab(faults=FaultsSection(loss=0.01)) as fabric:
        yield fabric


@pytest.mark.parametrize("command", COMMANDS)
def test_it_completes(lab: Fabric, tmp_path: Path, command: str) -> None:
    assert run_pair(lab, tmp_path, command) == ""
