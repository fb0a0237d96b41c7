"""Congestion control, selective repeat and NIC costs under the real clock: the same code as in virtual time."""

from pathlib import Path

import numpy as np
import pytest

from weft import topologies
from weft.errors import BadInputError
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.scenario import FaultsSection, NicSection, TransportSection


@pytest.mark.parametrize(
    "transport",
    [
        TransportSection(congestion_control="hpcc", retransmission="selective-repeat", path="flowlet"),
        pytest.param(
            TransportSection(congestion_control="swift", retransmission="selective-repeat", path="spray"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda section: section.congestion_control,
)
def test_sums_are_right_and_incasts_end(transport):
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2)
    inputs = [np.arange(4096, dtype=np.int32) * (rank + 1) for rank in range(4)]
    nic = NicSection(pcie_rate="64Gbps", dma_latency="1us")
    with Fabric(topology, clock="real", transport=transport, nic=nic, faults=FaultsSection(loss=0.01)) as fabric:
        assert fabric.run(CollectiveRequest("allreduce", inputs, "ring")).result.ok
        assert fabric.incast("h0", 65536, queue_pairs=2).bytes_delivered == 3 * 65536
        connections = [each for host in fabric.hosts.stats() for each in host["connections"]]
    assert {each["error"] for each in connections} == {"success"}
    if transport.congestion_control == "hpcc":
        assert any(each["telemetry"] for each in connections)


def test_a_class_that_exits_ends_the_run_and_not_its_host_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import weft\nclass Mine(weft.CongestionControl):\n  def window_bytes(self): return 20000\n"
        "  def on_acknowledgement(self, event): raise SystemExit(0)\n",
        encoding="utf-8",
    )
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=1, hosts_per_leaf=2)
    transport = TransportSection(congestion_control=f"{mine}:Mine")
    with (
        Fabric(topology, clock="real", transport=transport) as fabric,
        pytest.raises(BadInputError, match=r"mine\.py:4: SystemExit: 0, raised by a class of yours"),
    ):
        fabric.incast("h0", 4096)
