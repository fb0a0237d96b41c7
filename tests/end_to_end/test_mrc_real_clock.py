"""In Mininet: one queue pair of MRC over both planes of two hosts, between processes and over real interfaces."""

from __future__ import annotations

import numpy as np
import pytest

from weft import topologies
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.scenario import TransportSection

pytestmark = pytest.mark.slow
TOPOLOGY = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=1, host_rate_bps=10**8)


def test_an_all_reduce_between_processes_uses_both_planes() -> None:
    inputs = [np.random.default_rng(rank).integers(-99, 99, 100_000, np.int32) for rank in range(2)]
    with Fabric(TOPOLOGY, clock="real", int_telemetry=False, transport=TransportSection(protocol="mrc")) as fabric:
        run = fabric.run(CollectiveRequest("allreduce", inputs, "ring"))
        stats = fabric.hosts.stats()
    assert run.result.ok
    for output in run.buffers:
        np.testing.assert_array_equal(output, np.sum(inputs, axis=0))
    for host in stats:
        assert len(host["connections"]) == 1
        sent = [plane["transmit"]["transmitted"]["bytes"] for plane in host["planes"]]
        assert min(sent) > 0.5 * max(sent)


def test_flows_between_processes_use_both_planes() -> None:
    with Fabric(TOPOLOGY, clock="real", int_telemetry=False, transport=TransportSection(protocol="mrc")) as fabric:
        fabric.permutation(400_000)
        fabric.workload("fb_hadoop", 0.5, 20 * 10**9)
        stats = fabric.hosts.stats()
    for host in stats:
        sent = [plane["transmit"]["transmitted"]["bytes"] for plane in host["planes"]]
        assert min(sent) > 0.5 * max(sent)
