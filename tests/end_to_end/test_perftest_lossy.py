"""perftest in a lab's hosts over links that lose.

All commands of a module share a lab. Nothing is said of rates: the machine's own load decides them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from verbs_programs import run_pair
from weft import topologies
from weft.run.fabric import Fabric
from weft.scenario import FaultsSection
from weft.verbs import libraries

pytestmark = [
    pytest.mark.mininet,
    pytest.mark.slow,
    pytest.mark.one_part,
    pytest.mark.skipif(libraries.missing_because() != "", reason=libraries.missing_because() or "none"),
    pytest.mark.skipif(shutil.which("ib_write_bw") is None, reason="apt install perftest"),
]
DILATION = 100
TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=1)
FEW = "-n 20 -F"
COMMANDS = [
    f"ib_write_bw -s 4096 {FEW}",
    f"ib_read_bw -s 4096 {FEW}",
    f"ib_send_bw -s 4096 {FEW}",
    f"ib_atomic_bw {FEW}",
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Fabric]:
    with Fabric(TOPOLOGY, clock="real", dilation=DILATION, faults=FaultsSection(loss=0.01)) as fabric:
        yield fabric


@pytest.mark.parametrize("command", COMMANDS)
def test_it_completes(lab: Fabric, tmp_path: Path, command: str) -> None:
    assert run_pair(lab, tmp_path, command) == ""
