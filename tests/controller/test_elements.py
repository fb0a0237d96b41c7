"""What is taken out of use: which hosts that would part, and the order in which switches stop using it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controller.test_routing import plane_routes
from weft.controller.elements import Element, link_element, switch_element, transit_ends, waves
from weft.controller.failures import NO_FAILURES
from weft.controller.reachability import hosts_cut_off
from weft.controller.routing.routes import SwitchRoutes
from weft.topologies import FabricSpec, fat_tree, leaf_spine

LEAF_SPINE = leaf_spine(planes=1, leaves=3, spines=2, hosts_per_leaf=2)
FABRICS = [
    LEAF_SPINE,
    fat_tree(pods=3, leaves_per_pod=2, spines_per_pod=2, cores_per_spine=2, hosts_per_leaf=1),
]


def elements_of(fabric: FabricSpec) -> list[Element]:
    """Return the links and switches without which no host is cut off."""
    links = [link_element(fabric, link) for link in fabric.links]
    switches = [switch_element(fabric, each.name) for each in fabric.switches if not each.host_ports]
    return [each for each in links + switches if not hosts_cut_off(fabric, NO_FAILURES, each.added_to(NO_FAILURES))]


def arrives(fabric: FabricSpec, routes: dict[str, SwitchRoutes]) -> bool:
    """Whether over all choices every leaf reaches every host without visiting a switch twice."""
    for host in fabric.hosts:
        address = host.nic(0).ipv4.ip
        pending = [(switch.name, frozenset[str]()) for switch in fabric.switches if switch.host_ports]
        while pending:
            name, visited = pending.pop()
            if name in visited:
                return False
            matching = [each for each in routes[name] if each.prefix.version == 4 and address in each.prefix]
            route = max(matching, key=lambda each: each.prefix.prefixlen, default=None)
            if route is None:
                return False
            peers = [fabric.switch(name).port(hop.port).peer.node for hop in route.next_hops]
            pending += [(peer, visited | {name}) for peer in peers if peer != host.name]
    return True


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(FABRICS), st.booleans())
def test_while_switches_change_one_by_one_every_packet_arrives_and_none_goes_in_circles(
    data: st.DataObject, fabric: FabricSpec, back: bool
) -> None:
    element = data.draw(st.sampled_from(elements_of(fabric)))
    routes, target = (plane_routes(fabric, 0, each) for each in (NO_FAILURES, element.added_to(NO_FAILURES)))
    order = waves(fabric, element, NO_FAILURES)
    if back:
        routes, target, order = target, routes, order[::-1]
    if element.switch is not None:  # it keeps what it held
        routes[element.switch] = target[element.switch] = plane_routes(fabric, 0)[element.switch]
    assert set().union(*order) == set(routes)
    assert arrives(fabric, routes)
    for wave in order:
        # Within a wave in any order.
        for name in data.draw(st.permutations(sorted(wave))):
            routes[name] = target[name]
            assert arrives(fabric, routes)


def test_ends_without_hosts_change_last_in_a_drain() -> None:
    link = LEAF_SPINE.link_between("p0l0", "p0s1")
    assert list(transit_ends(LEAF_SPINE, link_element(LEAF_SPINE, link))) == ["p0s1"]
    assert waves(LEAF_SPINE, switch_element(LEAF_SPINE, "p0s1"), NO_FAILURES) == [
        {"p0s0"}, {"p0l0", "p0l1", "p0l2"}, {"p0s1"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "gone", "cut_off"),
    [
        ([], ["p0l0-p0s0"], []),
        ([], ["p0l0-p0s0", "p0l0-p0s1"], ["h0", "h1"]),
        (["p0l0-p0s0"], ["p0l0-p0s1"], ["h0", "h1"]),
        (["p0l0-p0s0", "p0l0-p0s1"], ["p0l1-p0s0"], []),
        ([], ["h3-p0l1"], ["h3"]),
        (["h3-p0l1"], ["p0l1-p0s0"], []),
    ],
)
def test_hosts_that_lose_others_are_named(before: list[str], gone: list[str], cut_off: list[str]) -> None:
    down = NO_FAILURES
    for name in before:
        down = down.with_link(LEAF_SPINE.link_between(*name.split("-")))
    after = down
    for name in gone:
        after = after.with_link(LEAF_SPINE.link_between(*name.split("-")))
    assert hosts_cut_off(LEAF_SPINE, down, after) == cut_off
