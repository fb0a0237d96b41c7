"""Paths that are chosen by demand: valid, never worse than hashes, near the bound, and the same after a repair."""

from __future__ import annotations

import random
from ipaddress import ip_network

import finsy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controller.any_graph import connected_fabrics, failures_one_by_one
from tests.controller.p4info_fixture import fabric_p4info
from weft.controller.demand import Demand, DemandSettings
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.features import Settings
from weft.controller.plan import FabricState, Planner
from weft.controller.routing.balanced_paths import Links
from weft.controller.routing.demand import ROUTE_ENTRIES, ByDemand
from weft.controller.routing.demand_paths import DemandPaths, Stream
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.topologies import FabricSpec, fat_tree, leaf_spine
from weft.topologies.distances import distances_from

LEAF_SPINE = leaf_spine(planes=1, leaves=8, spines=8, hosts_per_leaf=8)


def matrix(fabric: FabricSpec, pairs: dict[tuple[int, int], int], nic: int = 0) -> tuple[Demand, ...]:
    return tuple(Demand(f"h{a}", f"h{b}", nic, size_bytes) for (a, b), size_bytes in sorted(pairs.items()))


def permutation(fabric: FabricSpec, seed: int, size_bytes: int = 1 << 20) -> tuple[Demand, ...]:
    order = list(range(len(fabric.hosts)))
    random.Random(seed).shuffle(order)
    return matrix(fabric, dict.fromkeys(zip(order, [*order[1:], order[0]], strict=True), size_bytes))


@st.composite
def demands(draw: st.DrawFn) -> tuple[FabricSpec, tuple[Demand, ...], list[Failures]]:
    fabric = draw(connected_fabrics())
    host = st.integers(0, len(fabric.hosts) - 1)
    pairs = st.tuples(host, host).filter(lambda pair: pair[0] != pair[1])
    found = draw(st.dictionaries(pairs, st.integers(1, 1 << 24), min_size=1, max_size=12))
    return fabric, matrix(fabric, found), draw(failures_one_by_one(fabric))


def planned(fabric: FabricSpec, demand: tuple[Demand, ...]) -> ByDemand:
    plane = ByDemand(fabric, 0)
    plane.expect(demand)
    return plane


def carried_ps(fabric: FabricSpec, plane: ByDemand, demand: tuple[Demand, ...], failures: Failures) -> int:
    """Follow each queue pair by the entries to its destination, and return the fullest link's load.

    Fails where a path is no shortest one or uses what is down. Only for demand of which every hop is chosen.
    """
    entities = plane.plan(failures)
    routes = {
        name: {
            ip_network(str(dict(each.match or {})["destination"])): int(each.action.args["port"])
            for each in of_switch
            if isinstance(each, finsy.P4TableEntry)
            and isinstance(each.action, finsy.P4TableAction)
            and each.action.name == "set_next_hop"
        }
        for name, of_switch in entities.items()
    }
    loads: dict[tuple[str, int], int] = {}
    for each in demand:
        nic = fabric.host(each.destination).nic(each.nic)
        at, exit_ = (fabric.switch_of(host, each.nic).name for host in (each.source, each.destination))
        hops = distances_from(at, lambda name: (port.peer.node for port in failures.live_ports(fabric.switch(name))))
        for left in range(hops[exit_], 0, -1):
            found = [prefix for prefix in routes[at] if nic.ipv4.ip in prefix]
            port = fabric.switch(at).port(routes[at][max(found, key=lambda prefix: prefix.prefixlen)])
            assert failures.is_up(at, port)
            key = (at, port.number)
            loads[key] = loads.get(key, 0) + each.size_bytes * 8 * 10**12 // port.link.rate_bps
            at = port.peer.node
            assert left or at == exit_
        assert at == exit_
    return max(loads.values())


@given(demands())
@settings(deadline=None, max_examples=60)
def test_no_placement_is_worse_than_hashes_or_better_than_the_bound(
    case: tuple[FabricSpec, tuple[Demand, ...], list[Failures]],
) -> None:
    fabric, demand, sequence = case
    plane = planned(fabric, demand)
    for failures in [NO_FAILURES, *sequence]:
        plane.plan(failures)
        loads = plane.loads()
        assert loads.bound_ps <= loads.fullest_ps + len(demand)
        assert loads.fullest_ps <= loads.ecmp_ps


@given(demands())
@settings(deadline=None, max_examples=60)
def test_a_plan_depends_on_the_failures_alone(case: tuple[FabricSpec, tuple[Demand, ...], list[Failures]]) -> None:
    fabric, demand, sequence = case
    plane = planned(fabric, demand)
    first = plane.plan(NO_FAILURES)
    for failures in sequence:
        assert plane.plan(failures) == planned(fabric, demand).plan(failures)
    assert plane.plan(NO_FAILURES) == first


@given(demands())
@settings(deadline=None, max_examples=60)
def test_every_destination_is_reached_by_a_shortest_path(
    case: tuple[FabricSpec, tuple[Demand, ...], list[Failures]],
) -> None:
    """Each route to a host goes by a port that the shortest paths have for its switch."""
    fabric, demand, sequence = case
    plane, shortest = planned(fabric, demand), ShortestPaths(fabric, 0)
    own = {str(each.nic(0).ipv4.ip) + "/32": each for each in fabric.hosts}
    for failures in [NO_FAILURES, *sequence]:
        with_hosts, without = plane.plan(failures), shortest.plan(failures)
        ports = shortest.destinations()
        for name, entities in with_hosts.items():
            added = [each for each in entities if each not in without[name]]
            for each in added:
                assert isinstance(each, finsy.P4TableEntry)
                assert isinstance(each.action, finsy.P4TableAction)
                destination = dict(each.match or {})["destination"]
                if destination not in own:
                    continue  # the same host by IPv6
                place = next(
                    place
                    for place, switch in enumerate(fabric.switches)
                    if any(port.peer.node == own[destination].name for port in switch.host_ports)
                )
                assert ports[name][each.action.args["port"]] >> place & 1


@pytest.mark.parametrize("seed", range(5))
def test_a_permutation_gets_a_link_for_each_flow(seed: int) -> None:
    """A permutation of a non-blocking fabric has such paths (D. Kőnig, 1916); hashes put several flows on some link."""
    demand = permutation(LEAF_SPINE, seed)
    plane = planned(LEAF_SPINE, demand)
    plane.plan(NO_FAILURES)
    loads = plane.loads()
    assert loads.fullest_ps == loads.bound_ps == (1 << 20) * 8 * 10**12 // LEAF_SPINE.links[-1].link.rate_bps
    assert loads.ecmp_ps > 2 * loads.fullest_ps


def test_entries_carry_the_load_that_is_foretold() -> None:
    demand = permutation(LEAF_SPINE, 7)
    far = tuple(each for each in demand if _leaf(each.source) != _leaf(each.destination))
    plane = planned(LEAF_SPINE, far)
    assert carried_ps(LEAF_SPINE, plane, far, NO_FAILURES) == plane.loads().fullest_ps
    failures = NO_FAILURES.with_link(LEAF_SPINE.link_between("p0l0", "p0s0"))
    assert carried_ps(LEAF_SPINE, plane, far, failures) == plane.loads().fullest_ps


def _leaf(host: str) -> int:
    return int(host[1:]) // 8


def test_a_failure_moves_only_what_it_cuts() -> None:
    plane = planned(LEAF_SPINE, permutation(LEAF_SPINE, 3))
    before = plane.plan(NO_FAILURES)
    failures = NO_FAILURES.with_link(LEAF_SPINE.link_between("p0l0", "p0s0"))
    after, plain = plane.plan(failures), ShortestPaths(LEAF_SPINE, 0).plan(failures)
    moved = [each for name in before for each in after[name] if each not in before[name] and each not in plain[name]]
    # The link carried one flow in each direction, to hosts with two addresses each.
    assert 0 < len(moved) <= 2 * 2
    assert plane.plan(NO_FAILURES) == before


def test_fat_trees_spread_over_cores_too() -> None:
    fabric = fat_tree(pods=4, leaves_per_pod=4, spines_per_pod=4, cores_per_spine=4, hosts_per_leaf=4)
    plane = planned(fabric, permutation(fabric, 1))
    plane.plan(NO_FAILURES)
    loads = plane.loads()
    assert 1.5 * loads.fullest_ps <= loads.ecmp_ps


def test_planes_have_routes_of_their_own_demand() -> None:
    fabric = leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=2)
    demand = matrix(fabric, {(0, 2): 1000, (1, 3): 1000}, nic=1)
    planner, by_demand = Planner(fabric), Settings(routing="demand", features=(DemandSettings(demand),))
    plans = planner.plan(by_demand, FabricState())
    plain = Planner(fabric).plan(Settings(), FabricState())
    changed = {name for name, plan in plans.items() if list(plan) != list(plain[name])}
    assert changed == {"p1l0"}
    assert [each.destinations for each in planner.demand_loads()] == [0, 2]


def test_without_demand_routes_are_the_shortest_paths() -> None:
    plans = Planner(LEAF_SPINE).plan(Settings(routing="demand"), FabricState())
    plain = Planner(LEAF_SPINE).plan(Settings(), FabricState())
    assert {name: list(plan) for name, plan in plans.items()} == {name: list(plan) for name, plan in plain.items()}


def test_destinations_beyond_the_table_are_left_to_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.controller.routing import demand as module

    monkeypatch.setattr(module, "ROUTE_ENTRIES", 26)
    plane = planned(LEAF_SPINE, permutation(LEAF_SPINE, 3))
    entities = plane.plan(NO_FAILURES)
    loads = plane.loads()
    assert loads.left_to_ecmp > 0
    assert max(sum(_is_version(each, 4) for each in found) for found in entities.values()) <= 26


def _is_version(entity: object, version: int) -> bool:
    return isinstance(entity, finsy.P4TableEntry) and entity.table_id == f"ipv{version}_lpm"


def test_the_table_is_as_large_as_the_program_says() -> None:
    sizes = {each.preamble.alias: each.size for each in fabric_p4info().tables}
    assert sizes["ipv4_lpm"] == sizes["ipv6_lpm"] == ROUTE_ENTRIES


def test_a_queue_pair_is_not_divided_by_the_bound() -> None:
    links = Links.between(LEAF_SPINE.switches)
    rates = [port.link.rate_bps for switch in LEAF_SPINE.switches for port in switch.fabric_ports]
    entry, exit_ = 0, 1
    chosen = DemandPaths(links, rates).choose([Stream(entry, 0, exit_, (1000,))])
    assert chosen.fullest_ps == chosen.bound_ps == 1000 * 8 * 10**12 // rates[0]
