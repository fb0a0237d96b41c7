"""In Mininet: a plane that is lost under an all-reduce, a host that dies, and one that an operator takes out of use."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from weft import topologies
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.scenario import EventSection

pytestmark = pytest.mark.slow
MS = 10**9
TOPOLOGY = topologies.with_spares(
    topologies.leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=1e9), 1
)


def all_reduced(fabric: Fabric, elements: int = 1 << 16) -> bool:
    """Whether an all-reduce of the three ranks is right."""
    inputs = [np.full(elements, rank + 1, np.int32) for rank in range(TOPOLOGY.rank_count)]
    run = fabric.run(CollectiveRequest("allreduce", inputs, "ring"))
    return run.result.ok and all((buffer == 6).all() for buffer in run.buffers)


def cordon(host: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "weft", "controller", "host", "cordon", host]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def kinds(fabric: Fabric) -> list[str]:
    return [event.kind for event in fabric.summary().controller_events]


def test_a_spare_takes_the_rank_of_a_host_that_an_operator_cordons() -> None:
    with Fabric(TOPOLOGY, clock="real") as fabric:
        assert all_reduced(fabric)
        done = cordon("h1")
        assert done.returncode == 0, done.stderr
        assert all_reduced(fabric)
        assert "swapped" in kinds(fabric)
        refused = cordon("h0")
        assert (refused.returncode, "no spare host is left" in refused.stderr) == (1, True)
        assert all_reduced(fabric)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (EventSection(plane=1, state="down", at=1 * MS), "plane lost"),
        (EventSection(host="h1", state="down", at=1 * MS), "swapped"),
    ],
    ids=["plane", "host"],
)
def test_an_all_reduce_outlives_a_plane_and_a_host(event: EventSection, kind: str) -> None:
    with Fabric(TOPOLOGY, clock="real", events=[event]) as fabric:
        assert all_reduced(fabric, 1 << 17)
        assert all_reduced(fabric)
        assert kind in kinds(fabric)
