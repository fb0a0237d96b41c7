"""Text description and SVG drawing show every node and link."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import topologies
from topologies import TopologyError, leaf_spine

SVG = "{http://www.w3.org/2000/svg}"


def test_description_names_everything() -> None:
    fabric = leaf_spine()
    text = topologies.describe(fabric)
    assert text.startswith("2 plane(s) x (4 leaves + 2 spines), 8 hosts, 12 switches, 32 links")
    for name in [host.name for host in fabric.hosts] + [switch.name for switch in fabric.switches]:
        assert name in text
    assert "10 Gb/s, 1 µs, queue 524288 B" in text
    assert "base RTT" not in topologies.describe(leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=1))


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
    with pytest.raises(TopologyError, match=r"unknown suffix '.jpeg' \(valid: '.svg', '.png', '.html'\)"):
        topologies.draw(leaf_spine(), tmp_path / "fabric.jpeg")


def test_plain_values_are_complete_and_build_the_same_fabric() -> None:
    fabric = leaf_spine(planes=1, leaves=2, spines=1)
    plain = json.loads(json.dumps(topologies.as_dict(fabric)))
    assert [switch["name"] for switch in plain["switches"]] == [switch.name for switch in fabric.switches]
    assert plain["hosts"][0]["nics"][0]["ipv6"] == "fd00::1/64"
    assert plain["switches"][0]["ports"][0]["link"]["rate_bps"] == 10_000_000_000
    assert topologies.from_parameters(plain["parameters"]) == fabric
