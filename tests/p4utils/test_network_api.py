"""p4-utils' NetworkAPI: which network its calls describe, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import refused
from weft.errors import BadInputError, EnvironmentLacksError
from weft.p4utils.errors import UnsupportedCallError
from weft.p4utils.mininetlib.network_API import NETWORK_FILE, NetworkAPI
from weft.p4utils.mininetlib.tasks import Task, read_tasks
from weft.p4utils.utils.compiler import BF_P4C, P4C
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario.network_file import load_scenario_or_network
from weft.shims.writing import PROGRAMS, write_shims
from weft.topologies.networks import Network, read_network
from weft.topologies.networks.p4_utils_graph import graph_of

COURSE = Path(__file__).parent / "course"
TASK = "NODE START DURATION COMMAND, times in seconds up to 1000000"


def two_routers() -> NetworkAPI:
    net = NetworkAPI()
    for name in ("s1", "s2"):
        net.addP4Switch(name)
    net.setP4SourceAll("router.p4")
    for name in ("h1", "h2"):
        net.addHost(name)
    net.addLink("h1", "s1")
    net.addLink("s1", "s2")
    net.addLink("s2", "h2")
    return net


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the program."""
    shutil.copy(COURSE / "router.p4", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def network_of(net: NetworkAPI) -> Network:
    return read_network(net.write(Path(NETWORK_FILE)).resolve())


@pytest.mark.parametrize(
    ("strategy", "addresses", "at_ports"),
    [
        ("l2", ["10.0.0.1/16", "10.0.0.2/16"], [(None, None), (None, None), (None, None)]),
        (
            "mixed",
            ["10.0.1.1/24", "10.0.2.2/24"],
            [(None, "10.0.1.254/24"), ("20.1.2.1/24", "20.1.2.2/24"), (None, "10.0.2.254/24")],
        ),
        (
            "l3",
            ["10.1.1.2/24", "10.2.2.2/24"],
            [(None, "10.1.1.1/24"), ("20.1.2.1/24", "20.1.2.2/24"), (None, "10.2.2.1/24")],
        ),
    ],
)
def test_strategies_address_hosts_and_what_controllers_see_of_ports(
    strategy: str, addresses: list[str], at_ports: list[tuple[str | None, str | None]]
) -> None:
    net = two_routers()
    getattr(net, strategy)()
    network = network_of(net)
    assert [host.ipv4 for host in network.hosts] == addresses
    assert [(facts.a_ip, facts.b_ip) for facts in network.link_facts] == at_ports
    assert [setup.thrift_port for setup in network.setups.values()] == [9090, 9091]


def test_links_have_figures_ports_and_addresses_of_either_end() -> None:
    net = two_routers()
    net.l3()
    assert net.addLink("s2", "s1", port1=7, bw=10, weight=4) == 1, "the second link between the two"
    net.setBwAll(100)
    net.setBw("s1", "s2", 20, key=1)
    net.setDelay("s2", "s1", 3)
    net.setLoss("s1", "s2", 0.25)
    net.setMaxQueueSize("s1", "s2", 50)
    net.setIntfPort("s1", "s2", 9, key=1)
    net.setIntfMac("h2", "s2", "00:00:00:00:00:22")
    net.setIntfIp("h2", "s2", "10.9.9.9/24")
    net.setIntfIp("s2", "h2", "10.9.9.1/24")
    net.setDefaultRoute("h2", "10.9.9.1")
    network = network_of(net)
    h1, between, _, second = network.links
    assert (h1.rate_bps, between.rate_bps, second.rate_bps) == (10**8, 10**8, 2 * 10**7)
    assert (between.delay_ps, between.loss, between.queue_capacity_bytes) == (3 * 10**9, 0.25, 50 * 1518)
    assert (second.a, second.a_port, second.b, second.b_port) == ("s2", 7, "s1", 9)
    host = network.hosts[1]
    assert (host.ipv4, host.mac, host.gateway) == ("10.9.9.9/24", "00:00:00:00:00:22", "10.9.9.1")
    assert dict(host.neighbours).keys() == {"10.9.9.1"}
    assert network.link_facts[2].b_ip == "10.9.9.1/24"
    assert network.link_facts[3].weight == 4


def test_a_strategy_takes_the_place_of_earlier_addresses() -> None:
    net = two_routers()
    net.setIntfIp("h1", "s1", "10.7.7.7/24")
    net.l2()
    assert network_of(net).hosts[0].ipv4 == "10.0.0.1/16"


def test_options_that_controllers_alone_read_are_in_the_graph(here: Path) -> None:
    net = NetworkAPI()
    net.addP4Switch("s1", host_prefix="10.1.0.0/16", thrift_port=9100, p4_src="router.p4")
    net.addP4Switch("s2", p4_src="router.p4")
    net.addHost("h1", ip="10.1.0.5/16", mac="00:00:00:00:00:05", rack=4)
    net.addLink("h1", "s1", igp_cost=2)
    net.addLink("s1", "s2", igp_cost=5)
    net.setTopologyFile("graph/topo.json")
    network = network_of(net)
    scenario, _ = load_scenario_or_network(here / NETWORK_FILE, [])
    fabric = run_spec(scenario).fabric
    graph = graph_of(network, fabric, dict.fromkeys(("s1", "s2"), (Path("r.json"), Path("r.txt"))))
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert (nodes["s1"]["host_prefix"], nodes["s1"]["thrift_port"], nodes["s2"]["thrift_port"]) == (
        "10.1.0.0/16",
        9100,
        9090,
    )
    assert (nodes["h1"]["ip"], nodes["h1"]["mac"], nodes["h1"]["rack"]) == ("10.1.0.5/16", "00:00:00:00:00:05", 4)
    assert [link["igp_cost"] for link in graph["links"]] == [2, 5]
    assert network.graph_file == here / "graph" / "topo.json"


def test_nodes_are_found_changed_and_removed() -> None:
    net = two_routers()
    net.addHost("h10")
    assert net.hosts() == ["h1", "h2", "h10"]
    assert net.p4switches(withInfo=True)[0] == ("s1", {"p4_src": "router.p4"})
    assert (net.isHost("h1"), net.isP4Switch("h1"), net.isNode("h9"), net.isRouter("s1")) == (True, False, False, False)
    assert net.links(sort=True) == [("h1", "s1"), ("s1", "s2"), ("s2", "h2")]
    net.deleteNode("s2")
    assert net.popNode("h10") == {}
    net.deleteNode("h2")
    assert net.links() == [("h1", "s1")]
    assert not net.areNeighbors("s1", "s2")
    net.enableCpuPortAll()
    assert net.hasCpuPort("s1")
    assert network_of(net).switches[0].cpu_port == 2


def test_the_network_runs_in_virtual_time(here: Path) -> None:
    net = two_routers()
    net.l3()
    net.setDelay("s1", "s2", 2)
    for name in ("s1", "s2"):
        entries = [
            f"table_add routes forward 10.{host}.{host}.2/32 => 00:00:0a:0{host}:0{host}:02 {port}\n"
            for host, port in ((1, 1), (2, 2))
        ]
        (here / f"{name}-commands.txt").write_text("".join(entries), encoding="utf-8")
    net.setP4CliInputAll(".")
    scenario, _ = load_scenario_or_network(net.write(Path(NETWORK_FILE)), [], "virtual")
    assert [each.answered for each in run_scenario(scenario).traffic["pings"]] == [1, 1]


def test_the_file_is_written_again_and_others_are_left_alone(here: Path) -> None:
    first, second = (two_routers().write(Path(NETWORK_FILE)).read_text() for _ in range(2))
    assert first == second
    (here / "link.json").symlink_to(here / "target.json")
    (here / "own.json").write_text('{"topology": {}}', encoding="utf-8")
    for name in ("link.json", "own.json"):
        with refused(BadInputError, place=name, valid="a free name"):
            two_routers().write(Path(name))
    assert not (here / "target.json").exists()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda net: net.addRouter("r1"), "NetworkAPI.addRouter is not supported"),
        (lambda net: net.addTofino("s3"), "NetworkAPI.addTofino is not supported"),
        (lambda net: net.addSwitch("s3"), "NetworkAPI.addSwitch is not supported"),
        (lambda net: net.enableDhcpAll(), "NetworkAPI.enableDhcpAll is not supported"),
        (lambda net: net.setCompiler(BF_P4C, sde="/sde"), "does not run here (valid: P4C)"),
        (lambda net: net.setCompiler(opts="-DX=1"), "setCompiler: opts: '-DX=1'"),
        (lambda net: net.setCompiler(P4C, sde="/sde"), "setCompiler: sde is not an option"),
        (lambda net: net.setIpBase("192.168.0.0/16"), "NetworkAPI.setIpBase"),
        (lambda net: net.addTask("h1", print), "is not a shell command"),
        (lambda net: net.addNode("x", isRouter=True), "neither a host nor a P4 switch"),
    ],
)
def test_calls_that_weft_lacks_are_named(call: Any, words: str) -> None:
    with pytest.raises(UnsupportedCallError, match=re.escape(words)):
        call(two_routers())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda net: net.addLink("h1", "s9"), "there is no node 's9'"),
        (lambda net: net.setP4Source("h1", "x.p4"), "h1 is not a P4 switch (valid: s1, s2)"),
        (lambda net: net.setDefaultRoute("s1", "10.0.0.1"), "s1 is not a host (valid: h1, h2)"),
        (lambda net: net.setBw("s1", "s2", "fast"), "setBw: 'fast' is not a number"),
        (lambda net: net.setLoss("s1", "s2", 30.0), "setLoss: 30.0 is not a loss (valid: 0 to 1)"),
        (lambda net: net.getLink("h1", "h2"), "h1 and h2 have no link"),
        (lambda net: net.getLink("s1", "s2", key=3), "s1 and s2 have no link 3 (valid: 0)"),
        (lambda net: net.addLink("s1", "s2", key=0), "have a link with the key 0 already"),
        (lambda net: (net.addP4Switch("s3", x=print), net.network_tree(), net.write(Path("x.json"))), "not plain data"),
    ],
)
def test_wrong_arguments_are_named(call: Any, words: str) -> None:
    with pytest.raises(BadInputError, match=re.escape(words)):
        call(two_routers())


def test_an_unknown_call_has_a_suggestion() -> None:
    with pytest.raises(AttributeError, match="NetworkAPI has no addHosts; did you mean"):
        two_routers().addHosts("h3")


def test_tasks_are_read_from_a_file(here: Path) -> None:
    path = here / "tasks.txt"
    path.write_text('# when\nh1 0.5 10 "ping -c 1 10.0.0.2"\n\nh2 1 0 iperf -s -u\n', encoding="utf-8")
    assert list(read_tasks(path)) == [
        Task("h1", "ping -c 1 10.0.0.2", 0.5, 10.0),
        Task("h2", "iperf -s -u", 1.0, 0.0),
    ]
    for text in ("h1 soon 1 ls", "h1 1 2", 'h1 1 2 "', "h1 inf 1 ls", "h1 0 nan ls", "h1 1e12 0 ls"):
        path.write_text(text, encoding="utf-8")
        with refused(BadInputError, place="tasks.txt, line 1", problem="is not a task", valid=TASK):
            list(read_tasks(path))


def test_without_root_a_line_says_how_to_run_the_network(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit) as ended:
        two_routers().startNetwork()
    assert ended.value.code == EnvironmentLacksError.exit_code
    assert capsys.readouterr().err == (
        "weft: Mininet needs root: run this with sudo, or in virtual time, which needs neither root nor Mininet: "
        f"weft run {NETWORK_FILE}\n"
    )
    assert (here / NETWORK_FILE).exists()


@pytest.mark.mininet
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.skipif(shutil.which("mnexec") is None, reason="needs Mininet")
def test_an_unmodified_network_and_its_controller_run(here: Path) -> None:
    tools = here / "tools"
    write_shims(tools)
    for name in ("network.py", "controller.py"):
        shutil.copy(COURSE / name, here)
    typed = (
        "sh timeout 60 sh -c 'until grep -qs 1.1.1.1 controller.log; do sleep 0.1; done'\n"
        "h1 ping -c 2 -i 0.2 -W 5 h2\n"
        "sh echo counter_read received 1 | simple_switch_CLI --thrift-port 9090\n"
        "sh timeout 60 sh -c 'until test -e task_has_run; do sleep 0.1; done'\n"
        "exit\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [tools / PROGRAMS / "python3", "network.py"],
        input=typed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=environment,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout
    assert " 2 received" in done.stdout, done.stdout + (here / "controller.log").read_text()
    assert "2 packets)" in done.stdout
    assert "{'s1': '1.1.1.1', 's2': None}" in (here / "controller.log").read_text()
    assert (here / "task_has_run").exists()
    assert "MyIngress.routes" in (here / "log" / "s1.log").read_text()
    assert json.loads((here / "topology.json").read_text())["nodes"]
