"""InfraGraph: the graph of an infrastructure, and what is refused.

WEFT_INFRAGRAPH names a Python that has the package infragraph (Keysight/infragraph), whose blueprints are read.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from weft.errors import BadInputError
from weft.paths import ROOT
from weft.scenario import load_scenario, parse_scenario
from weft.scenario.topology import build_topology
from weft.topologies import FabricSpec
from weft.topologies.errors import TopologyError
from weft.topologies.files import read_graph
from weft.topologies.files.formats import infragraph
from weft.topologies.files.formats.infragraph import read_infragraph

EXAMPLE = ROOT / "examples" / "topology_files" / "infragraph.infra.yaml"
TEXT = EXAMPLE.read_text(encoding="utf-8")
BLUEPRINTS = """
import sys
from infragraph.blueprints.devices.generic.generic_switch import Switch
from infragraph.blueprints.devices.generic.server import Server
from infragraph.blueprints.fabrics.clos_fat_tree_fabric import ClosFatTreeFabric
from infragraph.blueprints.fabrics.closfabric import ClosFabric
made = {"clos": ClosFabric(), "fat": ClosFatTreeFabric(Switch(8), Server(1), 3, [100, 200, 400])}
open(sys.argv[2], "w").write(made[sys.argv[1]].serialize(encoding=sys.argv[2].rpartition(".")[2]))
"""


def build(path: Path) -> FabricSpec:
    return build_topology(parse_scenario({"fabric": {"path": str(path)}}).fabric)


def test_instances_are_hosts_and_switches_and_edges_are_links() -> None:
    section = load_scenario(EXAMPLE.with_name("infragraph.yaml")).fabric
    fabric = build_topology(section)
    assert section.notes == (
        "edges inside devices, left out: 1; ranks_per_host and scale_up describe the inside of hosts",
    )
    assert [[nic.switch for nic in host.nics] for host in fabric.hosts] == [["p0l0"] * 2] * 2 + [["p0l1"] * 2] * 2
    assert {(nic.link.rate_bps, nic.link.delay_ps) for host in fabric.hosts for nic in host.nics} == {(10**11, 500_000)}
    assert {
        (a, b): [each.link.rate_bps for each in fabric.links_between(f"p0{a}", f"p0{b}")]
        for a in ("l0", "l1")
        for b in ("s0", "s1")
    } == {(a, b): [200 * 10**9] for a in ("l0", "l1") for b in ("s0", "s1")}


REFUSED = {
    "a key too many": ("name: two-tier", "names: two-tier", r"unknown key 'names' \(valid: name, description"),
    "an older schema": ("name: two-tier", "connections: []", r"connections of an older schema are not read"),
    "no such device": ("device: server", "device: host", r"instances\[0\].device: no device is named 'host'"),
    "no such instance": ("instance: spine", "instance: core", r"edges\[2\].ep2.instance: no instance is named 'core'"),
    "no such component": ("component: nic}", "component: cx7}", r"ep1.component: no component is named 'cx7'"),
    "no such link": ("link: uplink", "link: up", r"edges\[2\].link: no link is named 'up' \(valid: access, uplink\)"),
    "another scheme": ("scheme: one2one, link: uplink", "scheme: ring, link: uplink", r"edges\[2\].scheme: 'ring'"),
    "a port twice": ('"port[1]"', '"port[0]"', r"edges\[3\]: port 'spine.0.port.0' has a link at edges\[2\] already"),
    "a port too high": ('"port[4:6]"', '"port[4:9]"', r"edges\[2\].ep1.component: \[4:9\] is out of range"),
    "a slice that is none": ('"port[1]"', '"port[x]"', r"'port\[x\]' is not valid \(valid: a name, name\[3\]"),
    "a step of 0": ('"port[4:6]"', '"port[4:6:0]"', r"\[4:6:0\] has step 0"),
    "transfers": (
        "choice: gigabytes_per_second, gigabytes_per_second: 25",
        "choice: gigatransfers_per_second, gigatransfers_per_second: 8",
        r"links\[1\].physical: gigatransfers_per_second do not tell the rate",
    ),
    "a rate of no number": ("gigabits_per_second: 100", "gigabits_per_second: x", r"per_second 'x' is not valid"),
    "a latency of no unit": ("choice: ns, ns", "choice: s, s", r"links\[0\].physical.latency: choice 's'"),
    "many": ("count: 6", "count: 99999999", r"devices\[1\].components\[0\].count: 99999999.* 1 to 1048576"),
    "a name twice": ("{name: leaf, ", "{name: server, ", r"instances\[1\]: name 'server' is repeated"),
    "no host, no switch": ("choice: port", "choice: memory", r"instances\[1\]: instance 'leaf'.* is neither"),
    "joined hosts": ('"leaf[0]", component: "port[0:4]"', '"server[2:4]", component: nic', "joins hosts"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_with_its_path(tmp_path: Path, case: str) -> None:
    old, new, message = REFUSED[case]
    assert old in TEXT
    path = tmp_path / "broken.yaml"
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(BadInputError, match=message) as raised:
        build(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("devices: &a [*a]\ninstances: []\n", "stands within what it stands for"),
        ("devices: " + "[" * 100 + "\ninstances: []\n", "nested more than|is not YAML"),
        ("devices: []\ninstances: []\nedges: 3\n", "edges: must be a list, is 3"),
        ("devices: [3]\ninstances: []\n", r"devices\[0\]: must be a mapping, is 3"),
        ('{"devices": [], "instances": [], "instances": []}', "key 'instances' is repeated"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "broken.yaml").write_text(text)
    with pytest.raises(BadInputError, match=message):
        build(tmp_path / "broken.yaml")


def test_many_endpoints_are_refused_before_they_are_listed(tmp_path: Path) -> None:
    text = TEXT.replace("count: 6", "count: 1000000").replace("switch, count: 2", "switch, count: 1000000")
    text = text.replace('"leaf[1]", component: "port[0:4]"', "leaf, component: port")
    (tmp_path / "many.yaml").write_text(text)
    with pytest.raises(BadInputError, match=r"too many endpoints \(valid: at most 2000000, and"):
        build(tmp_path / "many.yaml")


@pytest.mark.skipif(
    not os.environ.get("WEFT_INFRAGRAPH"), reason="WEFT_INFRAGRAPH names no Python with the package infragraph"
)
@pytest.mark.parametrize(
    ("name", "hosts", "switches", "rates_gbps"),
    [("clos.yaml", 4, 7, {400}), ("fat.yaml", 64, 80, {200}), ("fat.json", 64, 80, {200})],
)
def test_public_blueprints_are_read(tmp_path: Path, name: str, hosts: int, switches: int, rates_gbps: set[int]) -> None:
    path = tmp_path / name
    subprocess.run([os.environ["WEFT_INFRAGRAPH"], "-c", BLUEPRINTS, path.stem, str(path)], check=True, env={})
    assert read_graph(path).nodes
    fabric = build(path)
    assert (len(fabric.hosts), len(fabric.switches)) == (hosts, switches)
    between = {each.link.rate_bps // 10**9 for each in fabric.links if not each.a.node.startswith("h")}
    assert between == rates_gbps
    assert {nic.link.rate_bps for host in fabric.hosts for nic in host.nics} == {10**11}


def kinds(*devices: tuple[str, list[str]]) -> str:
    """Return an infrastructure of devices, each with its name and the devices within, and an instance of the first."""
    held = [
        {"name": name, "components": [{"name": each, "choice": "device", "count": 1} for each in within]
         or [{"name": "port", "choice": "port", "count": 1}]}
        for name, within in devices
    ]  # fmt: skip
    return json.dumps({"devices": held, "instances": [{"name": "leaf", "device": devices[0][0], "count": 1 << 20}]})


def levels(count: int, width: int = 20) -> list[tuple[str, list[str]]]:
    """Return devices of which each contains all of the next level."""
    names = [[f"d{level}_{number}" for number in range(width)] for level in range(count)]
    return [(name, below) for at, level in enumerate(names) for name in level for below in [[*names, []][at + 1]]]


def test_devices_that_share_their_parts_are_followed_once() -> None:
    graph = read_infragraph(kinds(*levels(9)).encode())
    assert not graph.nodes
    assert f"instances that no edge joins, left out: {1 << 20}" in graph.notes


@pytest.mark.parametrize("devices", [levels(10), [("a", ["b"]), ("b", ["a"])]])
def test_devices_nested_too_deeply_are_refused(devices: list[tuple[str, list[str]]]) -> None:
    with pytest.raises(TopologyError, match=r"is nested too deeply \(valid: 8 levels\)"):
        read_infragraph(kinds(*devices).encode())


def test_the_endpoints_of_all_edges_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(infragraph, "_MOST_ENDPOINTS", 1000)
    tree = json.loads(kinds(("switch", [])))
    one, many = ({"instance": f"leaf[{chosen}]", "component": "switch"} for chosen in ("0", "0:400"))
    tree["links"] = [{"name": "link"}]
    tree["edges"] = [{"ep1": one, "ep2": many, "scheme": "one2one", "link": "link"}] * 3
    with pytest.raises(TopologyError, match=r"edges\[2\].ep2: too many endpoints .*1000 of all edges"):
        read_infragraph(json.dumps(tree).encode())
    tree["edges"] = [{**tree["edges"][0], "ep1": {"instance": "leaf", "component": "switch." * 20}}]
    with pytest.raises(TopologyError, match=r"edges\[0\].ep1.component: 21 names \(valid: at most 10 between dots\)"):
        read_infragraph(json.dumps(tree).encode())
