"""The network as p4-utils' controllers ask about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from weft.errors import BadInputError
from weft.p4utils.mininetlib.network_API import NetworkAPI
from weft.p4utils.utils.helper import load_topo
from weft.p4utils.utils.topology import IntfDoesNotExist, InvalidHostIP, NetworkGraph, NodeDoesNotExist
from weft.run.spec import run_spec
from weft.scenario.network_file import load_scenario_or_network
from weft.topologies.networks.p4_utils_graph import graph_of

PROGRAM = Path(__file__).parent / "course" / "router.p4"


@pytest.fixture
def topo(tmp_path: Path) -> NetworkGraph:
    """A ring of three switches, each with a host; the way between s1 and s2 is dear."""
    net = NetworkAPI()
    for number in (1, 2, 3):
        net.addP4Switch(f"s{number}", p4_src=str(PROGRAM), cpu_port=number == 3)
        net.addHost(f"h{number}")
    for number in (1, 2, 3):
        net.addLink(f"h{number}", f"s{number}")
    net.addLink("s1", "s2", weight=5, bw=10)
    net.addLink("s2", "s3", weight=1)
    net.addLink("s3", "s1", weight=1)
    net.l3()
    path = net.write(tmp_path / "network.json")
    scenario, network = load_scenario_or_network(path, [])
    assert network is not None
    names = [switch.name for switch in network.switches]
    graph = graph_of(network, run_spec(scenario).fabric, dict.fromkeys(names, (Path("r.json"), Path("r.txt"))))
    (tmp_path / "topology.json").write_text(json.dumps(graph), encoding="utf-8")
    return load_topo(str(tmp_path / "topology.json"))


def test_nodes_and_neighbours(topo: NetworkGraph) -> None:
    assert list(topo.get_p4switches()) == list(topo.get_p4rtswitches()) == ["s1", "s2", "s3"]
    assert topo.get_hosts(fields=["ip"]) == {"h1": "10.1.1.2/24", "h2": "10.2.2.2/24", "h3": "10.3.3.2/24"}
    assert topo.get_hosts(fields=["ip", "isHost"])["h1"] == ("10.1.1.2/24", True)
    assert (topo.isHost("h1"), topo.isSwitch("h1"), topo.isType("s1", "p4switch"), topo.isRouter("s1")) == (
        True,
        False,
        True,
        False,
    )
    assert topo.get_hosts_connected_to("s1") == ["h1"]
    assert set(topo.get_switches_connected_to("s1")) == {"s2", "s3"}
    assert topo.are_neighbors("s1", "s2")
    assert not topo.are_neighbors("h1", "s2")
    assert topo.get_routers() == {}


def test_switches(topo: NetworkGraph) -> None:
    assert (topo.get_p4switch_id("s2"), topo.get_thrift_port("s2"), topo.get_grpc_port("s2")) == (2, 9091, 9560)
    assert topo.get_cpu_port_index("s3") == 4
    assert topo.get_cpu_port_intf("s3") == "s3-cpu-eth0"
    assert topo.get_ctl_cpu_intf("s3") == "s3-cpu-eth1"
    assert topo.get_cpu_port_intf("s1", quiet=True) is None
    with pytest.raises(TypeError, match="h1 is not a P4 switch"):
        topo.get_thrift_port("h1")


def test_hosts(topo: NetworkGraph) -> None:
    assert topo.get_host_ip("h2") == "10.2.2.2"
    assert topo.get_host_mac("h2") == "00:00:0a:02:02:02"
    assert topo.get_host_name("10.3.3.2") == "h3"
    assert topo.get_host_gateway_name("h2") == "s2"
    assert topo.get_host_first_interface("h2") == "h2-eth0"
    with pytest.raises(InvalidHostIP):
        topo.get_host_name("10.9.9.9")
    with pytest.raises(TypeError, match="s1 is not a host"):
        topo.get_host_ip("s1")


def test_interfaces_seen_from_either_end(topo: NetworkGraph) -> None:
    port = topo.node_to_node_port_num("s1", "s2")
    assert topo.port_to_node("s1", port) == "s2"
    name = topo.get_intfs()["s1"]["s2"]["intfName"]
    assert topo.interface_to_node("s1", name) == "s2"
    assert topo.interface_to_port("s1", name) == port
    assert topo.get_interfaces_to_node("s1")[name] == "s2"
    assert topo.get_node_intfs(fields=["port"])["s1"][name] == port
    assert topo.get_intfs(fields=["port", "port_neigh"])["s1"]["s2"] == (port, topo.node_to_node_port_num("s2", "s1"))
    assert topo.node_to_node_mac("s1", "s2") != topo.node_to_node_mac("s2", "s1")
    assert topo.node_to_node_mac("s1", "h1") == "00:01:0a:01:01:02"
    assert topo.node_to_node_interface_ip("s1", "h1") == "10.1.1.1/24"
    assert topo.node_to_node_interface_ip("s3", "s1") == "20.3.1.1/24"
    assert topo.subnet("s1", "h1") == "10.1.1.0/24"
    assert topo.get_direct_host_networks_from_switch("s1") == ["10.1.1.0/24"]
    assert (topo.node_to_node_interface_bw("s1", "s2"), topo.node_to_node_interface_bw("s2", "s3")) == (10, -1)
    with pytest.raises(IntfDoesNotExist):
        topo.node_to_node_port_num("h1", "s2")
    with pytest.raises(NodeDoesNotExist):
        topo.get_neighbors("s9")
    with pytest.raises(BadInputError, match="unknown type of node 'hub'"):
        topo.isType("s1", "hub")


def test_paths_by_weight(topo: NetworkGraph) -> None:
    assert topo.get_shortest_paths_between_nodes("h1", "h2") == [("h1", "s1", "s3", "s2", "h2")]
    assert topo.get_all_paths_between_nodes("s1", "s2") == [("s1", "s3", "s2"), ("s1", "s2")]
    assert topo.total_number_of_paths() == 6
    assert set(topo.keep_only_p4switches().nodes) == {"s1", "s2", "s3"}


OTHER_GRAPH = json.dumps({"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 1, "target": 2}]})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nodes": 1, "links": []}', "[" * 5000, OTHER_GRAPH])
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError, match="is not p4-utils' graph of a network"):
        load_topo(tmp_path / "t.json")
    with pytest.raises(BadInputError, match="a running lab writes it"):
        load_topo(tmp_path / "none.json")
