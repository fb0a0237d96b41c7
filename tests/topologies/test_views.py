"""Text description and SVG drawing show every node and link."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.refusals import refused
from weft import topologies
from weft.topologies import LinkSpec, LinkStyle, TopologyError, leaf_spine, with_scale_up
from weft.topologies.builder import FabricBuilder
from weft.topologies.kinds import from_parameters
from weft.topologies.kinds.dragonfly import dragonfly
from weft.topologies.kinds.hyperx import hyperx
from weft.topologies.kinds.torus import torus

SVG = "{http://www.w3.org/2000/svg}"


def test_description_names_everything() -> None:
    fabric = leaf_spine()
    text = topologies.describe(fabric)
    assert text.startswith("2 planes x (4 leaves + 2 spines), 8 hosts, 12 switches, 32 links")
    for name in [host.name for host in fabric.hosts] + [switch.name for switch in fabric.switches]:
        assert name in text
    assert "10 Gb/s, 1 µs, queue 524288 B" in text
    assert "base RTT" not in topologies.describe(leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=1))


def test_description_lists_codes_that_only_this_fabric_has() -> None:
    text = topologies.describe(leaf_spine(host_rate_bps=100e9, oversubscription=3))
    assert "INT rate codes of this fabric (Gb/s): 11=33.3333" in text
    assert "INT rate codes" not in topologies.describe(leaf_spine())


def test_svg_has_every_node_and_link_inside_the_page(tmp_path: Path) -> None:
    fabric = leaf_spine(planes=3, leaves=4, spines=2)
    path = topologies.draw(fabric, tmp_path / "fabric.svg")
    root = ElementTree.parse(path).getroot()
    width = float(root.attrib["width"])
    labels = {element.text for element in root.iter(f"{SVG}text")}
    assert {switch.name for switch in fabric.switches} | {host.name for host in fabric.hosts} <= labels
    assert len(list(root.iter(f"{SVG}line"))) == len(fabric.links)
    boxes = [element for group in root.iter(f"{SVG}g") for element in group.iter(f"{SVG}rect")]
    assert all(float(box.attrib["x"]) >= 0 for box in boxes)
    assert all(float(box.attrib["x"]) + float(box.attrib["width"]) <= width for box in boxes)


def test_link_colours_can_be_given() -> None:
    svg = topologies.to_svg(leaf_spine(planes=1), lambda link: topologies.LinkStyle("tomato", note="40 %"))
    assert 'stroke="tomato"' in svg
    assert "40 %</title>" in svg


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with refused(TopologyError, valid="'.svg', '.png', '.html'", problem="unknown suffix '"):
        topologies.draw(leaf_spine(), tmp_path / "fabric.jpeg")


def test_plain_values_are_complete_and_build_the_same_fabric() -> None:
    fabric = leaf_spine(planes=1, leaves=2, spines=1)
    plain = json.loads(json.dumps(topologies.as_dict(fabric)))
    assert [switch["name"] for switch in plain["switches"]] == [switch.name for switch in fabric.switches]
    assert plain["hosts"][0]["nics"][0]["ipv6"] == "fd00::1/64"
    assert plain["switches"][0]["ports"][0]["link"]["rate_bps"] == 10_000_000_000
    assert topologies.from_parameters(plain["parameters"]) == fabric


def test_ranks_of_a_host_are_drawn_as_one_host_with_a_link_each() -> None:
    fabric = with_scale_up(leaf_spine(planes=1, leaves=4, spines=1, hosts_per_leaf=2), 4, rail_optimised=True)
    root = ElementTree.fromstring(topologies.to_svg(fabric))
    names = [each.text for each in root.iter(f"{SVG}text")]
    assert [name for name in names if name and name.startswith("host ")] == ["host 0", "host 1"]
    titles = [each.text or "" for each in root.iter(f"{SVG}title")]
    assert "host 0: ranks h0, h2, h4, h6" in titles
    from_ranks = [line for line in root.iter(f"{SVG}line") if (line[0].text or "").startswith("h")]
    assert len(from_ranks) == 8
    assert len({line.get("x1") for line in from_ranks}) == 8


def test_a_failed_link_is_dashed_and_crossed_out() -> None:
    fabric = leaf_spine(planes=1)
    bad = fabric.link_between("p0l0", "p0s1")

    def style(link: topologies.FabricLink) -> topologies.LinkStyle:
        return topologies.LinkStyle("red" if link == bad else "grey", failed=link == bad)

    for most_links in (None, 1):
        root = ElementTree.fromstring(topologies.to_svg(fabric, style, most_links=most_links))
        (dashed,) = [line for line in root.iter(f"{SVG}line") if line.get("stroke-dasharray")]
        assert dashed.get("stroke") == "red"
        assert len([path for path in root.iter(f"{SVG}path") if path.get("stroke") == "red"]) == 1


def test_sixteen_thousand_endpoints_are_drawn_in_groups() -> None:
    fabric = leaf_spine(planes=8, leaves=64, spines=32, hosts_per_leaf=32)
    drawing = topologies.to_svg(fabric, most_links=4096)
    assert len(drawing) < 100_000
    titles = [each.text or "" for each in ElementTree.fromstring(drawing).iter(f"{SVG}title")]
    assert "512 × host: h0 – h511" in titles
    assert "16 × leaf: p7l48 – p7l63" in titles
    assert drawing.count("8,192 cables,") == drawing.count("128 a line") + drawing.count("512 a line") == 4
    joined = [int(title.split()[0]) for title in titles if " links, " in title]
    assert sum(joined) == len(fabric.links)


@pytest.mark.parametrize(
    ("build", "texts"),
    [
        (
            lambda: dragonfly(groups=66, routers_per_group=16, global_links_per_router=8, hosts_per_switch=8),
            ["groups 0–2", "48 routers", "384 hosts", "a line is 9 of the 2,079 cables between boxes"],
        ),
        (
            lambda: torus(shape=(16, 16, 16)),
            ["0–3, 4–7, 12–15", "64 nodes", "64 hosts", "a line is 16 of the 3,072 cables between boxes"],
        ),
        (
            lambda: hyperx(shape=(16, 16), hosts_per_switch=8),
            ["16 switches", "128 hosts", "a box has 48 of the 768 cables"],
        ),
        (lambda: torus(shape=(9, 10), planes=2), ["8, 8–9", "2 nodes", "of all planes"]),
        (
            lambda: topologies.fat_tree(k=32),
            ["16 cores", "32 spines", "512 hosts", "8,192 cables,", "512 a line"],
        ),
    ],
    ids=["dragonfly", "torus", "hyperx", "two-planes", "fat_tree"],
)
def test_large_fabrics_are_drawn_in_few_boxes_with_all_cables_counted(
    build: Callable[[], topologies.FabricSpec], texts: list[str]
) -> None:
    fabric = build()
    drawing = topologies.to_svg(fabric, most_links=100)
    root = ElementTree.fromstring(drawing)
    assert len(drawing) < 150_000
    for text in texts:
        assert text in drawing
    titles = [each.text or "" for each in root.iter(f"{SVG}title")]
    between = [re.match(r"(\d+) (?:cables|links)", title) for title in titles]
    inside = [re.search(r"; (\d+) cables between them", title) for title in titles]
    counted = sum(int(each[1]) for each in (*between, *inside) if each)
    assert counted == len(fabric.links)


def test_a_drawing_to_a_file_has_groups_where_there_are_too_many_links(tmp_path: Path) -> None:
    few = topologies.draw(torus(shape=(30, 30)), tmp_path / "few.svg").read_text(encoding="utf-8")
    many = topologies.draw(torus(shape=(40, 40)), tmp_path / "many.svg").read_text(encoding="utf-8")
    assert "p0n899" in few
    assert "p0n899" not in many
    assert "32 nodes" in many


def test_a_failed_cable_between_clusters_is_crossed_out_and_counted() -> None:
    fabric = torus(shape=(8, 16))
    failed = fabric.link_between("p0n0", "p0n1")
    crossing = fabric.link_between("p0n1", "p0n2")
    drawing = topologies.to_svg(
        fabric, lambda link: LinkStyle("red", note="down", failed=link in (failed, crossing)), most_links=1
    )
    assert drawing.count("stroke-dasharray") == 1
    assert f"most: {crossing} down; 1 failed" in drawing


def test_a_graph_of_one_tier_stands_in_a_circle_and_one_of_tiers_in_rows() -> None:
    ring = from_parameters(
        {
            "kind": "graph",
            "switches": [{"role": "node", "count": 6}],
            "hosts": [{"on": "n*"}],
            "links": [{"ends": "n*<->n*"}],
        }
    )
    root = ElementTree.fromstring(topologies.to_svg(ring))
    rows = {box.get("y") for group in root.iter(f"{SVG}g") for box in group if "p0n" in (group[0].text or "")}
    assert len(rows) > 2
    tiers = ElementTree.fromstring(topologies.to_svg(from_parameters({"kind": "graph"})))
    assert len({box.get("y") for group in tiers.iter(f"{SVG}g") for box in group.iter(f"{SVG}rect")}) == 3


def test_parallel_links_are_side_by_side_and_links_of_a_row_are_arcs() -> None:
    builder, link = FabricBuilder(), LinkSpec(10**10, 10**6, 512 * 1024)
    nodes = [builder.add_switch(0, "node") for _ in range(3)]
    top = builder.add_switch(0, "top", tier=1)
    for node in nodes:
        builder.add_host([node], link)
        builder.add_link(node, nodes[(node.index + 1) % 3], link)
    for _ in range(3):
        builder.add_link(nodes[0], top, link)
    fabric = builder.build({})
    drawn = topologies.to_svg(fabric)
    ElementTree.fromstring(drawn)
    lines = re.findall(r"<(line|path) .*? stroke=.*?<title>(\S+)</title></\1>", drawn)
    assert [kind for kind, name in lines if re.fullmatch(r"p0n\d:\d-p0n\d:\d", name)] == ["path"] * 3
    upwards = re.findall(r'<line x1="([\d.]+)".*?<title>p0n0:\d-p0t0:\d</title>', drawn)
    assert len(set(upwards)) == 3
    bad = LinkStyle("red", failed=True)
    for most in (None, 1):
        ElementTree.fromstring(topologies.to_svg(fabric, lambda link: bad, most_links=most))
    assert topologies.describe(fabric).startswith("1 plane x (3 nodes + 1 top), 3 hosts")


def legend_of(drawing: str) -> list[str]:
    return [
        each.text for each in ElementTree.fromstring(drawing).iter(f"{SVG}text") if each.get("class") == "drawn-note"
    ]


def test_a_legend_has_planes_and_the_rates_of_links() -> None:
    fabric = leaf_spine(
        planes=2, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=10**11, fabric_rate_bps=4 * 10**11
    )
    drawing = topologies.to_svg(fabric)
    assert legend_of(drawing) == [
        "plane 0",
        "plane 1",
        "leaf–spine: 400 Gb/s, 4 cables",
        "host–leaf: 100 Gb/s, 8 cables",
    ]
    widths = {each.get("stroke-width") for each in ElementTree.fromstring(drawing).iter(f"{SVG}line")}
    assert len(widths) == 2, "faster links are wider"
    assert legend_of(topologies.to_svg(fabric, lambda _: topologies.LinkStyle("#123456"))) == []


def test_rails_have_colours_of_their_own() -> None:
    fabric = with_scale_up(leaf_spine(planes=1, leaves=4, spines=1, hosts_per_leaf=2), 4, rail_optimised=True)
    drawing = topologies.to_svg(fabric)
    assert legend_of(drawing)[:4] == [f"rail {number}" for number in range(4)]
    colours: dict[str, set[str]] = {}
    for line in ElementTree.fromstring(drawing).iter(f"{SVG}line"):
        (title,) = line.iter(f"{SVG}title")
        leaf = next(name for name in ("p0l0", "p0l1", "p0l2", "p0l3") if name in str(title.text))
        colours.setdefault(leaf, set()).add(str(line.get("stroke")))
    assert all(len(each) == 1 for each in colours.values())
    assert len(set.union(*colours.values())) == 4
    assert "rail" not in topologies.to_svg(with_scale_up(leaf_spine(planes=1, leaves=4, spines=1, hosts_per_leaf=4), 4))


def test_a_thousand_hosts_are_few_lines_with_counts(tmp_path: Path) -> None:
    fabric = leaf_spine(planes=2, leaves=32, spines=16, hosts_per_leaf=32)
    assert len(fabric.hosts) == 1024
    drawing = topologies.draw(fabric, tmp_path / "fabric.svg").read_text(encoding="utf-8")
    assert drawing.count("<line ") < 200
    assert "2,048 cables," in drawing


def test_a_drawing_follows_the_reader_s_colour_scheme() -> None:
    drawing = topologies.to_svg(leaf_spine(planes=1, leaves=2, spines=1))
    assert "prefers-color-scheme: dark" in drawing
    assert '<rect class="drawn-ground"' in drawing
    assert "drawn-ground {" not in topologies.to_svg(leaf_spine(planes=1, leaves=2, spines=1), background=None)
