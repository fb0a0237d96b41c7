"""Several links between two switches: each is a next hop, a failure of its own, and has a name."""

from __future__ import annotations

import finsy
import pytest

from tests.refusals import refused
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.features import Settings
from weft.controller.features.load_balancing import LoadBalancingMode, LoadBalancingSettings
from weft.controller.links import named_link
from weft.controller.plan import FabricState, Planner
from weft.controller.port_states import failures_of, peers_of_ports_down
from weft.controller.routing.routes import MOST_WEIGHT, member_weights
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.controller.target import BMV2
from weft.controller.trees import plan_tree
from weft.errors import BadInputError
from weft.run.fabric import Fabric
from weft.scenario import EventSection, FabricOptions, parse_scenario
from weft.scenario.link_checks import checked_link, links_of_event
from weft.topologies import Endpoint, FabricSpec, LinkChoice, LinkSpec, TopologyError
from weft.topologies.builder import FabricBuilder
from weft.topologies.graph import to_networkx


def parallel(*rates_bps: int) -> FabricSpec:
    """Two leaves under one spine: links of these rates from the first leaf, one link from the second."""
    builder = FabricBuilder()
    leaves, spine = [builder.add_switch(0, "leaf") for _ in range(2)], builder.add_switch(0, "spine")
    links = [LinkSpec(rate_bps, 10**6, 512 * 1024) for rate_bps in rates_bps]
    for leaf in leaves:
        builder.add_host([leaf], links[0])
    for link in links:
        builder.add_link(leaves[0], spine, link)
    builder.add_link(leaves[1], spine, links[0])
    return builder.build({})


FABRIC = parallel(10**10, 10**10, 4 * 10**10)
"""Ports 2, 3 and 4 of p0l0 lead to ports 1, 2 and 3 of p0s0."""


def weights_at(fabric: FabricSpec, switch: str, failures: Failures = NO_FAILURES) -> list[dict[int, object]]:
    """Return the weight and the watched port of every member, by port, group by group."""
    groups = (
        each for each in ShortestPaths(fabric, 0).plan(failures)[switch] if isinstance(each, finsy.P4ActionProfileGroup)
    )
    return [{member.member_id: member.weight for member in group.members or ()} for group in groups]


def test_each_link_is_a_next_hop_weighted_by_its_rate_that_watches_its_own_port() -> None:
    assert weights_at(FABRIC, "p0l0") == [{2: (1, 2), 3: (1, 3), 4: (4, 4)}]
    assert weights_at(FABRIC, "p0s0") == [{1: (1, 1), 2: (1, 2), 3: (4, 3)}]
    assert weights_at(FABRIC, "p0l1") == []
    assert weights_at(parallel(10**10, 10**10), "p0l0") == [{2: (1, 2), 3: (1, 3)}]


@pytest.mark.parametrize(("mode", "groups"), [("flow", 1), ("adaptive", 4)])
def test_groups_on_bmv2_watch_no_ports_and_keep_their_weights(mode: LoadBalancingMode, groups: int) -> None:
    planner = Planner(FABRIC)
    on_bmv2 = Settings(features=(LoadBalancingSettings(mode),), target=BMV2)
    routes = planner.plan(on_bmv2, FabricState())["p0l0"].routes
    found = [
        {member.member_id: member.weight for member in each.members or ()}
        for each in routes
        if isinstance(each, finsy.P4ActionProfileGroup)
    ]
    assert found == [{2: 1, 3: 1, 4: 4}] * groups
    # What has not changed is not written again.
    assert planner.plan(on_bmv2, FabricState())["p0l0"].routes is routes
    embedded = planner.plan(Settings(), FabricState())["p0l0"].routes
    assert {2: (1, 2), 3: (1, 3), 4: (4, 4)} in [
        {member.member_id: member.weight for member in each.members or ()}
        for each in embedded
        if isinstance(each, finsy.P4ActionProfileGroup)
    ]


def test_one_of_several_links_fails() -> None:
    failures = NO_FAILURES.with_link(FABRIC.link_between("p0l0:4", "p0s0:3"))
    assert weights_at(FABRIC, "p0l0", failures) == [{2: (1, 2), 3: (1, 3)}]
    failures = failures.with_link(FABRIC.link_between("p0s0:1", "p0l0:2"))
    assert weights_at(FABRIC, "p0l0", failures) == []
    assert [port.number for port in failures.live_ports(FABRIC.switch("p0l0"))] == [3]
    routing = ShortestPaths(FABRIC, 0)
    before = routing.plan(NO_FAILURES)
    assert routing.plan(failures) != before
    assert routing.plan(failures.without_link(FABRIC.link_at(Endpoint("p0l0", 2)))) != before
    assert routing.plan(NO_FAILURES) == before


def test_ports_that_are_down_name_the_link() -> None:
    spine = FABRIC.switch("p0s0")
    states = {(spine.device_id, 2): False, (spine.device_id, 4): False}
    links = [FABRIC.link_between("p0l0:3", "p0s0"), FABRIC.link_between("p0l1", "p0s0")]
    assert failures_of(FABRIC, states) == NO_FAILURES.with_link(links[0]).with_link(links[1])
    assert peers_of_ports_down(FABRIC, spine.device_id, states) == ["p0l0:3", "p0l1"]


def test_a_tree_avoids_the_link_that_is_down() -> None:
    for port in (2, 3, 4):
        others = [FABRIC.link_at(Endpoint("p0l0", other)) for other in {2, 3, 4} - {port}]
        failures = NO_FAILURES.with_link(others[0]).with_link(others[1])
        tree = plan_tree(FABRIC, 0, ["h0", "h1"], failures)
        assert Endpoint("p0s0", port - 1) in set(tree.ports())
        assert not tree.is_hit_by(failures)
        assert tree.is_hit_by(NO_FAILURES.with_link(FABRIC.link_at(Endpoint("p0l0", port))))


@pytest.mark.parametrize(
    ("rates", "weights"),
    [
        ([5, 5, 5], [1, 1, 1]),
        ([100, 400], [1, 4]),
        ([100, 25, 40], [20, 5, 8]),
        ([10**9, 10**9 + 1], [32, 32]),
        ([1, 10**12], [1, 64]),
    ],
)
def test_weights_are_the_rates_in_small_numbers(rates: list[int], weights: list[int]) -> None:
    assert member_weights(rates) == weights
    assert sum(weights) <= MOST_WEIGHT + len(weights)


def test_names_of_links() -> None:
    links = FABRIC.links_between("p0s0", "p0l0")
    assert [FABRIC.link_name(link) for link in links] == [
        "p0l0:2<->p0s0:1",
        "p0l0:3<->p0s0:2",
        "p0l0:4<->p0s0:3",
    ]
    assert FABRIC.link_name(FABRIC.link_between("p0s0", "p0l1")) == "p0l1<->p0s0"
    assert [named_link(FABRIC, FABRIC.link_name(link)) for link in FABRIC.links] == list(FABRIC.links)
    assert FABRIC.link_between("p0l0:3", "p0s0") == FABRIC.link_between("p0s0:2", "p0l0") == links[1]
    with refused(
        TopologyError,
        valid="p0l0:2<->p0s0:1, p0l0:3<->p0s0:2, p0l0:4<->p0s0:3",
        problem="p0l0<->p0s0 names several links",
    ):
        FABRIC.link_between("p0l0", "p0s0")
    with refused(
        TopologyError,
        valid="p0l0:2<->p0s0:1, p0l0:3<->p0s0:2, p0l0:4<->p0s0:3",
        problem="p0l0:2<->p0s0:2 names no link",
    ):
        FABRIC.link_between("p0l0:2", "p0s0:2")
    with refused(
        TopologyError,
        valid="h0:0, p0l0:1, p0l0:2, p0s0:1, p0l0:3, p0s0:2, p0l0:4, p0s0:3, … p0s0:4",
        problem="unknown port 'p0l0:7'",
    ):
        FABRIC.link_at(Endpoint("p0l0", 7))


def test_two_nodes_choose_all_links_between_them_and_ports_single_one_out() -> None:
    links = list(FABRIC.links_between("p0l0", "p0s0"))
    options = FabricOptions(clock="virtual")
    for text, chosen in (
        ("p0l0<->p0s0", links),
        ("p0s0-p0l0", links),
        ("p0l0:3<->p0s0:2", links[1:2]),
        ("p0s0:2<->p0l0", links[1:2]),
        ("p0l0:*<->p0s0:[13]", [links[0], links[2]]),
        ("p0l0:3<->p0s0:1", []),
    ):
        assert LinkChoice.parse(text).links_of(FABRIC) == chosen
        if chosen:
            event = EventSection(link=text, state="down")
            assert links_of_event(FABRIC, options, event, "events[0]") == chosen
    with refused(BadInputError, place="link", valid="p0l0:2<->p0s0:1, p0l0:3<->p0s0:2, p0l0:4<->p0s0:3"):
        checked_link(FABRIC, options, "p0l0", "p0s0", "link")
    with refused(
        BadInputError,
        place="events[0].link",
        valid="h0<->p0l0, p0l0:2<->p0s0:1, p0l0:3<->p0s0:2, p0l0:4<->p0s0:3, … p0l1<->p0s0",
    ):
        links_of_event(FABRIC, options, EventSection(link="p0l0:3<->p0s0:1", state="down"), "events[0]")


def test_a_graph_of_parallel_links_is_a_multigraph() -> None:
    graph = to_networkx(FABRIC)
    assert graph.is_multigraph()
    assert graph.number_of_edges("p0l0", "p0s0") == 3
    assert graph.number_of_edges() == len(FABRIC.links)


def test_traffic_goes_on_over_the_links_that_are_left() -> None:
    scenario = parse_scenario(
        {"clock": "virtual", "events": [{"link": "p0l0:3<->p0s0:2", "state": "down", "at": "20us"}]}
    )
    with Fabric(FABRIC, clock="virtual", events=scenario.options.events) as fabric:
        fabric.permutation(4 << 20)
        fabric.schedule_link("p0l0:2", "p0s0", "down")
        fabric.permutation(1 << 20)
        results = fabric.summary()
        stats = fabric.lab.switch_stats()
    assert [event.link for event in results.link_events] == ["p0l0:3<->p0s0:2", "p0l0:2<->p0s0:1"]
    assert all(event.happened_ps is not None for event in results.link_events)
    assert stats is not None
    ports = stats["switches"]["p0l0"]["ports"]
    assert ports["4"]["transmit"]["transmitted"]["packets"] > 0
