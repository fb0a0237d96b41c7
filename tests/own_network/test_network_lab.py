"""Network files in Mininet: hosts that ping, logs and captures in their places, controllers from outside."""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
import socket
from pathlib import Path

import pytest
from scapy.layers.inet import ICMP
from scapy.utils import rdpcap

from weft.clocks.real.access import owner
from weft.clocks.real.network_lab import NetworkLab
from weft.controller.grpc_targets import open_channel
from weft.controller.pipeline import Pipeline
from weft.controller.session import SwitchSession
from weft.controller.stub import P4RuntimeStub
from weft.controller.switch_cli import CommandSession
from weft.errors import BadInputError, EnvironmentLacksError
from weft.paths import ROOT
from weft.run.spec import run_spec
from weft.scenario.network_file import load_scenario_or_network
from weft.scenario.parsing import Change

EXAMPLE = ROOT / "examples" / "own_network"
REAL = Change("clock", "real", "--clock")
pytestmark = pytest.mark.mininet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "network"))


def lab_of(path: Path, said: list[str]) -> NetworkLab:
    scenario, network = load_scenario_or_network(path, [REAL])
    assert network is not None
    spec = run_spec(scenario)
    return NetworkLab(spec.fabric, spec.options, network, said.append)


def ping(lab: NetworkLab) -> str:
    return str(lab.network.net.get("h1").cmd("ping -c 3 -i 0.2 -W 2 10.0.2.2"))


def iperf(lab: NetworkLab) -> list[float]:
    """As the command of that name at Mininet's prompt, in Mbit/s."""
    rates = lab.network.net.iperf(fmt="m", seconds=1)
    return [float(rate.removesuffix(" Mbits/sec")) for rate in rates]


def test_a_tutorials_network(folder: Path) -> None:
    said: list[str] = []
    with lab_of(folder / "topology.json", said) as lab:
        lab.log_packets(folder / "logs")
        output = ping(lab)
        assert " 3 received" in output
        assert "ttl=62" in output, "two routers"
        assert "min" in output
        assert float(output.split("= ")[-1].split("/")[0]) >= 4, "2 ms each way"
        assert "eth0" in lab.network.net.get("h1").cmd("ip -o link")
        assert all(0 < megabits <= 51 for megabits in iperf(lab)), "50 Mbit/s between the routers"
        asyncio.run(_take_over(folder))
        assert "100% packet loss" in ping(lab)
        assert lab.network.net.iperf(seconds=1) == ["", ""], "it ends"
    log = (folder / "logs" / "s1.log").read_text(encoding="utf-8")
    assert log.count("Action entry is Route.forward - 80000000200,3,") > 100, "pings, and what iperf sends"
    assert log.count("Table 'Route.routes': miss") >= 3, "it goes on with a controller's program"
    assert not any("ended with" in line for line in said)
    requests = (folder / "logs" / "s1-p4runtime-requests.txt").read_text(encoding="utf-8")
    assert requests.count("type: INSERT") == 2
    assert (folder / "logs" / "s2_cli_output.log").read_text(encoding="utf-8").count("has been added") == 2
    for name in ("s1-eth1_in", "s1-eth3_out", "s2-eth2_in", "s2-eth1_out"):
        assert sum(ICMP in packet for packet in rdpcap(str(folder / "pcaps" / f"{name}.pcap"))) >= 3


async def _take_over(folder: Path) -> None:
    """As the tutorials' controllers: election id 1, the program from build/ pushed again, which forgets all entries."""
    build = folder / "build"
    pipeline = Pipeline.load(build / "forward.p4.p4info.txtpb", build / "forward.json")
    for number in (0, 1):
        channel = open_channel(f"127.0.0.1:{50051 + number}")
        session = SwitchSession(f"s{number + 1}", number, P4RuntimeStub(channel), pipeline)
        await session.negotiate_version()
        await session.become_primary(1)
        assert await CommandSession(session).run("table_num_entries routes") == "2"
        await session.push_pipeline()
        await session.close()
        await channel.close()


def test_a_p4_utils_network_and_a_command_that_fails(folder: Path) -> None:
    path = folder / "p4app.json"
    commands = ["echo no; false", "echo 'not closed &", "pwd > folder.txt &"]
    path.write_text(
        path.read_text(encoding="utf-8").replace('"h2": {}', f'"h2": {{"commands": {json.dumps(commands)}}}')
    )
    said: list[str] = []
    with lab_of(path, said) as lab:
        assert " 3 received" in ping(lab)
        assert lab.addresses == {"s1": "127.0.0.1:9559", "s2": "127.0.0.1:9560"}
        assert lab.daemon is not None
        # Stands for a full disk.
        resource.prlimit(lab.daemon.child.process.pid, resource.RLIMIT_FSIZE, (200, 200))
        assert " 3 received" in ping(lab)
        assert "h1-eth0" in lab.network.net.get("h1").cmd("ip -o link")
        assert lab.network.net.get("h2").cmd("pwd").strip() == str(folder)
    assert "h2: 'echo no; false' ended with 1: no" in said
    assert f"{folder / 'pcap' / 's1-eth1_in.pcap'} is incomplete: File too large" in said
    assert (folder / "folder.txt").read_text(encoding="utf-8").strip() == str(folder)
    assert (folder / "forward_p4rt.txt").is_file()
    assert (folder / "pcap" / "s1-eth1_in.pcap").is_file()
    assert (folder / "log" / "s1-p4runtime-requests.txt").is_file()


def test_a_port_that_another_program_has_is_named(folder: Path) -> None:
    refused = pytest.raises(EnvironmentLacksError, match=r"cannot listen on 127\.0\.0\.1:50052: Address already")
    with socket.create_server(("127.0.0.1", 50052)), refused, lab_of(folder / "topology.json", []):
        pass


def test_a_compiled_program_never_takes_the_place_of_the_network_file(folder: Path) -> None:
    path = folder / "p4app.json"
    text = path.read_text(encoding="utf-8").replace("forward.p4", "p4app.p4")
    path.write_text(text, encoding="utf-8")
    (folder / "forward.p4").rename(folder / "p4app.p4")
    refused = pytest.raises(BadInputError, match=r"p4app\.json: the compiled p4app\.p4 would take its place")
    with refused, lab_of(path, []):
        pass
    assert path.read_text(encoding="utf-8") == text


def test_a_compiled_program_never_takes_the_place_of_a_switch_s_entries(folder: Path) -> None:
    path = folder / "p4app.json"
    tree = json.loads(path.read_text(encoding="utf-8"))
    tree["topology"]["switches"]["s1"] = {"runtime_json": "forward.json"}
    path.write_text(json.dumps(tree), encoding="utf-8")
    (folder / "forward.json").write_text('{"table_entries": []}', encoding="utf-8")
    refused = pytest.raises(BadInputError, match=r"forward\.json: the compiled forward\.p4 would take its place")
    with refused, lab_of(path, []):
        pass
    assert (folder / "forward.json").read_text(encoding="utf-8") == '{"table_entries": []}'


def test_scripts_of_hosts_find_scapy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever `python3` is on PATH: here one that has nothing."""
    fake = folder / "bin" / "python3"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=":")
    script = folder / "send.py"
    script.write_text("#!/usr/bin/env python3\nimport scapy\nprint('found')\n", encoding="utf-8")
    script.chmod(0o755)
    path = folder / "topology.json"
    tree = json.loads(path.read_text(encoding="utf-8"))
    tree["hosts"]["h1"]["commands"].append("./send.py > found.txt")
    path.write_text(json.dumps(tree), encoding="utf-8")
    said: list[str] = []
    with lab_of(path, said) as lab:
        assert lab.network.net.get("h1").cmd("./send.py").strip() == "found"
    assert (folder / "found.txt").read_text(encoding="utf-8") == "found\n"
    assert any("the one on PATH has no Scapy" in line for line in said)


def test_the_machine_answers_no_host_and_no_other_user(folder: Path) -> None:
    """Linux answers ARP for any of its addresses on any interface; those of switches' ports are not its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("the machine has no address but the loopback's")
        machine = probe.getsockname()[0]
    with lab_of(folder / "topology.json", []) as lab:
        config = json.loads((lab.directory / "switches.json").read_text())
        assert config["grpc_users"] == sorted({0, owner()[0]}), "the others' processes do not reach switches"
        host = lab.network.net.get("h1")
        host.cmd(f"ip route add {machine}/32 dev eth0; ping -c 1 -W 1 {machine}")
        neighbour = host.cmd(f"ip neighbour show {machine}")
        assert neighbour.split(), "it has asked"
        assert "lladdr" not in neighbour
        # Nor does the machine take what comes with the port's own MAC.
        mac = Path("/sys/class/net/s1-eth1/address").read_text().strip()
        host.cmd(f"ip neighbour replace {machine} lladdr {mac} dev eth0")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as service:
            service.bind(("0.0.0.0", 0))
            service.setblocking(False)
            port = service.getsockname()[1]
            sent = host.cmd(
                f"bash -c 'for each in 1 2 3; do echo hello > /dev/udp/{machine}/{port} && echo sent; done'"
            )
            assert sent.split() == ["sent"] * 3
            assert " 3 received" in ping(lab), "by now it would be here"
            with pytest.raises(BlockingIOError):
                service.recv(100)
