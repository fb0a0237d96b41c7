"""Metrics of fabrics: closed forms of the literature, brute force on small graphs, and what the output says."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from statistics import fmean

import networkx
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import topologies
from weft.commands.topology import topology
from weft.topologies import FabricSpec, LinkSpec, fat_tree, leaf_spine
from weft.topologies.bisection import Network, bisection
from weft.topologies.builder import FabricBuilder
from weft.topologies.kinds.dragonfly import dragonfly
from weft.topologies.kinds.hyperx import hyperx
from weft.topologies.kinds.rail_only import rail_only
from weft.topologies.kinds.torus import torus
from weft.topologies.metrics import Bisection, PlaneMetrics, fabric_bisection, fabric_metrics

LINK = LinkSpec(10**10, 10**6, 512 * 1024)


def plane_of(fabric: FabricSpec) -> PlaneMetrics:
    (plane,) = fabric_metrics(fabric).planes
    return plane


def bisection_of(fabric: FabricSpec) -> Bisection:
    found = plane_of(fabric).bisection
    assert found is not None
    return found


@pytest.mark.parametrize(("k", "n", "exact"), [(4, 1, True), (4, 2, True), (6, 2, False), (4, 3, False)])
def test_a_torus_has_its_closed_forms(k: int, n: int, exact: bool) -> None:
    """Dally and Towles, section 5.2: 2·k^(n-1) links in each direction, for even k; n·⌊k/2⌋ hops."""
    plane = plane_of(torus(shape=(k,) * n))
    assert plane.bisection is not None
    assert (plane.bisection.links, plane.bisection.exact) == (2 * k ** (n - 1), exact)
    assert plane.bisection.bandwidth_bps == plane.bisection.links * 10**10
    assert plane.diameter == n * (k // 2)
    # k/4 hops a dimension on average, over all pairs of which a switch with itself is one.
    assert plane.mean_hops == pytest.approx(n * k / 4 * k**n / (k**n - 1))
    assert (plane.switch_cables, plane.ports, plane.ports_per_switch) == (
        n * k**n,
        (2 * n + 1) * k**n,
        (2 * n + 1,) * 2,
    )
    assert plane.oversubscription == ()


def test_shortest_paths_of_a_torus_are_multinomial() -> None:
    """In a 3 x 3 torus two switches in a row have one path, all others two."""
    diversity = plane_of(torus(shape=(3, 3))).path_diversity
    assert diversity is not None
    assert (diversity.smallest, diversity.mean, diversity.exact) == (1, 1.5, True)


@pytest.mark.parametrize(("k", "exact"), [(4, True), (8, False)])
def test_a_fat_tree_has_full_bisection_bandwidth(k: int, exact: bool) -> None:
    """Al-Fares et al., 2008: k³/4 hosts, so that k³/8 links join the halves; (k/2)² paths between pods."""
    plane = plane_of(fat_tree(k=k))
    assert plane.bisection is not None
    assert (plane.bisection.links, plane.bisection.of_hosts) == (k**3 // 8, 1)
    assert plane.bisection.exact is exact
    assert [(each.tier, each.roles, each.largest) for each in plane.oversubscription] == [
        (0, ("leaf",), 1),
        (1, ("spine",), 1),
    ]
    assert plane.diameter == 4
    assert plane.path_diversity is not None
    assert plane.path_diversity.smallest == k // 2
    pairs_in_pod, pairs_apart = k // 2 - 1, (k - 1) * k // 2
    assert plane.path_diversity.mean == pytest.approx(
        (pairs_in_pod * k / 2 + pairs_apart * k * k / 4) / (pairs_in_pod + pairs_apart)
    )


def test_oversubscription_of_leaves_and_spines_is_what_was_asked_for() -> None:
    plane = plane_of(leaf_spine(host_rate_bps=100e9, oversubscription=3))
    assert [(each.smallest, each.largest) for each in plane.oversubscription] == [pytest.approx((3, 3))]
    assert plane.bisection is not None
    assert plane.bisection.of_hosts == pytest.approx(1 / 3)
    two_tiers = plane_of(fat_tree(oversubscription=2, core_oversubscription=4)).oversubscription
    assert [each.largest for each in two_tiers] == [pytest.approx(2), pytest.approx(4)]


def test_a_dragonfly_has_three_hops_at_most_and_one_path_between_groups() -> None:
    plane = plane_of(dragonfly())
    assert plane.diameter == 3
    assert plane.bisection is not None
    assert not plane.bisection.exact
    assert "Kernighan-Lin" in plane.bisection.method
    # 4 | 5 groups have 20 links between them; the halves are equal, which splits a group.
    assert plane.bisection.hosts == (36, 36)
    assert plane.bisection.links <= 24


@pytest.mark.parametrize(("shape", "links"), [((4, 4), 16), ((2, 4), 4), ((2, 2, 2), 4)])
def test_a_hyperx_is_cut_across_its_cheapest_dimension(shape: tuple[int, ...], links: int) -> None:
    """Ahn et al., 2009: a cut of a dimension of S switches has (S/2)² links for each row of it."""
    fabric = hyperx(shape=shape)
    assert (bisection_of(fabric).links, bisection_of(fabric).exact) == (links, True)
    assert plane_of(fabric).diameter == len(shape)


def test_rails_without_links_between_them_have_no_bandwidth_there() -> None:
    plane = plane_of(rail_only(rails=4, hosts_per_leaf=2))
    assert plane.pairs_without_path == 4 * 6
    assert (plane.diameter, plane.mean_hops, plane.path_diversity) == (0, 0, None)


def test_networks_that_no_link_joins_are_halved_each() -> None:
    fabric = rail_only(rails=4, hosts_per_leaf=2, host_rate_bps=100e9)
    found = bisection_of(fabric)
    # A host of each rail at either side, and a switch passes on what it sends.
    assert (found.bandwidth_bps, found.hosts, found.of_hosts) == (4 * 100 * 10**9, (4, 4), 1)
    assert (found.links, found.networks, found.exact) == (0, 4, True)
    assert "400 Gb/s between 4 and 4 hosts" in topologies.describe(fabric)
    assert "in 4 networks that no link joins" in topologies.describe(fabric)


def test_a_single_switch_is_halved_within() -> None:
    fabric = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=5)
    plane = plane_of(fabric)
    assert (plane.path_diversity, plane.diameter) == (None, 0)
    assert plane.bisection is not None
    assert (plane.bisection.bandwidth_bps, plane.bisection.hosts) == (2 * 10**10, (2, 3))
    assert "within the switch" in topologies.describe(fabric)


def test_a_single_host_has_no_halves() -> None:
    fabric = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=1)
    assert plane_of(fabric).bisection is None
    assert "none: no two hosts are joined" in topologies.describe(fabric)


@pytest.mark.parametrize("name", ["rail-only", "two_networks", "single"])
def test_all_commands_have_one_bisection_bandwidth(name: str) -> None:
    fabric = {
        "rail-only": rail_only(rails=4, hosts_per_leaf=3),
        "two_networks": leaf_spine(planes=2, leaves=4, spines=2),
        "single": leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=4),
    }[name]
    planes = fabric_metrics(fabric).planes
    shown = sum(len(each.planes) * each.bisection.bandwidth_bps for each in planes if each.bisection)
    assert fabric_bisection(fabric) == (shown, True)


def test_parallel_links_are_paths_of_their_own() -> None:
    builder = FabricBuilder()
    nodes = [builder.add_switch(0, "node") for _ in range(3)]
    for node in nodes:
        builder.add_host([node], LINK)
    for parallel, (a, b) in ((2, nodes[:2]), (3, nodes[1:])):
        for _ in range(parallel):
            builder.add_link(a, b, LINK)
    fabric = builder.build({})
    plane = plane_of(fabric)
    assert plane.path_diversity is not None
    assert (plane.path_diversity.smallest, plane.path_diversity.mean) == (2, fmean((2, 3, 6)))
    assert len(topologies.paths(fabric, "h0", "h2")) == 6
    assert plane.bisection is not None
    assert (plane.bisection.hosts, plane.bisection.links) == ((1, 2), 2)


def test_planes_that_differ_are_measured_apart() -> None:
    builder = FabricBuilder()
    rows = [[builder.add_switch(plane, "node") for _ in range(3)] for plane in range(3)]
    for place in range(3):
        builder.add_host([row[place] for row in rows], LINK)
    for row in rows:
        builder.add_link(row[0], row[1], LINK)
        builder.add_link(row[1], row[2], LINK)
    builder.add_link(rows[1][0], rows[1][2], LINK)
    fabric = builder.build({})
    assert [(each.planes, each.diameter) for each in fabric_metrics(fabric).planes] == [
        ((0, 2), 2),
        ((1,), 1),
    ]
    text = topologies.describe(fabric)
    assert "planes 0, 2, each:" in text
    assert "plane 1:" in text


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Small connected or unconnected networks, some switches without hosts."""
    count = draw(st.integers(2, 7))
    hosts = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    pairs = draw(st.lists(st.sampled_from(list(combinations(range(count), 2))), unique=True))
    rates = draw(st.lists(st.integers(1, 9), min_size=len(pairs), max_size=len(pairs)))
    links = {pair: (rate, 1) for pair, rate in zip(pairs, rates, strict=True)}
    return Network(hosts, [int(not each) for each in hosts], links, [range(count)])


@settings(max_examples=60, deadline=None)
@given(networks())
def test_small_bisections_are_those_of_brute_force(network: Network) -> None:
    count, total = len(network.hosts), sum(network.hosts)
    found = bisection(network)
    if len(network.edges) < 2:
        assert found is None
        return
    assert found is not None
    cut, _, exact = found
    assert exact
    cuts = (
        (
            abs(total - 2 * sum(each for switch, each in enumerate(network.hosts) if half >> switch & 1)),
            sum(rate for (a, b), (rate, _) in network.links.items() if (half >> a ^ half >> b) & 1),
        )
        for half in range(1 << count)
    )
    assert (cut.difference, cut.bandwidth_bps) == min(cuts)


def test_shuffled_coordinates_do_not_hide_a_narrow_place() -> None:
    """Two complete graphs of ten that one link joins, their switches in turn in every natural order."""
    links = {pair: (1, 1) for side in (0, 1) for pair in combinations(range(side, 20, 2), 2)} | {(0, 1): (1, 1)}
    found = bisection(Network([1] * 20, [0] * 20, links, [range(20)]))
    assert found is not None
    assert (found[0].links, found[2]) == (1, False)


def test_a_sample_of_sources_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.topologies.metrics.MOST_PATH_STEPS", 100)
    fabric = torus(shape=(4, 4))
    diversity = plane_of(fabric).path_diversity
    assert diversity is not None
    assert (diversity.sources, diversity.switches, diversity.exact) == (3, 16, False)
    assert "(from 3 of 16 switches with hosts)" in topologies.describe(fabric)


def test_hops_are_networkx_s() -> None:
    fabric = dragonfly(groups=5, hosts_per_switch=1)
    graph = networkx.Graph([(link.a.node, link.b.node) for link in fabric.links])
    lengths = dict(networkx.all_pairs_shortest_path_length(graph))
    between = [lengths[a.name][b.name] - 2 for a, b in combinations(fabric.hosts, 2)]
    plane = plane_of(fabric)
    assert (plane.diameter, plane.mean_hops) == (max(between), pytest.approx(fmean(between)))


def test_the_command_prints_them_as_a_table_and_as_json(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("fabric: {shape: [4, 4], planes: 1, hosts_per_leaf: 1}\n")
    table = CliRunner().invoke(topology, ["show", str(scenario)])
    assert table.exit_code == 0, table.output
    assert "at most 4 (diameter), mean 2.133 over pairs of hosts" in table.output
    assert "80 Gb/s over 8 links between 8 and 8 hosts" in table.output
    assert "(exact: all halves)" in table.output
    printed = CliRunner().invoke(topology, ["show", "--json", str(scenario)])
    expected = json.loads(json.dumps(asdict(fabric_metrics(torus(shape=(4, 4))))))
    assert json.loads(printed.output)["metrics"]["planes"][0]["bisection"] == expected["planes"][0]["bisection"]
