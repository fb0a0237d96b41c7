"""Lab 21's parameter server on the distribution's pyverbs, between two hosts of a lab."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from verbs_programs import LACKING as NO_DEVICE
from verbs_programs import server_and_client
from weft import topologies
from weft.paths import LABS_DIRECTORY
from weft.run.fabric import Fabric

PYTHON = "/usr/bin/python3"
LACKING = NO_DEVICE or (
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
    worker, server, pushing, printed = server_and_client(
        f"{PROGRAM} serve --device weft0", f"{PROGRAM} work {address} --device weft0", 5, pause_s=1, timeout_s=200
    )
    assert (worker, server) == (0, 0), pushing + printed
    (pushed,) = re.findall(r"elements pushed: ([\d,]+)", pushing)
    assert re.findall(r"sum of the weights: ([\d,]+)", printed) == [pushed]
