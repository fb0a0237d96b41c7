"""perftest in a lab's hosts: every kind of request and queue pair, and through a spine that dies.

All commands of a module share a lab. Nothing is said of rates: the machine's own load decides them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from verbs_programs import FEW, PERFTEST, perftest_lab, run_pair
from weft.run.fabric import Fabric

pytestmark = PERFTEST
COMMANDS = [
    f"ib_write_bw -s 1024 {FEW}",
    f"ib_read_bw -s 1024 {FEW}",
    f"ib_send_bw -s 1024 {FEW}",
    f"ib_atomic_bw {FEW}",
    f"ib_write_lat -s 64 {FEW}",
    f"ib_read_lat -s 64 {FEW}",
    f"ib_send_lat -s 64 {FEW}",
    f"ib_atomic_lat {FEW}",
    f"ib_write_bw -s 512 -b {FEW}",
    f"ib_send_bw -s 512 -b {FEW}",
    f"ib_send_bw -s 512 -e {FEW}",
    f"ib_write_bw -s 64 -q 64 {FEW}",
    f"ib_send_bw -s 64 -q 8 --use-srq {FEW}",
    f"ib_send_bw -s 64 -I 64 {FEW}",
    f"ib_send_bw -s 512 -c UC {FEW}",
    f"ib_write_bw -s 512 -c UC {FEW}",
    f"ib_send_lat -s 64 -c UD {FEW}",
    # All sizes up to 8 MiB, each as often as perftest wants at least.
    "ib_write_bw -a -n 5 -F",
    "ib_read_bw -a -n 5 -F",
    "ib_send_bw -a -n 5 -F",
    # Both ways, over many queue pairs, waiting for events.
    f"ib_write_bw -s 4096 -q 64 -b {FEW}",
    f"ib_read_bw -s 4096 -q 64 {FEW}",
    f"ib_read_bw -s 4096 -q 16 -b -e {FEW}",
    f"ib_send_bw -s 512 -q 4 -b {FEW}",
    f"ib_send_bw -s 512 -b -e {FEW}",
    f"ib_atomic_bw -q 8 -b {FEW}",
    f"ib_write_bw -s 512 -c UC -q 8 -b {FEW}",
    f"ib_send_bw -s 512 -c UD -q 8 {FEW}",
    f"ib_send_bw -s 512 -c UD -b -e {FEW}",
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Fabric]:
    # Fast enough that the largest messages take seconds.
    with perftest_lab(dilation=20) as fabric:
        yield fabric


@pytest.mark.parametrize("command", COMMANDS)
def test_it_completes(lab: Fabric, tmp_path: Path, command: str) -> None:
    assert run_pair(lab, tmp_path, command) == ""


def test_it_completes_through_a_spine_that_dies(lab: Fabric, tmp_path: Path) -> None:
    def fail() -> None:
        lab.schedule_link("p0l0", "p0s0", "down")
        lab.schedule_link("p0l1", "p0s0", "down")

    # So many queue pairs that some go by that spine.
    assert run_pair(lab, tmp_path, "ib_write_bw -s 4096 -n 200 -q 8 -F", middle=fail) == ""
    lab.schedule_link("p0l0", "p0s0", "up")
    lab.schedule_link("p0l1", "p0s0", "up")
