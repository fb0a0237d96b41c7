"""Graphs that a scenario lists: switches, hosts and links, and what does not go together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft import topologies
from weft.cli import weft
from weft.errors import BadInputError
from weft.scenario import parse_scenario
from weft.scenario.topology import build_topology
from weft.topologies import TopologyError, leaf_spine
from weft.topologies.graph_lists import Hosts, Links, Switches
from weft.topologies.kinds.graph import graph

DUMBBELL = """
name: dumbbell
clock: virtual
fabric:
  planes: 1
  switches:
    - {role: router, count: 2}
  hosts:
    - {on: r*, count: 2, rate: 25Gbps}
  links:
    - {ends: r0<->r1, rate: 10Gbps, delay: 5us}
    - {ends: r0<->r1, rate: 40Gbps, delay: 5us}
events:
  - {link: "p0r0:3<->p0r1:3", state: down}
traffic:
  - {collective: allreduce, sizes: [4K]}
"""


def test_a_listed_graph_runs_and_its_results_are_read_again(tmp_path: Path) -> None:
    scenario, out = tmp_path / "dumbbell.yaml", tmp_path / "out"
    scenario.write_text(DUMBBELL, encoding="utf-8")
    done = CliRunner().invoke(weft, ["run", str(scenario), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "p0r0:3<->p0r1:3" in done.output
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    fabric = topologies.from_parameters(results["made_by"]["fabric"])
    assert [link.link.rate_bps for link in fabric.links_between("p0r0", "p0r1")] == [10**10, 4 * 10**10]
    assert fabric.hosts[3].nic(0).link.rate_bps == 25 * 10**9
    reported = CliRunner().invoke(weft, ["report", str(out)])
    assert reported.exit_code == 0, reported.output


def test_the_defaults_are_a_leaf_spine_fabric() -> None:
    made, usual = graph(), leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
    assert (made.hosts, made.links) == (usual.hosts, usual.links)
    section = build_topology(parse_scenario({"fabric": {"kind": "graph", "planes": 1}}).fabric)
    assert section == made == topologies.from_parameters(made.parameters)


def test_hosts_of_several_nics_and_ranks() -> None:
    scenario = parse_scenario(
        {
            "fabric": {
                "planes": 2,
                "switches": [{"role": "leaf", "count": 2}, {"role": "spine", "tier": 1}],
                "hosts": [{"on": "l0+l1", "count": 3}],
                "links": [{"ends": "l*<->s0", "count": 2}],
            }
        }
    )
    fabric = build_topology(scenario.fabric)
    assert scenario.fabric.host_count == len(fabric.hosts) == 3
    assert scenario.fabric.nics_per_host == fabric.nics_per_host == 4
    assert scenario.fabric.leaf_count == 2
    assert [nic.switch for nic in fabric.hosts[0].nics] == ["p0l0", "p0l1", "p1l0", "p1l1"]
    assert len(fabric.links_between("p1l1", "p1s0")) == 2
    scenario = parse_scenario({"fabric": {"kind": "graph", "ranks_per_host": 4}})
    fabric = build_topology(scenario.fabric)
    assert scenario.fabric.host_count == len(fabric.hosts) == 8
    assert fabric.scale_up is not None
    assert topologies.from_parameters(fabric.parameters) == fabric


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"hosts": [Hosts("x0")]}, {"place": "hosts on x0", "valid": "l0, l1, s0"}),
        ({"hosts": [Hosts("l*+s0")]}, {"valid": "one at each NIC", "problem": "'l*' names 2 switches"}),
        ({"links": [Links("l0<->l0")]}, {"place": "links l0<->l0", "valid": "two different ones"}),
        ({"links": [Links("nothing")]}, {"place": "links", "problem": "'nothing' names no link"}),
        (
            {"links": [{"ends": "l0<->s0", "speed": 1}]},
            {"place": "links[0]", "valid": "ends, count, rate_bps, delay_ps, queue_capacity_bytes"},
        ),
        ({"links": [{}]}, {"place": "links[0]", "problem": "inks"}),
        ({"switches": [Switches("leaf", 0)]}, {"valid": "1 to 65536", "problem": "count=0 is out of range"}),
        (
            {"switches": [Switches("leaf", 2), Switches("lookout")]},
            {"problem": "several roles, leaf, lookout"},
        ),
        (
            {"hosts": [Hosts("l0", rate_bps=0)]},
            {"valid": "1000000 to 100000000000000", "problem": "rate_bps=0 is out of range"},
        ),
    ],
)
def test_what_does_not_go_together_is_refused(keys: dict[str, object], message: dict[str, str]) -> None:
    with refused(TopologyError, **message):
        graph(**keys)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"hosts_per_leaf": 2}, ["fabric.hosts_per_leaf", "hosts say how many"]),
        ({"rail_optimised": True, "ranks_per_host": 2}, ["fabric.rail_optimised"]),
        ({"switches": []}, ["fabric.switches"]),
        ({"links": [{"ends": "l0"}]}, ["fabric.links", "l*<->s*"]),
        ({"leaves": 3}, ["fabric.leaves", "leaf_spine"]),
    ],
)
def test_keys_that_mean_nothing_are_refused(keys: dict[str, object], words: list[str]) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_scenario({"fabric": {"kind": "graph", **keys}})
    for word in words:
        assert word in str(caught.value)
