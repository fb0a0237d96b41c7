"""What p4-utils' controllers find beside a lab: the graph in topology.json, and `exec_scripts`."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from tests.refusals import refused
from tests.thrift.client import Client
from weft.clocks.real.network_lab import NetworkLab
from weft.clocks.real.scripts_beside import ScriptsBeside
from weft.run.spec import run_spec
from weft.scenario.network_file import load_scenario_or_network, what_is_not_done
from weft.scenario.parsing import Change
from weft.topologies.errors import TopologyError
from weft.topologies.networks import Network, read_network
from weft.topologies.networks.p4_utils_graph import graph_of, is_graph_file

FOLDER = Path(__file__).parent / "cpu_port"
WRITTEN = {"s1": (Path("/p/cpu.json"), Path("/p/cpu_p4rt.txt")), "s2": (Path("/p/b.json"), Path("/p/b.txt"))}
TREE: dict[str, Any] = {
    "p4_src": "cpu.p4",
    "switch_node": {"module_name": "p4utils.mininetlib.node", "object_name": "P4RuntimeSwitch"},
    "compiler_module": {"options": {"p4rt": True}},
    "exec_scripts": [{"cmd": "python controller.py", "reboot_run": True}],
    "topology": {
        "assignment_strategy": "l2",
        "default": {"bw": 10},
        "links": [
            ["s1", "h1", {"sw_ip1": "10.0.1.1/24", "params2": {"ip": "10.0.1.2/24"}}],
            ["s1", "s2", {"weight": 3, "bw": 5}],
            ["h2", "s2"],
        ],
        "hosts": {"h1": {"defaultRoute": "via 10.0.1.1"}, "h2": {}},
        "switches": {"s1": {"cpu_port": True}, "s2": {}},
    },
}


def network_of(folder: Path, tree: object) -> Network:
    path = folder / "p4app.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    return read_network(path)


def test_controllers_find_names_ports_and_programs_in_the_graph(tmp_path: Path) -> None:
    network = network_of(tmp_path, TREE)
    assert network.notes == (), "modules of p4-utils' own mean nothing that is not done"
    scenario, _ = load_scenario_or_network(tmp_path / "p4app.json", [])
    tree = graph_of(network, run_spec(scenario).fabric, WRITTEN)
    graph = nx.node_link_graph({key: value for key, value in tree.items() if key != "edges"}, edges="links")
    assert tree["edges"] == tree["links"], "newer versions of networkx read these"
    switch = graph.nodes["s1"]
    assert (switch["isP4Switch"], switch["isP4RuntimeSwitch"], switch["device_id"], switch["grpc_port"]) == (
        True,
        True,
        1,
        9559,
    )
    assert (switch["json_path"], switch["p4rt_path"]) == ("/p/cpu.json", "/p/cpu_p4rt.txt")
    assert (switch["cpu_port_num"], switch["cpu_intf"], switch["cpu_ctl_intf"]) == (
        3,
        "s1-cpu-eth0",
        "s1-cpu-eth1",
    )
    assert graph.nodes["s2"]["cpu_port"] is False
    host_link, between = graph.edges["h1", "s1"], graph.edges["s1", "s2"]
    assert (host_link["node1"], host_link["intfName1"], host_link["port2"]) == ("h1", "h1-eth0", 1)
    assert (host_link["ip1"], host_link["ip2"], host_link["bw"]) == ("10.0.1.2/24", "10.0.1.1/24", 10)
    assert host_link["addr1"] == graph.nodes["h1"]["mac"]
    assert host_link["addr2"] == dict(network.hosts[0].neighbours)["10.0.1.1"], "what h1 takes for its gateway"
    assert (between["weight"], between["bw"], between["addr1"]) == (3, 5, "02:13:00:00:00:02")
    assert between["addr1"] != between["addr2"]
    assert "weight" not in host_link
    assert nx.shortest_path_length(graph, "h1", "h2", weight="weight") == 5


def test_scripts_are_for_labs(tmp_path: Path) -> None:
    network = network_of(tmp_path, TREE)
    assert network.scripts == ("python controller.py",)
    assert what_is_not_done(network, is_virtual=False) == []
    assert what_is_not_done(network, is_virtual=True) == [
        "p4app.json: exec_scripts: 'python controller.py' is not run in virtual time (valid: a controller class)"
    ]


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (
            ("exec_scripts",),
            "python c.py",
            {"place": "p4app.json, exec_scripts", "valid": '[{"cmd": "…"}, …], at most 1000'},
        ),
        (
            ("exec_scripts",),
            [{"reboot_run": True}],
            {"place": "p4app.json, exec_scripts[0].cmd", "valid": "a command"},
        ),
        (("exec_scripts",), [3], {"place": "p4app.json, exec_scripts[0]", "valid": "{…}"}),
        (
            ("topology", "default"),
            {"weight": "x"},
            {"place": "p4app.json, topology.default.weight", "valid": "0 to 1,000,000,000"},
        ),
        (
            ("topology", "default"),
            {"weight": -1},
            {"place": "p4app.json, topology.default.weight", "valid": "0 to 1,000,000,000"},
        ),
        (
            ("topology", "links"),
            [["s1", "h1", {"sw_ip1": "10.0.1"}], ["h2", "s2"]],
            {"place": "p4app.json, topology.links[0][2].sw_ip1", "valid": "such as 10.0.1.1/24"},
        ),
    ],
)
def test_bad_scripts_weights_and_addresses_are_named(
    keys: tuple[str, ...], value: object, words: dict[str, str], tmp_path: Path
) -> None:
    tree = json.loads(json.dumps(TREE))
    at = tree
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    with refused(TopologyError, **words):
        network_of(tmp_path, tree)


def test_only_a_graph_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "topology.json"
    assert not is_graph_file(path)
    for text in ("", "[]", '{"hosts": {}, "switches": {}, "links": []}', "[" * 100_000):
        path.write_text(text, encoding="utf-8")
        assert not is_graph_file(path)
    path.write_text('{"directed": false, "multigraph": false, "nodes": [], "links": []}', encoding="utf-8")
    assert is_graph_file(path)


def test_scripts_end_with_what_they_run_beside(tmp_path: Path) -> None:
    said: list[str] = []
    told = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        told.set()

    commands = ["echo $$; sleep 600 & echo $!; wait", "echo no table; exit 3", "true"]
    (tmp_path / "exec_script_3.log").symlink_to(tmp_path / "other")
    with ScriptsBeside(commands, tmp_path, tmp_path, say):
        assert told.wait(60)
        log = tmp_path / "exec_script_1.log"
        until(lambda: len(log.read_text(encoding="utf-8").split()) == 2)
        pids = log.read_text(encoding="utf-8").split()
        assert all(Path("/proc", pid).exists() for pid in pids)
    assert said == ["'echo no table; exit 3' ended with 3: no table"]
    assert not Path("/proc", pids[0]).exists()
    until(lambda: not any(runs(pid) for pid in pids))
    assert not (tmp_path / "other").exists(), "a link of somebody's is not followed"


def until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline_s


def runs(pid: str) -> bool:
    """Return whether a process runs; one whose parent has ended may be a zombie for as long as its reaper takes."""
    try:
        return Path("/proc", pid, "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.mininet
def test_a_lab_writes_the_graph_and_runs_scripts(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDER, tmp_path / "network"))
    path = folder / "p4app.json"
    tree = json.loads(path.read_text(encoding="utf-8"))
    tree["exec_scripts"] = [{"cmd": "cp topology.json seen.json; exit 4"}]
    path.write_text(json.dumps(tree), encoding="utf-8")
    scenario, network = load_scenario_or_network(path, [Change("clock", "real", "--clock")])
    assert network is not None
    ended = threading.Event()
    spec = run_spec(scenario)
    with NetworkLab(
        spec.fabric,
        spec.options,
        network,
        lambda text: ended.set() if "exit 4' ended with 4" in text else None,
    ) as lab:
        assert ended.wait(60)
        assert " 1 received" in lab.network.net.get("h1").cmd("ping -c 1 -W 5 10.0.0.2")
        client = Client(next(int(setup.thrift_port or 0) for setup in network.setups.values()))
        assert client.call("standard:bm_mgmt_get_info")["device_id"] == lab.fabric.switches[0].device_id
        client.socket.close()
    seen = json.loads((folder / "seen.json").read_text(encoding="utf-8"))
    assert [node["id"] for node in seen["nodes"]] == ["h1", "h2", "s1"]
    assert Path(seen["nodes"][2]["json_path"]) == folder / "cpu.json"
    assert "pkg_info" in Path(seen["nodes"][2]["p4rt_path"]).read_text(encoding="utf-8")
