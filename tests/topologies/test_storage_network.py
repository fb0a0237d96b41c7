"""A storage network is one more plane of any fabric: its addresses, names and numbers, and what it leaves as it was."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from tests.topologies.example_fabrics import EXAMPLES
from weft.drills.faults import FAULT_KINDS, Stage, draw_faults, kinds_for
from weft.errors import BadInputError
from weft.scenario import load_scenario, parse_scenario
from weft.topologies import FabricSpec, TopologyError, fat_tree, leaf_spine, with_scale_up
from weft.topologies.hosts.known import HOST_LAYOUTS
from weft.topologies.hosts.layout import Distance
from weft.topologies.hosts.routes import HostRoutes, RouteSettings
from weft.topologies.kinds import from_parameters
from weft.topologies.paths import longest_path
from weft.topologies.storage_network import with_storage_network

WITHOUT = {"network", "scale-up"}
"""Kinds of topology, by the beginning of their examples' names, that have no storage network."""


def fabrics() -> list[FabricSpec]:
    return [
        load_scenario(path).fabric.build()
        for path in EXAMPLES
        if not any(path.stem.startswith(each) for each in WITHOUT)
    ]


@pytest.mark.parametrize("fabric", fabrics(), ids=lambda fabric: str(fabric.parameters["kind"]))
def test_every_kind_of_fabric_can_have_one(fabric: FabricSpec) -> None:
    found = with_storage_network(fabric, hosts_per_leaf=3)
    assert found.storage_plane == fabric.planes
    assert found.training_planes == tuple(range(fabric.planes))
    assert found.storage_planes == (fabric.planes,)
    assert found.training_nics == fabric.nics_per_host
    assert from_parameters(found.parameters) == found
    # What was there before has stayed as it was.
    assert found.switches[: len(fabric.switches)] == fabric.switches
    assert found.links[: len(fabric.links)] == fabric.links
    for before, host in zip(fabric.hosts, found.hosts, strict=True):
        assert host.nics[:-1] == before.nics
        nic = host.nics[-1]
        assert (nic.number, nic.plane) == (len(before.nics), found.storage_plane)
        port = found.switch(nic.switch).port(nic.switch_port)
        assert (port.peer.node, port.peer.port, port.peer_interface) == (host.name, nic.number, nic.interface)
    check_unique(found)


def check_unique(fabric: FabricSpec) -> None:
    """Check that names, numbers, interfaces and addresses occur once, and addresses are in their plane's networks."""
    assert [switch.device_id for switch in fabric.switches] == list(range(1, len(fabric.switches) + 1))
    nics = [nic for host in fabric.hosts for nic in host.nics]
    for values in (
        [switch.name for switch in fabric.switches],
        [nic.interface for nic in nics] + [port.interface for switch in fabric.switches for port in switch.ports],
        [nic.mac for nic in nics] + [switch.mac for switch in fabric.switches],
        [nic.ipv4.ip for nic in nics] + [switch.address for switch in fabric.switches],
        [nic.ipv6.ip for nic in nics] + [switch.ipv6 for switch in fabric.switches],
    ):
        assert Counter(values).most_common(1)[0][1] == 1
    for nic in nics:
        for plane, (ipv4, ipv6) in enumerate(fabric.plane_networks):
            assert (nic.ipv4.ip in ipv4, nic.ipv6.ip in ipv6) == ((plane == nic.plane,) * 2)


@given(
    hosts=st.integers(1, 60),
    per_leaf=st.integers(1, 20),
    spines=st.integers(1, 4),
    oversubscription=st.floats(0.25, 4),
    planes=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_it_has_as_many_leaves_as_hosts_need(
    hosts: int, per_leaf: int, spines: int, oversubscription: float, planes: int
) -> None:
    fabric = leaf_spine(planes=planes, leaves=1, spines=0, hosts_per_leaf=hosts)
    found = with_storage_network(
        fabric, 200e9, hosts_per_leaf=per_leaf, spines=spines, oversubscription=oversubscription
    )
    switches = found.switches_of_plane(planes)
    leaves = [switch for switch in switches if switch.role == "leaf"]
    assert len(leaves) == -(-hosts // per_leaf)
    assert [len(leaf.host_ports) for leaf in leaves[:-1]] == [per_leaf] * (len(leaves) - 1)
    assert len(switches) - len(leaves) == (spines if len(leaves) > 1 else 0)
    for leaf in leaves if len(leaves) > 1 else ():
        uplinks_bps = sum(port.link.rate_bps for port in leaf.fabric_ports)
        assert uplinks_bps == pytest.approx(per_leaf * 200e9 / oversubscription, rel=1e-6)
    check_unique(found)


def test_ranks_of_a_host_are_side_by_side() -> None:
    fabric = with_scale_up(leaf_spine(planes=1, leaves=4, spines=2, hosts_per_leaf=4), 4, rail_optimised=True)
    found = with_storage_network(fabric, hosts_per_leaf=8)
    assert fabric.scale_up is not None
    for ranks in fabric.scale_up.hosts(16):
        assert len({found.hosts[rank].nics[-1].switch for rank in ranks}) == 1
        assert len({fabric.hosts[rank].nics[0].switch for rank in ranks}) == 4


def test_large_fabrics_leave_it_addresses() -> None:
    """A fat tree of 8,192 hosts has planes of a /9: the storage network is outside."""
    fabric = fat_tree(k=32, planes=1)
    found = with_storage_network(fabric, hosts_per_leaf=64)
    assert not found.plane_networks[0][0].overlaps(found.plane_networks[1][0])
    assert len({str(host.nics[-1].ipv4.ip) for host in found.hosts}) == 8192
    full = leaf_spine(planes=256, leaves=1, spines=0, hosts_per_leaf=1)
    with pytest.raises(TopologyError, match=r"leave no /16 for a storage network"):
        with_storage_network(full)


def test_paths_of_training_are_as_without_it() -> None:
    fabric = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=400e9)
    found = with_storage_network(fabric, 10e9, hosts_per_leaf=1)
    assert longest_path(found) == longest_path(fabric)
    _, storage = found.networks
    assert {node for node in longest_path(storage).nodes if node.startswith("p")} == {"p1l0", "p1l1", "p1s0"}


def test_drills_draw_no_faults_of_it() -> None:
    """Traffic without storage would bear them all."""
    fabric = with_storage_network(leaf_spine(planes=2, leaves=2, spines=2), hosts_per_leaf=2)
    stage, random = Stage(fabric, 0, 10**9, pauses=True), Random(1)
    drawn = [fault for _ in range(200) for fault in draw_faults(random, stage, sorted(FAULT_KINDS), 2)]
    assert {fault.kind for fault in drawn} == set(FAULT_KINDS)
    assert not any(place.startswith("p2") for fault in drawn for place in fault.places)
    lone = Stage(with_storage_network(leaf_spine(planes=1)), 0, 10**9, pauses=False)
    assert "plane-down" not in kinds_for(lone, None)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"hosts_per_leaf": 0}, "hosts_per_leaf"),
        ({"spines": 0}, "spines"),
        ({"oversubscription": -1}, "oversubscription"),
        ({"host_rate_bps": 1}, "host_rate_bps"),
        ({"failover": "yes"}, "failover"),
    ],
)
def test_figures_out_of_range_are_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(TopologyError, match=words):
        with_storage_network(leaf_spine(), **keys)
    with pytest.raises(TopologyError, match="has a storage network already"):
        with_storage_network(with_storage_network(leaf_spine()))


def test_kinds_without_nics_or_from_files_refuse_it() -> None:
    section = {"kind": "scale_up", "storage_network": {}}
    with refused(BadInputError, place="scenario: fabric.storage_network", problem="accelerators have no NICs"):
        parse_scenario({"fabric": section, "traffic": [{"permutation": "1KiB"}]})


def test_ranks_share_the_nearest_storage_adapter() -> None:
    """A DGX H100 has two adapters of two ports, at different sockets; the first accelerators are at the first."""
    layout = HOST_LAYOUTS["dgx-h100"]
    routes = HostRoutes(layout, RouteSettings(), 8, 1, has_storage=True).routes
    devices = [of_rank[1].device for of_rank in routes]
    assert all(layout.nics[layout.devices[device]].is_storage for device in devices)
    assert Counter(devices) == dict.fromkeys(devices, 2)
    assert len(set(devices[:4]) & set(devices[4:])) == 0
    assert {of_rank[1].distance for of_rank in routes} == {Distance.NODE}
    with pytest.raises(TopologyError, match="no NIC for it"):
        HostRoutes(HOST_LAYOUTS["hgx-h100"], RouteSettings(), 8, 1, has_storage=True)
