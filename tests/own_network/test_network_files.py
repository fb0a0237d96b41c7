"""Network files as scenarios: programs, entries and commands find their switches, hosts their gateways."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import finsy
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.cli import weft
from weft.clocks.endpoint_settings import ip_settings
from weft.clocks.virtual.lab import VirtualLab
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.run.fabric import Fabric
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario.network_file import load_scenario_or_network, network_tree, what_is_not_done
from weft.scenario.parsing import Change
from weft.topologies.errors import TopologyError
from weft.topologies.networks import read_network
from weft.topologies.networks.host_commands import understand

EXAMPLE = ROOT / "examples" / "own_network"
VIRTUAL = Change("clock", "virtual", "--clock")
INCAST = Change("traffic", [{"incast": "h1", "bytes_per_sender": "16KiB"}], "--set")


@pytest.mark.parametrize("name", ["topology.json", "p4app.json"])
def test_a_network_forwards_by_its_entries_and_commands(name: str) -> None:
    scenario, network = load_scenario_or_network(EXAMPLE / name, [VIRTUAL, INCAST])
    assert network is not None
    result = run_scenario(scenario)
    assert result.ok
    assert result.drops == {}
    assert result.retransmissions == 0
    assert result.all_warnings == [], "nothing of Weft's is missing in a program for others"


def test_commands_say_what_they_did() -> None:
    scenario, _ = load_scenario_or_network(EXAMPLE / "topology.json", [VIRTUAL])
    with Fabric(run_spec(scenario)) as fabric:
        assert fabric.lab.said_by_commands == {
            "s2": ["Entry has been added with handle 0", "Entry has been added with handle 1"]
        }


def test_commands_pace_a_switch_in_virtual_time(tmp_path: Path) -> None:
    """16 KiB in packets of 1 KiB, at 500 packets a second: the last leaves 30 ms behind the first."""
    path = copied(tmp_path)
    with (path.parent / "s2-commands.txt").open("a") as commands:
        commands.write("set_queue_rate 500 2\nset_queue_depth 64\n")
    took_ps = []
    for each, workers in ((EXAMPLE / "topology.json", 1), (path, 1), (path, 2)):
        changes = [VIRTUAL, INCAST, Change("workers", workers, "--workers")]
        result = run_scenario(load_scenario_or_network(each, changes)[0])
        assert result.ok
        took_ps.append(result.flows[0].time_ps)
    at_full_rate, paced, paced_by_two_workers = took_ps
    assert paced_by_two_workers == paced
    assert at_full_rate < 10 * 10**9
    assert 30 * 10**9 <= paced < at_full_rate + 31 * 10**9


def test_commands_of_a_scenario_write_no_files(tmp_path: Path) -> None:
    """A topology may come from anyone; where it is run as root, so would its commands' files be written."""
    path, written = copied(tmp_path), tmp_path / "written"
    with (path.parent / "s2-commands.txt").open("a") as commands:
        commands.write(f"write_config_to_file {written}\n")
    with refused(
        BadInputError,
        place="s2-commands.txt, line 4: write_config_to_file",
        valid="weft switch-cli SWITCH write_config_to_file FILE",
    ):
        run_scenario(load_scenario_or_network(path, [VIRTUAL, INCAST])[0])
    assert not written.exists()


def test_a_run_logs_packets_as_simple_switch_does(tmp_path: Path) -> None:
    arguments = [
        "run",
        str(copied(tmp_path)),
        "--packet-logs",
        str(tmp_path / "logs"),
        "--out",
        str(tmp_path / "out"),
    ]
    result = CliRunner().invoke(weft, arguments)
    assert result.exit_code == 0, result.output
    for switch in ("s1", "s2"):
        text = (tmp_path / "logs" / f"{switch}.log").read_text()
        # Each of two pings and its answer.
        assert text.count("Processing packet received on port") == 4
        assert text.count("Applying table 'Route.routes'") == text.count("routes': hit") == 4
        assert text.count("Action entry is Route.forward - 8000000") == 4
    (tmp_path / "file").touch()
    result = CliRunner().invoke(weft, [*arguments[:3], str(tmp_path / "file" / "logs"), *arguments[4:]])
    assert isinstance(result.exception, BadInputError)
    assert str(result.exception).startswith("--packet-logs: ")
    result = CliRunner().invoke(weft, [*arguments, "--coverage", str(tmp_path / "coverage")])
    assert result.exit_code == 2
    assert "--coverage: not together with --packet-logs" in result.output


def test_entries_of_commands_stay_when_a_switch_is_read_back() -> None:
    scenario, _ = load_scenario_or_network(EXAMPLE / "topology.json", [VIRTUAL])
    with Fabric(run_spec(scenario)) as fabric:
        controller = fabric.lab.controller
        before = controller.read("s2", [finsy.P4TableEntry("routes")])
        assert len(before) == 2
        controller.recover()
        controller.apply()
        assert controller.read("s2", [finsy.P4TableEntry("routes")]) == before


def test_what_commands_of_hosts_set_up_is_in_virtual_time_too() -> None:
    scenario, network = load_scenario_or_network(EXAMPLE / "topology.json", [VIRTUAL])
    fabric = scenario.fabric.build()
    (settings,) = ip_settings(fabric, fabric.host("h1"), 1500)
    assert settings.neighbours == {"10.0.1.254": "08:00:00:00:01:00"}
    assert "10.0.1.254" in settings.routes.values()
    assert network is not None
    assert what_is_not_done(network, is_virtual=True) == []


def test_hosts_of_one_network_ask_for_each_other_and_not_for_a_gateway(tmp_path: Path) -> None:
    """As a kernel does: h1 at 10.0.1.1/24 has h2 at 10.0.1.2/24 on its link, whatever is between them."""
    path = changed(copied(tmp_path), "hosts", "h2", "ip", value="10.0.1.2/24")
    fabric = load_scenario_or_network(path, [VIRTUAL])[0].fabric.build()
    for name in ("h1", "h2"):
        (settings,) = ip_settings(fabric, fabric.host(name), 1500)
        assert settings.routes == {}


def copied(folder: Path) -> Path:
    shutil.copytree(EXAMPLE, folder / "network")
    return folder / "network" / "topology.json"


def changed(path: Path, *keys: Any, value: object) -> Path:
    tree = json.loads(path.read_text(encoding="utf-8"))
    at = tree
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


def test_compiled_files_stand_for_their_sources(tmp_path: Path) -> None:
    path = copied(tmp_path)
    shutil.copy(path.parent / "forward.p4", path.parent / "firewall.p4")
    (path.parent / "Makefile").write_text("TOPO = topology.json\nDEFAULT_PROG = forward.p4\n", encoding="utf-8")
    changed(path, "switches", "s1", "program", value="build/firewall.json")
    tree = network_tree(read_network(path))
    assert Path(tree["p4"]) == path.parent / "forward.p4"
    assert tree["programs"] == {"s1": str(path.parent / "firewall.p4")}


def test_a_solution_takes_the_place_of_the_program_of_its_name(tmp_path: Path) -> None:
    path = copied(tmp_path)
    shutil.copy(path.parent / "forward.p4", path.parent / "firewall.p4")
    (path.parent / "Makefile").write_text("DEFAULT_PROG = forward.p4\n", encoding="utf-8")
    network = read_network(changed(path, "switches", "s1", "program", value="build/firewall.json"))
    firewall, other = Path("/solution/firewall.p4"), Path("/solution/other.p4")
    assert network_tree(network, firewall)["programs"] == {"s1": str(firewall)}
    assert Path(network_tree(network, firewall)["p4"]).name == "forward.p4"
    assert network_tree(network, other)["p4"] == str(other)


def test_a_program_that_is_not_clear_is_asked_for(tmp_path: Path) -> None:
    path = copied(tmp_path)
    shutil.copy(path.parent / "forward.p4", path.parent / "second.p4")
    with refused(BadInputError, place="topology.json", valid="exactly one, a Makefile's DEFAULT_PROG, or --p4 FILE"):
        load_scenario_or_network(path)
    changed(path, "switches", "s1", "program", value="build/none.json")
    with refused(BadInputError, place="topology.json", problem="the source of none.json is not"):
        load_scenario_or_network(path)


def test_losses_become_faults_of_their_links(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "network")
    path = changed(tmp_path / "network" / "p4app.json", "topology", "links", 2, 2, "loss", value=5)
    assert network_tree(read_network(path))["faults"] == {"links": [{"link": "s1:2<->s2:2", "loss": 0.05}]}


def test_a_wrong_command_has_file_and_line(tmp_path: Path) -> None:
    path = copied(tmp_path)
    (path.parent / "s2-commands.txt").write_text("# one\ntable_add route forward 1/32 => 1 1\n", encoding="utf-8")
    scenario, _ = load_scenario_or_network(path, [VIRTUAL])
    with refused(BadInputError, place="s2-commands.txt, line 2: table_add", problem="unknown table 'route'; did you"):
        run_scenario(scenario)


def test_wrong_entries_and_missing_files_have_their_place(tmp_path: Path) -> None:
    path = changed(copied(tmp_path), "switches", "s1", "runtime_json", value="missing.json")
    scenario, _ = load_scenario_or_network(path, [VIRTUAL])
    with pytest.raises(BadInputError, match=r"entries\.s1: .*missing\.json"):
        run_scenario(scenario)


@pytest.mark.parametrize(
    ("command", "gateway", "neighbours"),
    [
        ("route add default gw 10.0.1.10 dev eth0", "10.0.1.10", ()),
        ("/sbin/route add default gw 10.0.1.10", "10.0.1.10", ()),
        ("ip route add default via 10.0.1.10", "10.0.1.10", ()),
        ("ip -4 r replace default via 10.0.1.10 dev eth0", "10.0.1.10", ()),
        ("arp -i eth0 -s 10.0.1.10 08:00:00:00:01:0A", None, (("10.0.1.10", "08:00:00:00:01:0a"),)),
        ("arp -s 10.0.1.10 08:00:00:00:01:00", None, (("10.0.1.10", "08:00:00:00:01:00"),)),
        (
            "ip neigh add 10.0.1.10 lladdr 08:00:00:00:01:00 dev eth0",
            None,
            (("10.0.1.10", "08:00:00:00:01:00"),),
        ),
        (
            "ip  neigh add 10.0.1.10 dev eth0 lladdr 08:00:00:00:01:00",
            None,
            (("10.0.1.10", "08:00:00:00:01:00"),),
        ),
        ("ip route add 10.0.0.0/24 dev eth0", None, ()),
    ],
)
def test_commands_of_hosts_are_understood(
    command: str, gateway: str | None, neighbours: tuple[tuple[str, str], ...]
) -> None:
    found = understand((command,))
    assert (found.gateway, found.neighbours, found.others) == (gateway, neighbours, ())


@pytest.mark.parametrize(
    "command",
    ["python3 receive.py &", "route add default gw 10.0.0.999", "ip route add 10.0.0.0/8 via 10.0.1.1", "'"],
)
def test_other_commands_are_reported(command: str) -> None:
    assert understand((command,)).others == (command,)


@given(st.lists(st.text(max_size=40), max_size=3))
def test_any_command_is_understood_or_reported(commands: list[str]) -> None:
    found = understand(tuple(commands))
    assert set(found.others) <= set(commands)


def test_programs_of_network_files_read_the_units_of_bmv2() -> None:
    scenario, _ = load_scenario_or_network(EXAMPLE / "topology.json", [VIRTUAL])
    with Fabric(run_spec(scenario)) as fabric:
        assert isinstance(fabric.lab, VirtualLab)
        facts = fabric.lab.target_facts
        assert (facts.depth_unit, facts.time_unit) == ("packets", "us")
        assert facts.nominal_packet_bytes == fabric.lab.frame_bytes
        for switch in fabric.lab.switches.switches.values():
            assert (switch.config.depth_unit, switch.config.time_unit) == ("packets", "us")


def test_hosts_that_no_links_join_are_named_when_the_file_is_read(tmp_path: Path) -> None:
    hosts = {f"h{n}": {"ip": f"10.0.{n}.{n}/24", "mac": f"08:00:00:00:0{n}:00"} for n in (1, 2, 3)}
    links = [["h1", "s1-p1"], ["h2", "s2-p1"], ["h3", "s2-p2"]]
    path = tmp_path / "topology.json"
    path.write_text(json.dumps({"hosts": hosts, "switches": {"s1": {}, "s2": {}}, "links": links}))
    with refused(TopologyError, valid="links that join all hosts", problem="topology.json, links: none lead"):
        read_network(path)
    path.write_text(
        json.dumps({"hosts": hosts, "switches": {"s1": {}, "s2": {}}, "links": [*links, ["s1-p2", "s2-p3"]]})
    )
    assert len(read_network(path).links) == 4
