"""Routing by entropy values: hosts name the path of each packet of MRC, switches hold tables that never change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft import Fabric, topologies
from weft.run.collectives import CollectiveRequest
from weft.scenario import RoutingSection, TransportSection
from weft.topologies import FabricSpec

US = 10**6
LEAF_SPINE = topologies.leaf_spine(
    planes=1, leaves=2, spines=4, hosts_per_leaf=2, host_rate_bps=100 * 10**9, delay_ps=US
)
FAT_TREE = topologies.fat_tree(pods=2, leaves_per_pod=2, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=1)
KINDS = ["srv6"]


def made(topology: FabricSpec, kind: str, **options: Any) -> Fabric:
    chosen = {
        "ip_version": 6,
        "int_telemetry": False,
        "transport": TransportSection(protocol="mrc"),
        "routing": RoutingSection(kind=kind),
    }
    return Fabric(topology, clock="virtual", **(chosen | options))


def totals(fabric: Fabric) -> dict[str, int]:
    each = [host["totals"] for host in fabric.hosts.stats()]
    return {name: sum(one[name] for one in each) for name in each[0]}


def inputs(ranks: int, words: int = 60_000) -> list[Any]:
    return [np.random.default_rng(rank).integers(-99, 99, words, np.int32) for rank in range(ranks)]


def uplink_bytes(fabric: Fabric, leaf: str) -> list[int]:
    ports = fabric.lab.switch_stats()["switches"][leaf]["ports"]
    numbers = [port.number for port in fabric.fabric.switch(leaf).fabric_ports]
    return [ports[number]["transmit"]["transmitted"]["bytes"] for number in numbers]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("topology", [LEAF_SPINE, FAT_TREE], ids=["leaf_spine", "fat_tree"])
def test_an_all_reduce_over_named_paths_is_right(topology: FabricSpec, kind: str) -> None:
    with made(topology, kind) as fabric:
        given = inputs(len(topology.hosts))
        run = fabric.run(CollectiveRequest("allreduce", given, "ring"))
        found = totals(fabric)
    assert run.result.ok
    assert all(np.array_equal(output, np.sum(given, axis=0)) for output in run.buffers)
    assert found["retransmitted_packets"] == found["timeouts"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_named_paths_share_the_load_evenly(kind: str) -> None:
    with made(LEAF_SPINE, kind) as fabric:
        fabric.permutation(400_000)
        loads = uplink_bytes(fabric, "p0l0")
    assert max(loads) < 1.2 * min(loads)
