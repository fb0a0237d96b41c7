"""Networks from the tutorials' topology.json and p4-utils' p4app.json: what is read and refused."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.scenario import parse_scenario
from weft.scenario.topology import build_topology
from weft.topologies import FabricSpec, TopologyError, from_parameters
from weft.topologies.kinds.network import network
from weft.topologies.networks import Network, is_network_file, read_network

TUTORIALS: dict[str, Any] = {
    "hosts": {
        "h1": {
            "ip": "10.0.1.1/24",
            "mac": "08:00:00:00:01:11",
            "commands": ["route add default gw 10.0.1.10"],
        },
        "h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22"},
    },
    "switches": {"s10": {}, "s2": {"runtime_json": "s2-runtime.json"}},
    "links": [["h1", "s2-p1"], ["s2-p4", "s10-p2", "5ms", 0.5], ["s10-p1", "h2", 2]],
}
P4_UTILS: dict[str, Any] = {
    "p4_src": "forward.p4",
    "cli": True,
    "topology": {
        "assignment_strategy": "mixed",
        "default": {"bw": 100},
        "links": [
            ["h1", "s1", {"delay": "20ms", "loss": 1, "bw": 20, "max_queue_size": 100, "weight": 5}],
            ["h2", "s2"],
            ["s1", "s2", {"port1": 7, "delay": 30}],
            ["web", "s1"],
        ],
        "hosts": {"h1": {}, "h2": {}, "web": {}},
        "switches": {"s1": {"cli_input": "s1.txt"}, "s2": {"p4_src": "other.p4", "grpc_port": 9559}},
    },
}


def written(folder: Path, tree: object) -> Path:
    path = folder / "topology.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


def fabric_of(found: Network) -> FabricSpec:
    return network(found.hosts, found.switches, found.links)


def test_tutorials_names_ports_and_addresses_are_as_given(tmp_path: Path) -> None:
    found = read_network(written(tmp_path, TUTORIALS))
    fabric = fabric_of(found)
    assert [(switch.name, switch.device_id) for switch in fabric.switches] == [("s2", 0), ("s10", 1)]
    assert {name: setup.grpc_port for name, setup in found.setups.items()} == {"s2": 50051, "s10": 50052}
    assert found.setups["s2"].runtime_json == tmp_path / "s2-runtime.json"
    s2 = fabric.switch("s2")
    assert [port.is_dark for port in s2.ports] == [False, True, True, False]
    assert [str(port.peer) for port in s2.ports if not port.is_dark] == ["h1:0", "s10:2"]
    assert (s2.port(4).link.rate_bps, s2.port(4).link.delay_ps) == (500_000, 5 * 10**9)
    host = fabric.host("h2").nics[0]
    assert (str(host.ipv4), host.mac, host.switch, host.switch_port) == (
        "10.0.2.2/24",
        "08:00:00:00:02:22",
        "s10",
        1,
    )
    assert host.link.delay_ps == 2 * 10**9, "a number is milliseconds"
    assert found.hosts[0].commands == ("route add default gw 10.0.1.10",)
    assert len(fabric.links) == 3


def test_p4_utils_ports_addresses_and_link_figures(tmp_path: Path) -> None:
    found = read_network(written(tmp_path, P4_UTILS))
    fabric = fabric_of(found)
    assert found.program == tmp_path / "forward.p4"
    assert found.setups["s2"].program == tmp_path / "other.p4"
    assert found.setups["s1"].commands == tmp_path / "s1.txt"
    assert [(switch.name, switch.device_id) for switch in found.switches] == [("s1", 1), ("s2", 2)]
    ends = {link.a: (link.a_port, link.b, link.b_port) for link in found.links}
    assert ends == {"h1": (0, "s1", 1), "h2": (0, "s2", 1), "s1": (7, "s2", 2), "web": (0, "s1", 2)}
    first = found.links[0]
    assert (first.rate_bps, first.delay_ps, first.loss) == (20 * 10**6, 20 * 10**9, 0.01)
    assert first.queue_capacity_bytes == 100 * 1518
    assert found.links[2].delay_ps == 30 * 10**6, "a number is microseconds for tc"
    assert found.links[2].rate_bps == 100 * 10**6, "the default's"
    by_name = {host.name: host for host in found.hosts}
    assert by_name["h1"].ipv4 == "10.0.1.1/24"
    assert by_name["h1"].mac == "00:00:0a:00:01:01"
    assert by_name["web"].ipv4 == "10.0.1.2/24"
    assert by_name["h1"].gateway == "10.0.1.254"
    assert by_name["h1"].neighbours == (
        ("10.0.1.254", "00:01:0a:00:01:01"),
        ("10.0.1.2", "00:00:0a:00:01:02"),
    )
    assert fabric.host("h1").nics[0].gateway_mac == "00:01:0a:00:01:01"


def test_a_cpu_port_is_numbered_like_a_link_to_p4_utils_bridge(tmp_path: Path) -> None:
    """The free ports of s1 are for h1, the bridge and web, because links are in the order of their ends."""
    tree = changed(P4_UTILS, ("topology", "switches", "s1", "cpu_port"), True)
    found = read_network(written(tmp_path, tree))
    assert [(switch.name, switch.cpu_port) for switch in found.switches] == [("s1", 2), ("s2", None)]
    assert {link.a: link.b_port for link in found.links if link.b == "s1"} == {"h1": 1, "web": 3}
    fabric = fabric_of(found)
    port = fabric.switch("s1").port(2)
    assert (port.interface, port.peer_interface) == ("s1-cpu-eth0", "s1-cpu-eth1")
    assert (port.leads_to_controller, port.is_cabled, port.is_dark) == (True, True, True)
    assert [each.is_cabled for each in fabric.switch("s1").ports] == [
        True,
        True,
        True,
        False,
        False,
        False,
        True,
    ]
    assert len(fabric.links) == len(found.links)
    assert from_parameters(json.loads(json.dumps(fabric.parameters))) == fabric
    taken = [replace(switch, cpu_port=1) for switch in found.switches]
    with refused(TopologyError, valid="a number without one", problem="cpu_port 1 of s1 has a link"):
        network(found.hosts, taken, found.links)


@pytest.mark.parametrize(
    ("strategy", "addresses"),
    [
        ("l2", {"h1": "10.0.0.1/16", "h2": "10.0.0.2/16", "web": "10.0.0.3/16"}),
        ("mixed", {"h1": "10.0.1.1/24", "h2": "10.0.2.2/24", "web": "10.0.1.2/24"}),
        ("l3", {"h1": "10.1.1.2/24", "h2": "10.2.2.2/24", "web": "10.1.2.2/24"}),
        ("manual", {"h1": "10.0.0.1/8", "h2": "10.0.0.2/8", "web": "10.0.0.3/8"}),
    ],
)
def test_assignment_strategies(tmp_path: Path, strategy: str, addresses: dict[str, str]) -> None:
    tree = copy.deepcopy(P4_UTILS)
    tree["topology"]["assignment_strategy"] = strategy
    found = read_network(written(tmp_path, tree))
    assert {host.name: host.ipv4 for host in found.hosts} == addresses


def test_parameters_build_an_equal_fabric(tmp_path: Path) -> None:
    for tree in (TUTORIALS, P4_UTILS):
        fabric = fabric_of(read_network(written(tmp_path, tree)))
        again = json.loads(json.dumps(fabric.parameters))
        assert from_parameters(again) == fabric


def test_a_scenario_names_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, TUTORIALS)
    scenario = parse_scenario({"fabric": {"kind": "network", "path": str(path)}})
    assert [host.name for host in build_topology(scenario.fabric).hosts] == ["h1", "h2"]


def changed(tree: dict[str, Any], keys: tuple[Any, ...], value: object) -> dict[str, Any]:
    copied = copy.deepcopy(tree)
    at: Any = copied
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return copied


@pytest.mark.parametrize(
    ("tree", "keys", "value", "words"),
    [
        (TUTORIALS, ("links", 0, 1), "s3-p1", "links[0]: 's3-p1' names no switch; valid: s10, s2"),
        (TUTORIALS, ("links", 0, 1), "s2", "links[0]: 's2' is not an end of a link"),
        (TUTORIALS, ("links", 0, 1), "s2-p0", "port of s2-p0: '0' is out of range (valid: 1 to 509)"),
        (TUTORIALS, ("links", 0, 1), "s2-p4", "links[1]: port 4 of s2 has links[0] already"),
        (TUTORIALS, ("links", 1, 2), "5 minutes", "links[1][2]: '5 minutes' is not a delay"),
        (TUTORIALS, ("links", 1, 3), -1, "links[1][3]: -1 is not a bandwidth (valid: 0.01 to"),
        (TUTORIALS, ("links", 1, 3), 10**400, "is not a bandwidth (valid: 0.01 to"),
        (TUTORIALS, ("links", 2), ["h2", "h1"], "links[2]: joins hosts"),
        (TUTORIALS, ("switches", "s2", "program"), 300 * "n", "switches.s2.program: 'nnn"),
        (TUTORIALS, ("switches", "s2", "runtime_json"), 2000 * "a/", "is too long a path (valid: 1,024"),
        (TUTORIALS, ("links", 2), ["h1", "s2-p3"], "host h1 has 2 links (valid: one"),
        (TUTORIALS, ("links",), {}, "links: {} is not a list"),
        (
            TUTORIALS,
            ("hosts", "h1", "ip"),
            "10.0.1.1",
            "hosts.h1.ip: '10.0.1.1' is not a host's IPv4 address",
        ),
        (TUTORIALS, ("hosts", "h1", "ip"), "224.0.0.1/4", "hosts.h1.ip: '224.0.0.1/4' is not a host's IPv4"),
        (TUTORIALS, ("hosts", "h1", "mac"), "01:00:00:00:00:01", "is not a host's MAC address"),
        (TUTORIALS, ("hosts", "h1", "ip"), "10.0.2.2/24", "hosts h1 and h2 both have 10.0.2.2"),
        (TUTORIALS, ("hosts", "h1", "commands"), "ls", "hosts.h1.commands: 'ls' is not a list"),
        (TUTORIALS, ("hosts", "h-3"), {}, "hosts: 'h-3' is not a name for a node"),
        (TUTORIALS, ("switches", "²"), {}, "switches: '²' is not a name for a node"),
        (TUTORIALS, ("switches", "s" + 5000 * "9"), {}, "is not a name for a node"),
        (
            TUTORIALS,
            ("switches",),
            {f"s{n}": {} for n in range(10_001)},
            "switches: there are 10,001 (valid:",
        ),
        (TUTORIALS, ("switches", "s2", "cpu_port"), 7, "switches.s2.cpu_port: 7 (valid: 510)"),
        (
            P4_UTILS,
            ("topology", "assignment_strategy"),
            "l4",
            "'l4' is not known (valid: l2, mixed, l3, manual)",
        ),
        (P4_UTILS, ("topology", "links", 0, 0), "h9", "links[0]: 'h9' is not a node; "),
        (P4_UTILS, ("topology", "links", 0, 2, "loss"), 100, "is not a loss (valid: 0 to less than 100"),
        (P4_UTILS, ("topology", "links", 0, 2, "loss"), 10**400, "is not a loss (valid: 0 to less than 100"),
        (P4_UTILS, ("topology", "routers"), {"r1": {}}, "topology.routers: routers are not supported"),
        (P4_UTILS, ("topology", "hosts", "h3"), {}, "topology.hosts.h3: has no link to a switch"),
        (
            P4_UTILS,
            ("topology", "switches", "s1", "cpu_port"),
            3,
            "switches.s1.cpu_port: 3 is not valid (valid:",
        ),
        (
            P4_UTILS,
            ("topology", "switches", "border7"),
            {"cpu_port": True},
            "switches.border7.cpu_port: interface name 'border7-cpu-eth0' has 16 characters (valid: at most 15)",
        ),
        (P4_UTILS, ("topology", "switches", "s1", "grpc_port"), 9559, "two switches have the gRPC port 9559"),
    ],
)
def test_what_is_refused_has_its_place(
    tmp_path: Path, tree: dict[str, Any], keys: tuple[Any, ...], value: object, words: str
) -> None:
    path = written(tmp_path, changed(tree, keys, value))
    with pytest.raises(TopologyError) as refused:
        fabric_of(read_network(path))
    assert str(refused.value).startswith(f"{path}, ")
    assert words in str(refused.value)


def test_half_a_letter_is_in_no_path_or_command(tmp_path: Path) -> None:
    path = written(tmp_path, changed(TUTORIALS, ("switches", "s2", "program"), "\ud800.p4"))
    with refused(TopologyError, place="topology.json", problem="is not JSON in UTF-8:"):
        read_network(path)


def star(hosts: int, links: int = 1) -> dict[str, Any]:
    names = [f"h{number + 1}" for number in range(hosts)]
    return {
        "topology": {
            "assignment_strategy": "l2",
            "hosts": {name: {} for name in names},
            "switches": {name: {} for name in (*(f"s{host}" for host in names), "t1", "t2")},
            "links": [[name, f"s{name}"] for name in names] + links * [["t1", "t2"]],
        }
    }


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (star(1, links=100_000), "links[510]: port of t1: 510 is out of range (valid: 1 to 509)"),
        (
            star(1002),
            "auto_arp_tables: hosts would have 1,003,002 static ARP entries (valid: at most 1,000,000;",
        ),
    ],
)
def test_small_files_that_stand_for_too_much_are_refused_before_it_is_made(
    tmp_path: Path, tree: dict[str, Any], words: str
) -> None:
    with pytest.raises(TopologyError) as refused:
        read_network(written(tmp_path, tree))
    assert words in str(refused.value)


def test_what_is_not_done_is_said(tmp_path: Path) -> None:
    tree = changed(P4_UTILS, ("tasks_file",), "tasks.txt")
    assert read_network(written(tmp_path, tree)).notes == ("tasks_file: means nothing here",)


def test_network_files_are_told_from_others(tmp_path: Path) -> None:
    assert is_network_file(written(tmp_path, TUTORIALS))
    assert is_network_file(written(tmp_path, P4_UTILS))
    assert not is_network_file(written(tmp_path, {"nodes": [], "edges": []}))
    assert not is_network_file(tmp_path / "missing.json")
    assert not is_network_file(tmp_path)


@pytest.mark.parametrize("missing", ["hosts", "switches", "links"])
def test_a_network_file_without_one_of_its_keys_is_told_so(tmp_path: Path, missing: str) -> None:
    path = written(tmp_path, {name: value for name, value in TUTORIALS.items() if name != missing})
    assert is_network_file(path)
    with refused(
        TopologyError,
        valid=("hosts, switches and links, as p4lang/tutorials' topology.json; or topology, as p4-utils' p4app.json"),
        problem="at the top",
    ):
        read_network(path)


def test_a_network_file_with_a_mistake_in_its_json_says_where(tmp_path: Path) -> None:
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(TUTORIALS, indent=1).replace("}\n}", "},\n}") + ",", encoding="utf-8")
    assert is_network_file(path)
    with refused(TopologyError, place="topology.json, line 38", problem="is not JSON"):
        read_network(path)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**13), 10**13)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    # An integer that no float holds, half a letter, a name that no file may have.
    | st.sampled_from([10**400, "\ud800", 300 * "n", 2000 * "a/"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
PLACES = st.sampled_from(
    [
        (TUTORIALS, place)
        for place in [
            ("hosts",), ("hosts", "h1"), ("hosts", "h1", "ip"), ("hosts", "h1", "mac"), ("switches",),
            ("switches", "s2"), ("switches", "s2", "runtime_json"), ("links",), ("links", 1), ("links", 1, 0),
            ("links", 1, 2), ("links", 1, 3), ("hosts", "h1", "commands"), ("switches", "s2", "cpu_port"),
            ("switches", "s2", "program"), ("switches", "s2", "cli_input"),
        ]
    ]
    + [
        (P4_UTILS, ("topology", *place))
        for place in [
            ("links",), ("links", 0, 2), ("links", 0, 2, "delay"), ("links", 0, 2, "max_queue_size"), ("default",),
            ("links", 0, 2, "params1"), ("links", 0, 2, "addr1"), ("hosts", "h1"), ("hosts", "h1", "defaultRoute"),
            ("switches", "s1"), ("switches", "s1", "device_id"), ("assignment_strategy",),
            ("switches", "s1", "cpu_port"), ("links", 0, 2, "bw"), ("links", 0, 2, "loss"),
            ("switches", "s1", "p4_src"),
        ]
    ]
)  # fmt: skip


@given(place=PLACES, value=JSON)
def test_any_value_anywhere_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[dict[str, Any], tuple[Any, ...]], value: object
) -> None:
    path = written(tmp_path_factory.getbasetemp(), changed(*place, value))
    try:
        fabric = fabric_of(read_network(path))
    except TopologyError:
        return  # any other exception is a failure
    assert fabric.hosts
