"""Lab 21's parameter server on the distribution's pyverbs, between two hosts of a lab."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.end_to_end.test_verbs_programs import exec_in
from weft import topologies
from weft.paths import LABS_DIRECTORY
from weft.run.fabric import Fabric
from weft.verbs import libraries

PYTHON = "/usr/bin/python3"
LACKING = libraries.missing_because() or (
    ""
    if subprocess.run([PYTHON, "-c", "import numpy, pyverbs"], capture_output=True, check=False).returncode == 0
    else "apt install python3-pyverbs python3-numpy"
)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(LACKING != "", reason=LACKING or "none")]
PROGRAM = f"{PYTHON} -u '{LABS_DIRECTORY}'/21-rdma-programming/pyverbs_server.py"


@pytest.fixture
def fabric() -> Iterator[Fabric]:
    with Fabric(topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1), clock="real", dilation=20) as up:
        yield up


def test_lab_21s_parameter_server_adds_what_workers_push(fabric: Fabric) -> None:
    address = fabric.lab.fabric.hosts[0].nics[0].ipv4.ip
    with subprocess.Popen(
        exec_in("h0", f"{PROGRAM} serve --device weft0"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            worker = f"for i in 1 2 3 4 5; do {PROGRAM} work {address} --device weft0 && exit 0; sleep 1; done; exit 1"
            done = subprocess.run(exec_in("h1", worker), capture_output=True, text=True, check=False, timeout=200)
            printed, _ = server.communicate(timeout=60)
        finally:
            server.kill()
    assert done.returncode == 0, done.stdout + done.stderr + printed
    (pushed,) = re.findall(r"elements pushed: ([\d,]+)", done.stdout)
    assert re.findall(r"sum of the weights: ([\d,]+)", printed) == [pushed]
