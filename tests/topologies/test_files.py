"""Topologies from files: what each format says, what is refused and with which words, and the way out and back."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import networkx
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft import topologies
from weft.cli import weft
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.scenario import load_scenario, parse_scenario
from weft.scenario.topology import build_topology
from weft.topologies import FabricSpec, TopologyError
from weft.topologies.files import reading
from weft.topologies.files.writing import written

HPCC = """5 2 5
3 4
0 3 100Gbps 1us 0
1 3 100Gbps 1000ns 0.000000
2 4 25Gbps 0.001ms 0

3 4 400Gbps 2us 0
3 4 400Gbps 2us 0
"""
PIECES = [
    "",
    "0",
    "-1",
    "1e999",
    "9" * 12,
    "\u00b2",
    "\0",
    '"',
    "<",
    ">",
    "{",
    "[",
    "]",
    "null",
    "h0",
    "&lt;",
    "<?x?>",
]
NODES: list[dict[str, object]] = [
    {"id": "a", "type": "host"},
    {"id": "b", "type": "host"},
    {"id": "s", "type": "switch"},
]
EDGES: list[dict[str, object]] = [{"source": "a", "target": "s"}, {"source": "b", "target": "s"}]
KINDS = st.one_of(
    st.fixed_dictionaries(
        {
            "planes": st.integers(1, 2),
            "leaves": st.integers(1, 3),
            "spines": st.integers(1, 3),
            "hosts_per_leaf": st.integers(1, 3),
            "delay": st.sampled_from(["0ns", "1us", "1500ns"]),
            "host_rate": st.sampled_from(["10Gb/s", "25Gb/s", "100Gb/s"]),
        }
    ),
    st.fixed_dictionaries({"kind": st.just("fat_tree"), "planes": st.integers(1, 2)}),
    st.fixed_dictionaries({"kind": st.just("dragonfly"), "planes": st.integers(1, 2)}),
    st.fixed_dictionaries({"kind": st.just("torus"), "planes": st.just(1)}),
    st.fixed_dictionaries({"kind": st.just("hyperx"), "queue_capacity": st.sampled_from(["64KiB", "1MiB"])}),
    st.fixed_dictionaries(
        {"kind": st.just("rail_only"), "ranks_per_host": st.integers(2, 3), "planes": st.integers(1, 2)}
    ),
    st.builds(
        lambda count, parallel, letter: {
            "planes": 2,
            "switches": [{"role": "router", "count": count, "letter": letter, "tier": 0}],
            "hosts": [{"on": f"{letter}*", "rate": "40Gb/s"}],
            "links": [{"ends": f"{letter}*<->{letter}*", "count": parallel, "delay": "3us"}],
        },
        st.integers(2, 4),
        st.integers(1, 3),
        st.sampled_from(["r", "z", "qx"]),
    ),
)


def build(path: Path, **keys: object) -> FabricSpec:
    return build_topology(parse_scenario({"fabric": {"kind": "file", "path": str(path), **keys}}).fabric)


def write(folder: Path, text: str | bytes, name: str = "fabric.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def node_link(nodes: object = NODES, edges: object = EDGES, **keys: object) -> str:
    return json.dumps({"directed": False, "multigraph": False, "nodes": nodes, "edges": edges, **keys})


def graph_of(fabric: FabricSpec) -> tuple[object, ...]:
    """Return what a file says of a fabric; not its ports and addresses."""
    switches = [(each.name, each.role, each.tier, each.plane, each.group, each.coordinates) for each in fabric.switches]
    hosts = [(host.name, [(nic.switch, nic.link) for nic in host.nics]) for host in fabric.hosts]
    links = Counter((frozenset((each.a.node, each.b.node)), each.link) for each in fabric.links)
    return switches, hosts, links


@settings(max_examples=25, deadline=None)
@given(KINDS, st.sampled_from(["node_link", "graphml"]))
def test_every_fabric_is_read_again_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, section: dict[str, object], format_name: str
) -> None:
    fabric = build_topology(parse_scenario({"fabric": section}).fabric)
    path = write(tmp_path_factory.mktemp("files"), written(fabric, format_name), "fabric.any")
    ranks = {"ranks_per_host": section["ranks_per_host"]} if "ranks_per_host" in section else {}
    read = build(path, **ranks, rail_optimised=bool(ranks))
    path.unlink()
    assert graph_of(read) == graph_of(fabric)
    assert read.scale_up == fabric.scale_up
    again = topologies.from_parameters(json.loads(json.dumps(read.parameters)))
    assert (again.hosts, again.switches, again.links) == (read.hosts, read.switches, read.links)
    assert topologies.from_parameters(again.parameters) == again


def test_the_text_of_hpcc_has_hosts_switches_and_parallel_links(tmp_path: Path) -> None:
    fabric = build(write(tmp_path, HPCC))
    assert [(host.nic(0).switch, host.nic(0).link.rate_bps) for host in fabric.hosts] == [
        ("p0l0", 10**11),
        ("p0l0", 10**11),
        ("p0l1", 25 * 10**9),
    ]
    assert {nic.link.delay_ps for host in fabric.hosts for nic in host.nics} == {10**6}
    assert [each.link.delay_ps for each in fabric.links_between("p0l0", "p0l1")] == [2 * 10**6] * 2
    assert topologies.from_parameters(fabric.parameters) == fabric


def test_hpcc_reads_as_many_links_as_the_first_line_says(tmp_path: Path) -> None:
    """The topology.txt of its repository goes on after them."""
    fabric = build(write(tmp_path, HPCC + "0 4 25Gbps 1us 0\n9 9 25Gbps 1us 0.1\nleft over\n", "more"))
    assert graph_of(fabric) == graph_of(build(write(tmp_path, HPCC)))


@pytest.mark.parametrize("edges", ["edges", "links"])
def test_what_networkx_writes_is_read(tmp_path: Path, edges: str) -> None:
    graph = networkx.MultiGraph()
    graph.add_node("a", type="host")
    graph.add_node("b", type="host")
    for name in ("x", "y"):
        graph.add_node(name, type="switch", group=3)
    graph.add_edge("a", "x")
    graph.add_edge("b", "y", rate="50Gb/s")
    graph.add_edges_from([("x", "y", {"rate": "1Gb/s"}), ("x", "y", {"rate": "2Gb/s"})])
    networkx.write_graphml(graph, tmp_path / "fabric.graphml")
    tree = networkx.node_link_data(graph, edges=edges)
    fabrics = [
        build(tmp_path / "fabric.graphml", host_rate="25Gb/s"),
        build(write(tmp_path, json.dumps(tree), "fabric.json"), host_rate="25Gb/s"),
    ]
    assert graph_of(fabrics[0]) == graph_of(fabrics[1])
    assert [host.nic(0).link.rate_bps for host in fabrics[0].hosts] == [25 * 10**9, 50 * 10**9]
    assert [each.link.rate_bps for each in fabrics[0].links_between("p0l0", "p0l1")] == [10**9, 2 * 10**9]
    assert {switch.group for switch in fabrics[0].switches} == {3}


def test_tiers_are_distances_from_hosts_unless_given(tmp_path: Path) -> None:
    nodes = [*NODES, *({"id": name, "type": "switch"} for name in "tuv")]
    edges = [*EDGES, *({"source": a, "target": b} for a, b in ("st", "tu", "uv"))]
    fabric = build(write(tmp_path, node_link(nodes, edges)))
    assert [(each.role, each.tier) for each in fabric.switches] == [
        ("leaf", 0),
        ("spine", 1),
        ("core", 2),
        ("switch", 3),
    ]


def test_the_example_runs_and_paths_are_beside_the_scenario(tmp_path: Path) -> None:
    scenario = ROOT / "examples" / "dual_homed.yaml"
    chosen = load_scenario(scenario)
    assert (chosen.fabric.host_count, chosen.fabric.nics_per_host, chosen.fabric.leaf_count) == (4, 2, 2)
    done = CliRunner().invoke(weft, ["run", str(scenario), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    fabric = topologies.from_parameters(results["made_by"]["fabric"])
    assert fabric.hosts == build_topology(chosen.fabric).hosts


def test_export_writes_to_a_file_or_prints(tmp_path: Path) -> None:
    scenario, out = str(ROOT / "examples" / "dual_homed.yaml"), tmp_path / "out.graphml"
    printed = CliRunner().invoke(weft, ["topology", "export", "graphml", scenario])
    done = CliRunner().invoke(weft, ["topology", "export", "graphml", scenario, "-o", str(out)])
    assert (printed.exit_code, done.exit_code) == (0, 0), done.output
    assert out.read_text(encoding="utf-8") == printed.output
    assert graph_of(build(out)) == graph_of(build_topology(load_scenario(Path(scenario)).fabric))


def edited(index: int, **changes: object) -> str:
    return node_link([{**node, **(changes if at == index else {})} for at, node in enumerate(NODES)])


def edge(**changes: object) -> str:
    return node_link(edges=[{**EDGES[0], **changes}, EDGES[1]])


GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="t" for="node" attr.name="type"/>{}</graphml>'
REFUSED: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", r"line 1: '' is not the beginning of a topology \(valid: the numbers of nodes"),
    "not UTF-8": (b"\xff\xfe1 2 3", "is not UTF-8"),
    "a list": ("[1]", r"line 1: '\[1\]' is not the beginning"),
    "not JSON": ('{"nodes": [}', "line 1: is not JSON"),
    "deep": ('{"nodes":' + "[" * 200_000, "nested too deeply"),
    "a huge integer": ('{"nodes": [{"id": ' + "9" * 5000 + "}]}", "is not JSON in UTF-8: Exceeds"),
    "a key twice": ('{"nodes": [], "nodes": []}', "key 'nodes' is repeated"),
    "not a number": (edge(rate=float("nan")), "NaN is not a number"),
    "an infinite rate": (edge(rate=float("inf")), "Infinity is not a number"),
    "directed": (node_link(directed=True), r"directed: true is not supported \(valid: false"),
    "wrong flag": (node_link(multigraph=1), r"multigraph: 1 is not valid \(valid: true, false\)"),
    "nodes of no list": (node_link(nodes={}), "nodes: must be a list"),
    "a node of no mapping": (node_link(nodes=[1]), r"nodes\[0\]: must be a mapping, is 1"),
    "no edges": ('{"nodes": []}', r"has no edges \(valid: either edges or links\)"),
    "a name of no text": (edited(0, id=[1]), r"nodes\[0\].id: \[1\] is not a name"),
    "a name twice": (edited(1, id="a"), r"nodes\[1\]: node 'a' is at nodes\[0\] already"),
    "an edge twice": (
        node_link(edges=[*EDGES, {"source": "s", "target": "a"}]),
        r"edges\[2\]: edge 's' to 'a': is at edges\[0\] already",
    ),
    "a loop": (edge(source="s"), "joins a node to itself"),
    "no such node": (edge(source="z"), r"edges\[0\]: no node is named 'z' \(valid: a, b, s\)"),
    "unknown attribute": (edge(bandwidth=1), r"unknown attribute 'bandwidth' \(valid: rate, delay"),
    "no type": (edited(2, type=None), r"nodes\[2\]: node 's': type: None is not valid \(valid: host, switch\)"),
    "no hosts": (node_link([{"id": "s", "type": "switch"}], []), "no node is of type host"),
    "an isolated host": (node_link(edges=EDGES[:1]), r"nodes\[1\]: host 'b' has no link"),
    "joined hosts": (edge(target="b"), r"edges\[0\]: joins hosts 'a' and 'b'"),
    "disconnected hosts": (
        node_link(
            [*NODES, {"id": "t", "type": "switch"}], [EDGES[0], {"source": "b", "target": "t"}]
        ),
        "hosts 'a' and 'b' have no path between their NICs 0: no links lead from 's' to 't'",
    ),
    "other NICs": (
        node_link(edges=[*EDGES, {"source": "a", "target": "s", "key": 1}], multigraph=True),
        r"has NICs in planes \[0(, 0)?\], most others in",
    ),
    "a gap of planes": (edited(2, plane=2), r"hosts have NICs in planes \[2\]"),
    "wrong tier": (edited(2, tier=-1), r"nodes\[2\]: node 's': tier: -1 is not valid \(valid: 0 to 15\)"),
    "a truth as tier": (edited(2, tier=True), "tier: True is not valid"),
    "wrong role": (edited(2, role="Leaf 1"), "role: 'Leaf 1' is not valid"),
    "wrong coordinates": (edited(2, coordinates=[1, "x"]), "coordinates: .* is not valid"),
    "an unreached switch": (
        node_link([*NODES, {"id": "t", "type": "switch"}]),
        r"nodes\[3\]: switch 't' has no path to a host",
    ),
    "a rate without a unit": (edge(rate=100), r"edges\[0\]: edge 'a' to 's': rate: 100 has no unit"),
    "a rate out of range": (edge(rate="1b/s"), "rate: '1b/s' is out of range"),
    "an endless rate": (edge(rate="infGb/s"), "rate: 'infGb/s' is not a rate"),
    "a negative delay": (edge(delay="-1us"), "delay: '-1us' is not a time"),
    "a queue of a list": (edge(queue_capacity=[]), "queue_capacity: .* is not a size"),
    "a document type": (
        '<!DOCTYPE g [<!ENTITY a "b">]>' + GRAPHML.format("<graph/>"),
        "line 1: DOCTYPE 'g' is refused",
    ),
    "not XML": ("<graphml>", "line 1: is not XML"),
    "an unknown encoding": ('<?xml version="1.0" encoding="none"?><graphml/>', "line 1: "),
    "other XML": ("<svg/>", r"<svg> within the whole is not supported \(valid: graphml\)"),
    "deep XML": ("<graphml>" + "<graph>" * 100_000, "<graph> within <graph> is not supported"),
    "no graph": (GRAPHML.format(""), "has 0 graphs"),
    "a directed graph": (GRAPHML.format('<graph edgedefault="directed"/>'), "'directed' is not supported"),
    "no such key": (
        GRAPHML.format('<graph><node id="a"><data key="u">host</data></node></graph>'),
        r"line 1: no key 'u' of a node \(valid: t\)",
    ),
    "no id": (GRAPHML.format("<graph><node/></graph>"), "line 1: <node> has no id"),
    "a default of no type": (
        '<graphml><key id="t" for="node" attr.name="type"><default>hub</default></key>'
        '<graph><node id="a"/></graph></graphml>',
        "node 'a': type: 'hub' is not valid",
    ),
    "few counts": ("5 2\n", "line 1: '5 2' is not the beginning"),
    "a count of no number": (HPCC.replace("5 2 5", "5 x 5"), "line 1: 'x' is out of range"),
    "too many nodes": ("900000 1 1\n0\n1 0 1Gbps 1us 0\n", "line 1: 900000 nodes are too many for 1 links"),
    "fewer links": (HPCC.replace("5 2 5", "5 2 6"), "line 1: 6 links, but 5 lines of links follow"),
    "a switch twice": (HPCC.replace("3 4\n0", "3 3\n0"), r"line 2: lists 2 switches, 1 different"),
    "no such switch": (HPCC.replace("3 4\n0", "3 9\n0"), r"line 2: '9' is out of range \(valid: 0 to 4\)"),
    "a short line": (HPCC.replace("1us 0", "1us"), r"line 3: '0 3 100Gbps 1us' is not a link \(valid: src"),
    "losses": (HPCC.replace("1us 0", "1us 0.1"), r"line 3: error_rate '0.1' .* \(valid: 0;"),
    "losses of no number": (HPCC.replace("1us 0", "1us nan"), "line 3: error_rate 'nan'"),
    "a rate of no unit": (HPCC.replace("25Gbps", "25"), r"line 5: edge '2' to '4': rate: '25' is not a rate"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_broken_files_are_refused_with_the_place(tmp_path: Path, case: str) -> None:
    content, message = REFUSED[case]
    path = write(tmp_path, content, "broken")
    with pytest.raises(BadInputError, match=message) as raised:
        build(path)
    assert f"{path}" in str(raised.value)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["node_link", "graphml", "hpcc"]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(PIECES)), min_size=1, max_size=4),
)
def test_damaged_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, format_name: str, damage: list[tuple[float, int, str]]
) -> None:
    text = HPCC if format_name == "hpcc" else written(topologies.leaf_spine(planes=1), format_name)
    for place, length, piece in damage:
        at = int(place * len(text))
        text = text[:at] + piece + text[at + length :]
    path = write(tmp_path_factory.mktemp("damaged"), text)
    problem = ""
    try:
        fabric = build(path, format=format_name)
    except BadInputError as error:
        problem = str(error)
    assert str(path) in problem if problem else topologies.from_parameters(fabric.parameters) == fabric


def test_no_encoding_hides_a_document_type(tmp_path: Path) -> None:
    text = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE g>' + GRAPHML.format("<graph/>")
    with refused(BadInputError, place="scenario: fabric.path: fabric.txt, line 1", valid="GraphML without one"):
        build(write(tmp_path, text.encode("utf-16")), format="graphml")


def test_files_that_cannot_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(BadInputError, place="scenario: fabric.path", problem="json cannot be read: No such"):
        build(tmp_path / "none.json")
    with refused(BadInputError, place="scenario: fabric.path", problem="/dev/zero is not a file"):
        build(Path("/dev/zero"))
    scenario = write(tmp_path, 'fabric: {path: "a\\0b"}', "scenario.yaml")
    with refused(BadInputError, place="path", valid="no null character"):
        load_scenario(scenario)
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", 10)
    with refused(BadInputError, place="scenario: fabric.path", valid="up to 10 B"):
        build(write(tmp_path, HPCC))


def test_keys_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, HPCC)
    with refused(BadInputError, place="scenario: fabric.planes", valid="1"):
        build(path, planes=3)
    with refused(BadInputError, place="scenario: fabric.hosts_per_leaf", problem="the file says how many"):
        build(path, hosts_per_leaf=3)
    with pytest.raises(BadInputError, match="format"):
        build(path, format="dot")
    with refused(BadInputError, place="scenario: fabric.path", problem="path"):
        parse_scenario({"fabric": {"kind": "file"}})
    with refused(TopologyError, valid="node_link, graphml", problem="'dot' is not written"):
        written(build(path), "dot")
