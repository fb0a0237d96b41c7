"""Circuits: cubes and an optical core in each configuration, and what no circuit switch can join."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import prod
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft import topologies
from weft.cli import weft
from weft.clocks.environment import CIRCUITS_STAY
from weft.errors import EnvironmentLacksError
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.topologies import FabricSpec, LinkSpec, TopologyError
from weft.topologies.builder import FabricBuilder
from weft.topologies.circuits import CircuitConfiguration
from weft.topologies.kinds.cubes import CubesSection, cubes
from weft.topologies.kinds.optical_core import OpticalCoreSection, matching, matching_count, optical_core
from weft.topologies.kinds.torus import torus
from weft.topologies.metrics import fabric_metrics

LINK = LinkSpec(10**10, 10**6, 512 * 1024)


def _links_by_coordinates(fabric: FabricSpec) -> Counter[frozenset[tuple[int, ...]]]:
    at = {switch.name: switch.coordinates for switch in fabric.switches}
    return Counter(frozenset((at[link.a.node], at[link.b.node])) for link in fabric.links if link.a.node in at)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 3),
    st.lists(st.tuples(*[st.integers(1, 3)] * 3), min_size=1, max_size=4, unique=True),
)
def test_cubes_are_the_torus_of_each_shape(cube: int, grids: list[tuple[int, int, int]]) -> None:
    grids = [grid for grid in grids if prod(grid) == prod(grids[0])]
    shapes = {f"s{number}": tuple(cube * each for each in grid) for number, grid in enumerate(grids)}
    fabric = cubes(cube=cube, shapes=shapes)
    for name, shape in shapes.items():
        joined = fabric.in_configuration(name)
        assert _links_by_coordinates(joined) == _links_by_coordinates(torus(shape=shape))
        assert topologies.from_parameters(joined.parameters) == joined


def test_what_a_configuration_leaves_alone() -> None:
    fabric = cubes(cube=2, shapes={"long": (2, 2, 8), "compact": (4, 4, 2)}, planes=2)
    other = fabric.in_configuration("compact")
    assert other.hosts == fabric.hosts
    for before, after in zip(fabric.switches, other.switches, strict=True):
        assert (before.name, before.address, before.networks) == (after.name, after.address, after.networks)
        assert [port.interface for port in before.ports] == [port.interface for port in after.ports]
    assert other.in_configuration("long") == fabric
    assert fabric.configurations == (fabric, other)


def test_a_pod_has_the_circuit_switches_of_tpu_v4() -> None:
    """Jouppi et al. 2023, section 2: 64 cubes of 4³ and 48 circuit switches, each with both faces of all cubes."""
    fabric = cubes(shapes={"pod": (16, 16, 16)})
    assert fabric.circuits is not None
    assert [len(switch.ports) for switch in fabric.circuits.switches] == [2 * 64] * 48
    assert len(fabric.circuits.configurations[0].circuits) == 48 * 64


@given(st.integers(2, 17))
def test_matchings_join_every_two_leaves_once(leaves: int) -> None:
    rounds = [list(matching(leaves, number)) for number in range(matching_count(leaves))]
    assert sorted(pair for pairs in rounds for pair in pairs) == list(combinations(range(leaves), 2))
    for pairs in rounds:
        assert len({leaf for pair in pairs for leaf in pair}) == 2 * len(pairs)


def test_an_optical_core_joins_leaves() -> None:
    fabric = optical_core(leaves=4, matchings={"all": (0, 1, 2), "twice": (0, 0, 1)})
    assert fabric_metrics(fabric).planes[0].diameter == 1
    twice = fabric.in_configuration("twice")
    assert len(twice.links_between("p0l0", "p0l3")) == 2
    assert twice.hops_between("p0l0", "p0l1") == 2
    odd = optical_core(leaves=3, matchings={"one": (0,)})
    assert [port.is_dark for switch in odd.switches for port in switch.ports] == [False, True] + [False] * 4
    assert odd.switches[0].fabric_ports == ()
    assert "p0o0" in topologies.describe(odd)
    assert "dark" in topologies.describe(odd)


def test_sections_describe_what_the_builders_do() -> None:
    section = CubesSection(cube=2, shapes={"a": [2, 2, 4], "b": [4, 2, 2]}, configuration="b", planes=1)
    fabric = section.build()
    assert fabric.circuits is not None
    assert fabric.circuits.present == "b"
    assert fabric == cubes(cube=2, shapes={"a": (2, 2, 4), "b": (4, 2, 2)}, configuration="b", hosts_per_switch=2)
    assert section.host_count == len(fabric.hosts)
    core = OpticalCoreSection(leaves=6, matchings={"a": [0, 1]}, planes=1, hosts_per_leaf=3)
    assert core.host_count == len(core.build().hosts) == 18


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"cube": 2, "shapes": {"a": (2, 2, 3)}},
            {"place": "a", "valid": "multiples of 2, such as 2 or 4"},
        ),
        ({"cube": 2, "shapes": {"a": (2, 2, 4), "b": (2, 2, 2)}}, {"place": "b", "valid": "the same"}),
        ({"cube": 2, "shapes": {"a": (2, 2)}}, {"place": "a", "valid": "3"}),
        ({"shapes": {}}, {"valid": "at least 1", "problem": "shapes has no configuration"}),
        ({"configuration": "no"}, {"valid": "torus", "problem": "unknown configuration 'no' of"}),
    ],
)
def test_broken_cubes_are_named(arguments: dict[str, object], message: dict[str, str]) -> None:
    with refused(TopologyError, **message):
        cubes(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("matchings", "message"),
    [
        ({"a": (0, 3)}, {"valid": "0 to 2", "problem": "a: matching=3 is out of range"}),
        ({"a": (0, 1), "b": (0,)}, {"valid": "one for each uplink", "problem": "b has 1 matchings, a 2"}),
        ({}, {"valid": "at least 1", "problem": "matchings has no configuration"}),
    ],
)
def test_broken_optical_cores_are_named(matchings: dict[str, tuple[int, ...]], message: dict[str, str]) -> None:
    with refused(TopologyError, **message):
        optical_core(leaves=4, matchings=matchings)
    with refused(TopologyError, valid="at most 500000", problem="4096 leaves of 300 uplinks has"):
        optical_core(leaves=4096, matchings={"a": (0,) * 300})
    with refused(TopologyError, valid="at most 256", problem="8 leaves of 1 uplinks has 257"):
        optical_core(leaves=8, matchings={f"c{number}": [0] for number in range(257)})
    with refused(TopologyError, valid="at most 500000", problem="a torus of 64 cubes has 524288"):
        cubes(cube=4, shapes={f"c{number}": (16, 16, 16) for number in range(32)})


def test_impossible_circuits_are_refused() -> None:
    def build(pairs: list[tuple[int, int]], other_rate: bool = False) -> None:
        builder = FabricBuilder()
        leaves = [builder.add_switch(0, "leaf") for _ in range(3)]
        for leaf in leaves:
            builder.add_host([leaf], LINK)
        core = [builder.add_circuit_switch(0), builder.add_circuit_switch(0)]
        links = [LINK, LINK, LinkSpec(10**9, 10**6, 512 * 1024) if other_rate else LINK]
        ports = [builder.add_circuit_port(leaf, core[0], link) for leaf, link in zip(leaves, links, strict=True)]
        ports.append(builder.add_circuit_port(leaves[0], core[1], LINK))
        circuits = tuple((ports[a], ports[b]) for a, b in pairs)
        builder.set_configurations([CircuitConfiguration("only", circuits)], "only")
        builder.build({})

    build([(0, 1)])
    for pairs, message in (
        ([(0, 1), (1, 2)], r"two circuits have p0l1:2"),
        ([(3, 1)], "no circuit can join p0l0:3 and p0l1:2"),
        ([(1, 1)], "no circuit can join"),
    ):
        with pytest.raises(TopologyError, match=message):
            build(pairs)
    with refused(TopologyError, problem="links of different kinds"):
        build([(0, 2)], other_rate=True)
    with refused(TopologyError, problem="has no circuits"):
        torus().in_configuration("any")


def test_configurations_are_shown_and_drawn(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "fabric: {cube: 2, shapes: {long: [2, 2, 4], other: [4, 2, 2]}, planes: 1, hosts_per_leaf: 1}\n",
        encoding="utf-8",
    )
    shown = CliRunner().invoke(weft, ["topology", "show", str(scenario), "--configuration", "other"])
    assert shown.exit_code == 0, shown.output
    assert "12 circuit switches of 4 ports; configurations:" in shown.output
    assert "other: 8 circuits (present" in shown.output
    assert ", by p0o" in shown.output
    picture = tmp_path / "fabric.svg"
    drawn = CliRunner().invoke(weft, ["topology", "draw", str(scenario), "-o", str(picture)])
    assert drawn.exit_code == 0, drawn.output
    assert picture.read_text(encoding="utf-8").count("circuit of p0o") == 8
    refused = CliRunner().invoke(weft, ["topology", "show", str(scenario), "--configuration", "no"])
    assert "unknown configuration 'no' of circuits (valid: long, other)" in str(refused.exception)


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({"circuits": {"schedule": [{"at": "1us", "configuration": "b"}]}}, "circuits.schedule: "),
        ({"traffic": [{"circuits": "b"}]}, "traffic[0].circuits: "),
    ],
)
def test_the_real_clock_changes_no_circuits(keys: dict[str, object], place: str) -> None:
    tree = {
        "clock": "real",
        "fabric": {"cube": 1, "shapes": {"a": [1, 2, 4], "b": [2, 2, 2]}},
        "traffic": [{"incast": "h0"}],
    }
    with pytest.raises(EnvironmentLacksError) as refused:
        run_scenario(parse_scenario({**tree, **keys}))
    assert str(refused.value) == place + CIRCUITS_STAY
