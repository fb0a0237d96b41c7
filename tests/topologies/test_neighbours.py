"""LLDP neighbours and SONiC's configurations: the graph that devices see together, and what contradicts itself.

WEFT_SONIC_DBSYNCD names a local clone of sonic-net/sonic-dbsyncd, whose output of lldpctl is read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.errors import BadInputError
from weft.paths import ROOT
from weft.scenario import load_scenario, parse_scenario
from weft.scenario.topology import build_topology
from weft.topologies import FabricSpec
from weft.topologies.files.neighbours import Device, Neighbour, _Join, joined, natural

FILES = ROOT / "examples" / "topology_files"
LLDPCTL = Path(os.environ.get("WEFT_SONIC_DBSYNCD", "")) / "tests" / "subproc_outputs" / "lldpctl.json"
Change = Callable[[dict[str, Any]], None]


def build(path: Path, **keys: object) -> FabricSpec:
    return build_topology(parse_scenario({"fabric": {"path": str(path), **keys}}).fabric)


def notes(path: Path) -> tuple[str, ...]:
    return tuple(parse_scenario({"fabric": {"path": str(path)}}).fabric.notes)


def ports_of(lldp: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a file of lldpd, by port; changes of them change the file."""
    return {port: entry for each in lldp["lldp"]["interface"] for port, entry in each.items()}


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    def copy(kind: str, **changes: Change) -> Path:
        folder = tmp_path / kind
        shutil.copytree(FILES / kind, folder)
        for name, change in changes.items():
            tree = json.loads((folder / f"{name}.json").read_text())
            change(tree)
            (folder / f"{name}.json").write_text(json.dumps(tree))
        return folder

    return copy


def test_lldp_joins_what_devices_see() -> None:
    section = load_scenario(FILES / "lldp.yaml").fabric
    fabric = build_topology(section)
    assert section.notes == (
        "management ports, left out: 4",
        "links that one end reports and the other does not: leaf1/swp32 to spine1",
    )
    assert [host.nic(0).switch for host in fabric.hosts] == ["p0l0", "p0l0", "p0l1", "p0l1"]
    assert all(len(fabric.links_between(leaf, spine)) == 1 for leaf in ("p0l0", "p0l1") for spine in ("p0s0", "p0s1"))


def test_sonic_gives_names_rates_and_parallel_links() -> None:
    section = load_scenario(FILES / "sonic.yaml").fabric
    fabric = build_topology(section)
    assert section.notes == (
        "ports with admin_status down, left out: 2",
        "switches without a file, left out with their links: core0",
    )
    assert [host.nic(0).switch for host in fabric.hosts] == ["p0l0", "p0l0", "p0l1", "p0l1"]
    assert {nic.link.rate_bps for host in fabric.hosts for nic in host.nics} == {10**11}
    for leaf in ("p0l0", "p0l1"):
        assert [each.link.rate_bps for each in fabric.links_between(leaf, "p0s0")] == [4 * 10**11] * 2


def test_a_configuration_with_the_feature_lldp_is_sonics(changed: Callable[..., Path]) -> None:
    folder = changed("sonic", leaf0=lambda tree: tree.update(FEATURE={"lldp": {}, "bgp": {"state": "enabled"}}))
    assert len(build(folder).switches) == 3


def test_one_file_is_one_switch() -> None:
    for name in ("lldp", "sonic"):
        fabric = build(FILES / name / "leaf0.json")
        assert (len(fabric.hosts), len(fabric.switches)) == (2, 1)


def test_neighbours_are_known_by_their_short_names_and_macs(changed: Callable[..., Path]) -> None:
    def renamed(tree: dict[str, Any]) -> None:
        for entry in ports_of(tree).values():
            entry["chassis"] = {f"{name}.pod.example": about for name, about in entry["chassis"].items()}
            entry["port"] = {"id": {"type": "mac", "value": "02:00:00:00:00:01"}, "descr": entry["port"]["id"]["value"]}

    devices = ("leaf0", "leaf1", "spine0", "spine1")
    fabric = build(changed("lldp", **dict.fromkeys(devices, renamed)))
    assert (len(fabric.hosts), len(fabric.switches), len(fabric.links)) == (4, 4, 8)


def test_parallel_links_without_port_names_need_one_side_that_names_them(changed: Callable[..., Path]) -> None:
    def nameless(tree: dict[str, Any]) -> None:
        for keys in tree["DEVICE_NEIGHBOR"].values():
            del keys["port"]

    assert len(build(changed("sonic", spine0=nameless)).links) == 8


def dropped(port: str) -> Change:
    def change(tree: dict[str, Any]) -> None:
        interfaces = tree["lldp"]["interface"]
        tree["lldp"]["interface"] = [each for each in interfaces if port not in each]

    return change


def twice(tree: dict[str, Any]) -> None:
    tree["lldp"]["interface"].append({"swp1": ports_of(tree)["swp2"]})


def elsewhere(tree: dict[str, Any]) -> None:
    entry = ports_of(tree)["swp1"]
    entry["port"]["id"]["value"] = "swp32"


def itself(tree: dict[str, Any]) -> None:
    entry = ports_of(tree)["swp1"]
    entry["chassis"] = {"leaf0": entry["chassis"]["gpu0"]}


def control_characters(tree: dict[str, Any]) -> None:
    entry = ports_of(tree)["swp1"]
    entry["chassis"] = {"gpu\x1b[31m": entry["chassis"]["gpu0"]}


def key(table: str, row: str, **values: object) -> Change:
    return lambda tree: tree[table][row].update(values)


REFUSED: dict[str, tuple[str, dict[str, Change], str]] = {
    "two neighbours": ("lldp", {"leaf0": twice}, r"leaf0.json: swp1: has neighbours 'gpu0' and 'gpu1' \(valid: one"),
    "other ends": (
        "lldp",
        {"spine0": elsewhere},
        r"spine0/swp1 leads to leaf0/swp32, which leads to spine1|leaf0/swp31 leads to spine0/swp1, which",
    ),
    "itself": ("lldp", {"leaf0": itself}, r"leaf0.json: swp1: 'leaf0' is its own neighbour"),
    "control characters": ("lldp", {"leaf0": control_characters}, r"swp1: 'gpu\\x1b\[31m' is not a name"),
    "no lldp": ("lldp", {"leaf1": lambda tree: tree.update(lldp=3)}, r"leaf1.json: lldp: must be a mapping, is 3"),
    "no chassis": ("lldp", {"leaf1": lambda tree: ports_of(tree)["swp1"].pop("chassis")}, r"swp1: chassis: must be"),
    "no hostname": (
        "sonic",
        {"leaf0": lambda tree: tree["DEVICE_METADATA"].clear()},
        r"leaf0.json: DEVICE_METADATA.localhost.hostname: None is not a name",
    ),
    "a hostname twice": (
        "sonic",
        {"leaf0": key("DEVICE_METADATA", "localhost", hostname="leaf1")},
        r"leaf1.json: is of 'leaf1', as leaf0.json \(valid: one file a device\)",
    ),
    "another rate": (
        "sonic",
        {"leaf0": key("PORT", "Ethernet64", speed="200000")},
        r"leaf0.json: Ethernet64: leaf0/Ethernet64 has 200000Mb/s, spine0/Ethernet0 400000Mb/s \(valid: the same",
    ),
    "a rate of no number": (
        "sonic",
        {"leaf0": key("PORT", "Ethernet0", speed="fast")},
        r"PORT.Ethernet0.speed: 'fast'",
    ),
    "a rate of too many digits": (
        "sonic",
        {"leaf0": key("PORT", "Ethernet0", speed="0" * 11 + "199999999999")},
        r"PORT.Ethernet0.speed: '0000",
    ),
    "a rate of thousands of digits": (
        "sonic",
        {"leaf0": key("PORT", "Ethernet0", speed="0" * 11 + "1" * 5000)},
        r"PORT.Ethernet0.speed: '0000.* \(valid: 1 to 100000000, in Mb/s\)",
    ),
    "no such port": (
        "sonic",
        {"leaf0": lambda tree: tree["DEVICE_NEIGHBOR"].update(Ethernet1={"name": "gpu7", "port": "eth1"})},
        r"DEVICE_NEIGHBOR.Ethernet1: no port is named 'Ethernet1' \(valid: Ethernet0, ",
    ),
    "no neighbour's name": ("sonic", {"leaf0": key("DEVICE_NEIGHBOR", "Ethernet0", name=7)}, r"name 7 is not valid"),
    "a table of no mapping": (
        "sonic",
        {"leaf0": lambda tree: tree.update(PORT=[])},
        r"leaf0.json: PORT: must be a table",
    ),
    "two links of a port": (
        "sonic",
        {"spine0": key("DEVICE_NEIGHBOR", "Ethernet8", port="Ethernet64")},
        r"leads to|has two links",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_contradictions_are_refused_with_file_and_port(changed: Callable[..., Path], case: str) -> None:
    kind, changes, message = REFUSED[case]
    folder = changed(kind, **changes)
    with pytest.raises(BadInputError, match=message) as raised:
        build(folder)
    assert str(folder) in str(raised.value)


def test_a_link_that_nobody_reports_is_none(changed: Callable[..., Path]) -> None:
    folder = changed("lldp", leaf0=dropped("swp32"), spine1=dropped("swp1"))
    # spine1 is still seen by leaf1.
    assert len(build(folder).links) == 7


def test_folders_that_hold_no_topology_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"has 0 files .json \(valid: 1 to 10000\)"):
        build(tmp_path)
    (tmp_path / "a.json").write_text('{"nodes": [], "edges": []}')
    with pytest.raises(BadInputError, match=r"has files of format node_link, which is one file \(valid: lldp, sonic\)"):
        build(tmp_path)
    with pytest.raises(BadInputError, match=r"is a folder, but format graphml is one file \(valid: lldp, sonic\)"):
        build(tmp_path, format="graphml")
    (tmp_path / "a.json").write_text('{"lldp": {"interface": [')
    with pytest.raises(BadInputError, match=r"a.json: line 1: is not JSON"):
        build(tmp_path, format="lldp")


def test_names_sort_by_the_numbers_in_them() -> None:
    assert sorted(["leaf10", "leaf2", "leaf", "leaf\u00b2", "2", "leaf2b"], key=natural)[:3] == ["2", "leaf", "leaf2"]


@pytest.mark.skipif(
    not os.environ.get("WEFT_SONIC_DBSYNCD"), reason="WEFT_SONIC_DBSYNCD names no clone of sonic-net/sonic-dbsyncd"
)
def test_public_output_of_lldpctl_is_read() -> None:
    fabric = build(LLDPCTL)
    assert len(fabric.switches) == 1
    assert fabric.hosts
    assert notes(LLDPCTL)


@pytest.mark.skipif(
    not os.environ.get("WEFT_SONIC_CONFIG"),
    reason="WEFT_SONIC_CONFIG names no clone of injinj/sonic-on-arista-7050qx32",
)
def test_a_public_configuration_is_read() -> None:
    """Its neighbours have no types, so they count as hosts."""
    fabric = build(Path(os.environ["WEFT_SONIC_CONFIG"]) / "config_db.json", host_rate="40Gb/s")
    assert (len(fabric.switches), len(fabric.hosts)) == (1, 20)


def test_names_that_differ_in_zeros_are_apart_and_in_order() -> None:
    names = ["h01", "h1", "h", "h001", "h10", "h2"]
    for given in (names, names[::-1]):
        assert sorted(given, key=natural) == ["h", "h001", "h01", "h1", "h2", "h10"]
    devices = [
        Device(f"leaf{here}", f"{here}.json", {"p0": Neighbour(f"leaf{there}", ("p0",))}, is_switch=True)
        for here, there in (("1", "01"), ("01", "1"))
    ]
    assert [(edge.a, edge.b) for edge in joined(devices).edges] == [("leaf01", "leaf1")]


def test_the_ports_back_are_found_once_for_many_parallel_links(monkeypatch: pytest.MonkeyPatch) -> None:
    count, asked = 300, []
    resolved = _Join._resolved
    monkeypatch.setattr(_Join, "_resolved", lambda self, name: asked.append(name) or resolved(self, name))
    # The ports of b are known by their links only, and a does not know their names.
    links_of_a = {f"p{number}": Neighbour("b", (f"mac{number}",)) for number in range(count)}
    links_of_b = {f"q{number}": Neighbour("a", (f"p{number}",)) for number in range(count)}
    graph = joined([Device("a", "a", links_of_a, is_switch=True), Device("b", "b", links_of_b, is_switch=True)])
    assert len(graph.edges) == count
    assert len(asked) < 10 * count
