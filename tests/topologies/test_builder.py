"""The builder of fabrics: any switches, hosts and links; names, ports, and addresses of both plans."""

from __future__ import annotations

import itertools
from ipaddress import ip_network

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.topologies import FabricSpec, LinkSpec, TopologyError, fat_tree, leaf_spine, shortest_path
from weft.topologies.builder import FabricBuilder

LINK = LinkSpec(10**10, 10**6, 512 * 1024)


def torus(sides: tuple[int, ...], planes: int = 1, nics: int = 1) -> FabricSpec:
    """Nodes in a grid that wraps around, each with a host of so many NICs."""
    builder = FabricBuilder()
    places = list(itertools.product(*map(range, sides)))
    nodes = [
        {place: builder.add_switch(plane, "node", coordinates=place) for place in places} for plane in range(planes)
    ]
    for place in places:
        builder.add_host([of_plane[place] for of_plane in nodes for _ in range(nics)], LINK)
    for of_plane in nodes:
        for place in places:
            for axis, side in enumerate(sides):
                if side > 1:
                    near = tuple((at + (each == axis)) % sides[each] for each, at in enumerate(place))
                    builder.add_link(of_plane[place], of_plane[near], LINK)
    return builder.build({})


@given(
    sides=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    planes=st.integers(1, 3),
    nics=st.integers(1, 3),
)
@settings(deadline=None, max_examples=40)
def test_hierarchical_addresses_are_unique_and_nested(sides: list[int], planes: int, nics: int) -> None:
    fabric = torus(tuple(sides), planes, nics)
    ports = [nic for host in fabric.hosts for nic in host.nics]
    for values in (
        [nic.interface for nic in ports] + [port.interface for each in fabric.switches for port in each.ports],
        [nic.ipv4.ip for nic in ports] + [switch.address for switch in fabric.switches],
        [nic.ipv6.ip for nic in ports] + [switch.ipv6 for switch in fabric.switches],
        [nic.mac for nic in ports] + [switch.mac for switch in fabric.switches],
    ):
        assert len(values) == len(set(values))
    for nic in ports:
        switch = fabric.switch(nic.switch)
        assert switch.networks is not None
        assert nic.ipv4.network == switch.networks[0]
        assert nic.ipv6.network.subnet_of(switch.networks[1])
        assert switch.address in nic.ipv4.network
        assert switch.ipv6 in nic.ipv6.network
        assert (nic.gateway_ipv4, nic.gateway_ipv6, nic.gateway_mac) == (
            switch.address,
            switch.ipv6,
            switch.mac,
        )
        assert nic.ipv4.ip not in (nic.ipv4.network.network_address, nic.ipv4.network.broadcast_address)
        for network, of_plane in zip(switch.networks, fabric.plane_networks[nic.plane], strict=True):
            assert ip_network(network).subnet_of(ip_network(of_plane))  # type: ignore[arg-type]
    assert [nic.number for nic in fabric.hosts[0].nics] == list(range(planes * nics))
    assert fabric.first_nics == tuple(range(0, planes * nics, nics))


def test_switches_below_a_partial_position_share_a_prefix() -> None:
    fabric = torus((3, 4, 2))
    for place, prefix in (((1,), "10.0.0.32/27"), ((1, 2), "10.0.0.48/29"), ((1, 2, 1), "10.0.0.52/30")):
        inside = [switch for switch in fabric.switches if switch.address in ip_network(prefix)]
        assert [switch.coordinates for switch in inside] == [
            switch.coordinates for switch in fabric.switches if switch.coordinates[: len(place)] == place
        ]
    switch = fabric.switches[-1]
    assert (switch.name, str(switch.address), str(switch.ipv6), switch.mac) == (
        "p0n23",
        "10.0.0.94",
        "fd00:0:17::2",
        "02:11:00:00:5c:00",
    )
    assert (fabric.hosts[23].nic(0).mac, str(fabric.hosts[23].nic(0).ipv6)) == (
        "02:10:00:00:5d:00",
        "fd00:0:17::1/64",
    )


def test_fabrics_beyond_the_octets_have_a_hierarchy() -> None:
    fabric = leaf_spine(planes=1, leaves=256, spines=1, hosts_per_leaf=1)
    assert str(fabric.hosts[255].nic(0).ipv4) == "10.0.3.253/30"
    assert str(fabric.switch("p0s0").address) == "10.0.4.2"
    fabric = fat_tree(pods=3, leaves_per_pod=100, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=1)
    networks = [fabric.switch(name).networks for name in ("p0l100", "p0l199", "p0s2", "p0s3", "p0c3")]
    assert [str(each[0]) for each in networks if each] == [
        "10.0.2.0/30",
        "10.0.3.140/30",
        "10.0.8.4/30",
        "10.0.8.20/30",
        "10.0.16.12/30",
    ]
    assert fabric.switch("p0l199").coordinates == (1, 99)
    assert fabric.switch("p0s3").coordinates == (1, 1)
    assert (fabric.switch("p0s3").group, fabric.switch("p0c3").group) == (1, None)


def test_a_switch_number_of_more_than_16_bits_takes_two_groups() -> None:
    builder = FabricBuilder()
    near, far = (builder.add_switch(0, "node", coordinates=(place,)) for place in (0, 0x12345))
    builder.add_host([near], LINK)
    builder.add_host([far], LINK)
    builder.add_link(near, far, LINK)
    fabric = builder.build({})
    assert str(fabric.hosts[1].nic(0).ipv6) == "fd00:0:1:2345::1/64"
    assert str(fabric.hosts[1].nic(0).ipv4) == "10.4.141.21/30"


def test_addresses_that_do_not_suffice_are_refused_with_what_would() -> None:
    builder = FabricBuilder()
    switches = [builder.add_switch(plane, "node", coordinates=(0x3FFFF,)) for plane in range(8)]
    for _ in range(100):
        builder.add_host(switches, LINK)
    with refused(
        TopologyError,
        valid="4 bits fewer; at most 5 NICs a switch or levels of a 16th of the switches",
        problem="positions of node 18) and 100",
    ):
        builder.build({})


def test_hosts_may_be_on_any_switch_and_have_several_nics_there() -> None:
    builder = FabricBuilder()
    leaf, spine = builder.add_switch(0, "leaf"), builder.add_switch(0, "spine")
    builder.add_host([leaf, leaf], [LINK, LinkSpec(10**9, 0, 10_000)])
    builder.add_host([spine, leaf], LINK)
    builder.add_link(leaf, spine, LINK)
    fabric = builder.build({})
    assert [fabric.switch_of("h1", nic).name for nic in (0, 1)] == ["p0s0", "p0l0"]
    assert fabric.hosts[0].nic(1).link.rate_bps == 10**9
    assert fabric.nics_per_host == 2
    assert [port.peer.port for port in fabric.switch("p0l0").host_ports] == [0, 1, 1]
    assert shortest_path(fabric, "h0", "h1", 0).nodes == ("h0", "p0l0", "p0s0", "h1")
    assert shortest_path(fabric, "h0", "h1", 1).nodes == ("h0", "p0l0", "h1")
    assert fabric.link_name(fabric.links[1]) == "h0:1<->p0l0:2"


def test_what_cannot_be_is_refused() -> None:
    builder = FabricBuilder()
    here, there = builder.add_switch(0, "leaf"), builder.add_switch(1, "leaf")
    for other in (here, there):
        with refused(TopologyError, valid="two switches of a plane", problem="no link can join p0l0 and p"):
            builder.add_link(here, other, LINK)
    with refused(TopologyError, problem="a fabric needs a host"):
        builder.build({})
    builder.add_host([here, there], LINK)
    with refused(TopologyError, problem="host h1 has NICs in planes [0]"):
        builder.add_host([here], LINK)
    builder.add_switch(0, "lookout")
    with refused(TopologyError, problem="p0l0 is a switch of several"):
        builder.build({})
    for _ in range(508):
        builder.add_host([here, there], LINK)
    with refused(TopologyError, valid="at most 509", problem="p0l0 would have 510 ports"):
        builder.add_host([here, there], LINK)


def test_two_switches_of_one_position_are_refused() -> None:
    builder = FabricBuilder()
    for _ in range(2):
        builder.add_host([builder.add_switch(0, "node", coordinates=(1, 2))], LINK)
    with refused(TopologyError, problem="2 switches of role node in"):
        builder.build({})
    builder = FabricBuilder()
    for coordinates in ((1,), (1, 2)):
        builder.add_host([builder.add_switch(0, "node", coordinates=coordinates)], LINK)
    with refused(TopologyError, valid="one number", problem="role node have positions of [1"):
        builder.build({})
