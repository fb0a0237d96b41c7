"""rdma-core's own Python tests over a host's device, by the distribution's pyverbs.

WEFT_RDMA_CORE names a clone of https://github.com/linux-rdma/rdma-core whose version is the distribution's
(v44.0 for Debian 12): `git clone -b v44.0`. The tests connect queue pairs of one device to each other.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from verbs_programs import needs_device
from weft import topologies
from weft.run.fabric import Fabric

CLONE = os.environ.get("WEFT_RDMA_CORE", "")
PYTHON = "/usr/bin/python3"  # whose packages pyverbs is among


def has_pyverbs() -> bool:
    asked = subprocess.run([PYTHON, "-c", "import pyverbs.device"], capture_output=True, check=False, cwd="/")
    return asked.returncode == 0


pytestmark = [
    pytest.mark.slow,
    needs_device,
    pytest.mark.skipif(CLONE == "", reason="WEFT_RDMA_CORE names no clone of rdma-core"),
    pytest.mark.skipif(not has_pyverbs(), reason="apt install python3-pyverbs"),
    pytest.mark.timeout(900),
]
MODULES = (
    "test_addr",
    "test_atomic",
    "test_cq",
    "test_cq_events",
    "test_cqex",
    "test_device",
    "test_fork",
    "test_mr",
    "test_odp",
    "test_parent_domain",
    "test_pd",
    "test_qp",
    "test_qpex",
    "test_relaxed_ordering",
    "test_shared_pd",
)
NOT_SUPPORTED = (
    "XRC",
    "MW",
    "memory window",
    "ODP",
    "Device memory",
    "dmabuf",
    "Raw Packet",
    "QP type 8",
    "Parent Domain",
    "huge pages",
    "gid indices populated",
    "Extended QP is not supported",  # atomic WRITEs
    "access flags 18",  # memory windows
    "Importing a device",
)
"""What reasons to skip a test name, of features that docs/verbs.md says the device has not."""
LEAST_PASSED = 80
"""Of v44.0."""


def test_none_fails_and_most_of_what_is_supported_passes(tmp_path: Path) -> None:
    # Without the clone's pyverbs folder, which has sources only and would come before the installed package.
    shutil.copytree(Path(CLONE) / "tests", tmp_path / "tests")
    runner = Path(__file__).with_name("rdma_core_runner.py")
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=1, hosts_per_leaf=1)
    with Fabric(topology, clock="real", dilation=100) as fabric:
        command = ["env", "-u", "PYTHONPATH", PYTHON, str(runner), str(tmp_path), *MODULES]
        ran = fabric.lab.network.popen("h0", command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/")
        printed, errors = ran.communicate(timeout=800)
    assert ran.returncode == 0, errors
    results = [json.loads(line) for line in printed.splitlines()]
    failed = [f"{each['test']}: {each['detail'].strip()}" for each in results if each["outcome"] == "failed"]
    assert failed == []
    outcomes = Counter(
        "not supported" if any(name in each["detail"] for name in NOT_SUPPORTED) else each["outcome"]
        for each in results
    )
    assert outcomes["passed"] >= LEAST_PASSED, outcomes
    assert outcomes["passed"] >= 0.8 * (outcomes["passed"] + outcomes["skipped"]), outcomes
