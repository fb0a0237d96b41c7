"""Properties of both builders: unique names and addresses, symmetric links; limits of the leaf/spine one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft import topologies
from weft.topologies import FabricSpec, TopologyError, addressing, fat_tree, leaf_spine

fabrics = st.one_of(
    st.builds(
        leaf_spine,
        planes=st.integers(1, 3),
        leaves=st.integers(1, 6),
        spines=st.integers(1, 4),
        hosts_per_leaf=st.integers(1, 4),
        host_rate_bps=st.sampled_from([1e9, 10e9, 100e9]),
        fabric_rate_bps=st.sampled_from([None, 40e9]),
        delay_ps=st.integers(0, 10**7),
    ),
    st.builds(
        fat_tree,
        planes=st.integers(1, 2),
        pods=st.integers(2, 4),
        leaves_per_pod=st.integers(1, 3),
        spines_per_pod=st.integers(1, 3),
        cores_per_spine=st.integers(1, 3),
        hosts_per_leaf=st.integers(1, 3),
        core_rate_bps=st.sampled_from([None, 40e9]),
    ),
)


@given(fabrics)
@settings(deadline=None, max_examples=40)
def test_names_addresses_macs_and_device_ids_are_unique(fabric: FabricSpec) -> None:
    nics = [nic for host in fabric.hosts for nic in host.nics]
    ports = [port for switch in fabric.switches for port in switch.ports]
    for values in (
        [host.name for host in fabric.hosts] + [switch.name for switch in fabric.switches],
        [nic.interface for nic in nics] + [port.interface for port in ports],
        [nic.ipv4.ip for nic in nics] + [switch.address for switch in fabric.switches],
        [nic.ipv6.ip for nic in nics] + [switch.ipv6 for switch in fabric.switches],
        [nic.mac for nic in nics] + [switch.mac for switch in fabric.switches],
    ):
        assert len(values) == len(set(values))
    assert [switch.device_id for switch in fabric.switches] == list(range(1, len(fabric.switches) + 1))


@given(fabrics)
@settings(deadline=None, max_examples=40)
def test_links_are_symmetric_and_complete(fabric: FabricSpec) -> None:
    for switch in fabric.switches:
        assert [port.number for port in switch.ports] == list(range(1, len(switch.ports) + 1))
        for port in switch.ports:
            if port.peer_is_host:
                nic = fabric.host(port.peer.node).nic(port.peer.port)
                assert (nic.switch, nic.switch_port, nic.interface, nic.link) == (
                    switch.name, port.number, port.peer_interface, port.link,
                )  # fmt: skip
                assert (nic.gateway_ipv4, nic.gateway_mac) == (switch.address, switch.mac)
                assert switch.address in nic.ipv4.network
                assert switch.ipv6 in nic.ipv6.network
            else:
                back = fabric.switch(port.peer.node).port(port.peer.port)
                assert (back.peer.node, back.peer.port) == (switch.name, port.number)
                assert (back.interface, back.peer_interface) == (port.peer_interface, port.interface)
                assert back.link == port.link
                assert fabric.switch(port.peer.node).plane == switch.plane
    ends = [end for link in fabric.links for end in (link.a, link.b)]
    assert len(ends) == len(set(ends))
    port_count = sum(len(switch.ports) for switch in fabric.switches)
    assert len(ends) == port_count + len(fabric.hosts) * fabric.planes


@given(fabrics)
@settings(deadline=None, max_examples=20)
def test_parameters_rebuild_an_equal_fabric(fabric: FabricSpec) -> None:
    assert topologies.from_parameters(fabric.parameters) == fabric


def test_addressing_plan_of_the_architecture_page() -> None:
    fabric = leaf_spine(planes=2, leaves=17, spines=2, hosts_per_leaf=2)
    nic = fabric.host("h33").nic(1)
    assert (str(nic.ipv4), str(nic.ipv6), nic.mac) == ("10.1.16.2/24", "fd00:1:10::2/64", "02:00:01:10:00:02")
    leaf = fabric.switch("p1l16")
    assert (str(leaf.address), str(leaf.ipv6), leaf.mac) == (
        "10.1.16.254",
        "fd00:1:10::fe",
        "02:01:01:10:00:00",
    )
    spine = fabric.switch("p1s1")
    assert (str(spine.address), str(spine.ipv6), spine.mac) == (
        "10.1.255.2",
        "fd00:1:ff::2",
        "02:02:01:01:00:00",
    )
    assert leaf.port(3).interface == "p1l16-eth3"
    assert leaf.port(3).peer.node == "p1s0"
    assert spine.port(17).peer.node == "p1l16"
    assert (fabric.switch("p0l0").device_id, fabric.switch("p0s0").device_id, leaf.device_id) == (1, 18, 36)


def test_the_largest_names_and_addresses_fit() -> None:
    name = addressing.switch_name(addressing.MAX_PLANES - 1, "l", addressing.MAX_LEAVES - 1)
    assert addressing.interface_name(name, addressing.MAX_PORTS) == "p255l254-eth509"
    fabric = leaf_spine(planes=1, leaves=2, spines=254, hosts_per_leaf=253)
    assert len(fabric.switch("p0l1").ports) == 507
    assert fabric.hosts[-1].nic(0).ipv4.ip != fabric.switch("p0l1").address
    with refused(TopologyError, valid="at most 15", problem="'averylongname-eth1' has 18"):
        addressing.interface_name("averylongname", 1)


def test_oversubscription_sets_the_fabric_rate() -> None:
    fabric = leaf_spine(spines=2, hosts_per_leaf=8, host_rate_bps=100e9, oversubscription=4)
    assert fabric.switch("p0l0").fabric_ports[0].link.rate_bps == 100 * 10**9
    assert fabric.parameters["fabric_rate_bps"] == 100 * 10**9


def test_single_leaf_without_spines() -> None:
    fabric = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=3)
    assert [switch.name for switch in fabric.switches] == ["p0l0"]
    assert fabric.switch("p0l0").fabric_ports == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"planes": 0}, {"valid": "1 to 256", "problem": "planes=0 is out of range"}),
        (
            {"leaves": 510},
            {"valid": "1 to 509; each is at a port of every spine", "problem": "leaves=510 is out of range"},
        ),
        (
            {"spines": 0},
            {
                "valid": "1 to 509; several leaves need a spine between them",
                "problem": "spines=0 is out of range",
            },
        ),
        (
            {"spines": 510},
            {"valid": "1 to 509; several leaves need a spine between them", "problem": "spines=510"},
        ),
        ({"hosts_per_leaf": 510}, {"valid": "1 to 509", "problem": "hosts_per_leaf=510 is out of"}),
        ({"hosts_per_leaf": 508}, {"valid": "at most 509", "problem": "p0l0 would have 510 ports"}),
        ({"hosts_per_leaf": 1.5}, {"valid": "1 to 509", "problem": "5 is not a whole number"}),
        ({"planes": True}, {"valid": "1 to 256", "problem": "planes=True is not a whole"}),
        (
            {"planes": 256, "leaves": 500, "hosts_per_leaf": 400},
            {"valid": "at most 2000000", "problem": "hosts_per_leaf=400"},
        ),
        (
            {"host_rate_bps": 0},
            {"valid": "1000000 to 100000000000000", "problem": "host_rate_bps=0 is out of range"},
        ),
        (
            {"host_rate_bps": float("nan")},
            {"valid": "1000000 to 100000000000000", "problem": "host_rate_bps=nan is not a"},
        ),
        ({"delay_ps": -1}, {"valid": "0 to 1000000000000", "problem": "delay_ps=-1"}),
        (
            {"queue_capacity_bytes": 100},
            {"valid": "1518 to 17179869184", "problem": "queue_capacity_bytes=100"},
        ),
        ({"oversubscription": 0}, {"valid": "above 0", "problem": "oversubscription=0 is out of"}),
        ({"oversubscription": 2, "fabric_rate_bps": 1e9}, {"problem": "exclude each other"}),
        ({"leaves": 1, "spines": 0, "oversubscription": 2}, {"problem": "means nothing without spines"}),
    ],
)
def test_limits_are_refused_with_the_valid_range(arguments: dict[str, float], message: dict[str, str]) -> None:
    with refused(TopologyError, **message):
        leaf_spine(**arguments)  # type: ignore[arg-type]


def test_unknown_names_are_refused_with_choices() -> None:
    fabric = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
    with refused(TopologyError, valid="h0, h1", problem="unknown host 'h9'"):
        fabric.host("h9")
    with refused(TopologyError, valid="p0l0, p0l1, p0s0", problem="unknown switch 'x'"):
        fabric.switch("x")
    with refused(TopologyError, valid="1 to 2", problem="no port 3"):
        fabric.switch("p0l0").port(3)
    with refused(TopologyError, valid="h0-p0l0, p0l0-p0s0, h1-p0l1, p0l1-p0s0", problem="unknown link 'h0-h1'"):
        fabric.link_between("h0", "h1")
    with refused(
        TopologyError,
        valid=(
            "leaf_spine, cubes, dragonfly, dragonfly_plus, fat_tree, file, graph, hyperx, "
            "network, optical_core, rail_only, scale_up, torus"
        ),
        problem="unknown topology kind 'ring'",
    ):
        topologies.from_parameters({"kind": "ring"})
    with refused(
        TopologyError,
        valid=(
            "delay_ps, fabric_rate_bps, host_rate_bps, hosts_per_leaf, leaves, "
            "oversubscription, planes, queue_capacity_bytes, spines"
        ),
        problem="unknown parameter 'leafs' of",
    ):
        topologies.from_parameters({"leafs": 2})
