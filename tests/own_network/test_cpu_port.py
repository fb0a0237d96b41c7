"""p4-utils' `cpu_port`: a port that leads to a controller, under both clocks."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.sendrecv import AsyncSniffer, sendp
from scapy.utils import rdpcap

from tests.refusals import refused
from weft.clocks.real.network_lab import NetworkLab
from weft.clocks.user_controller import Controller
from weft.errors import BadInputError, EnvironmentLacksError
from weft.run.fabric import Fabric
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario.network_file import load_scenario_or_network
from weft.scenario.parsing import Change
from weft.traffic.extensions import load_class

FOLDER = Path(__file__).parent / "cpu_port"
CPU_PORT = 3
TO_CONTROLLER = 0x1234
CONTROLLERS = FOLDER / "sniffing.py"
VIRTUAL = Change("clock", "virtual", "--clock")


def controlled(name: str) -> list[Change]:
    return [VIRTUAL, Change("controller", f"{CONTROLLERS}:{name}", "--set")]


def named_port(data: bytes) -> tuple[int, int]:
    """Return the type of a frame and the port that it names."""
    return int.from_bytes(data[12:14], "big"), int.from_bytes(data[14:16], "big")


def test_in_virtual_time_a_controller_takes_packets_and_sends_them() -> None:
    log = load_class(f"{CONTROLLERS}:Sniffing", Controller).log  # type: ignore[attr-defined]
    log.clear()
    pings = [{"ping": ["h1->h2"], "count": 2, "interval": "1s"}]
    changes = [*controlled("Sniffing"), Change("traffic", pings, "--set")]
    result = run_scenario(load_scenario_or_network(FOLDER / "p4app.json", changes)[0])
    assert result.ok
    assert result.drops == {"ip foreign": 1}, "the frame that the controller sends is not to the MAC of h2"
    assert result.dropped_packet_ins == 0
    assert [(switch, metadata) for switch, metadata, *_ in log] == [("s1", {})] * 4
    assert [named_port(payload) for _, _, payload, _ in log] == [(TO_CONTROLLER, 1), (TO_CONTROLLER, 2)] * 2
    assert log[-1][-1] == {1: 2, 2: 2, CPU_PORT: 1}, "what the controller sent came in by the CPU port"


def test_in_virtual_time_packets_that_no_controller_takes_are_counted() -> None:
    changes = [VIRTUAL, Change("traffic", [{"ping": "all", "count": 1}], "--set")]
    result = run_scenario(load_scenario_or_network(FOLDER / "p4app.json", changes)[0])
    assert result.ok
    assert result.dropped_packet_ins == 4


def test_a_packet_has_no_fields_without_a_header_for_them() -> None:
    scenario, _ = load_scenario_or_network(FOLDER / "p4app.json", controlled("Asking"))
    with refused(BadInputError, problem="the program has no header with"):
        run_scenario(scenario)


def test_in_virtual_time_a_cpu_port_is_not_captured(tmp_path: Path) -> None:
    scenario, _ = load_scenario_or_network(FOLDER / "p4app.json", [VIRTUAL])
    with Fabric(run_spec(scenario)) as fabric:
        with refused(EnvironmentLacksError, problem="s1:3 leads to a controller: in"):
            fabric.capture_port("s1", CPU_PORT, tmp_path / "cpu.pcap")
        fabric.capture_port("s1", 1, tmp_path / "host.pcap")


@contextlib.contextmanager
def sniffing(interface: str, count: int, of_type: int) -> Iterator[list[Packet]]:
    """Yield a list that has, when the block ends, so many frames of a type that came to or left an interface."""
    ready = threading.Event()
    found: list[Packet] = []
    sniffer = AsyncSniffer(
        iface=interface,
        count=count,
        lfilter=lambda packet: packet.haslayer(Ether) and packet[Ether].type == of_type,
        started_callback=ready.set,
    )
    sniffer.start()
    assert ready.wait(10)
    try:
        yield found
        sniffer.join(10)
    finally:
        if sniffer.running:  # a frame is missing: the test shows which
            sniffer.stop()
    found += sniffer.results


@pytest.mark.mininet
def test_in_mininet_a_controller_sniffs_and_sends_at_an_interface(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDER, tmp_path / "network"))
    real = Change("clock", "real", "--clock")
    scenario, network = load_scenario_or_network(folder / "p4app.json", [real])
    assert network is not None
    spec = run_spec(scenario)
    with NetworkLab(spec.fabric, spec.options, network) as lab:
        assert "s1: port 3 leads to a controller at s1-cpu-eth1" in lab.where_to_look()
        host = lab.network.net.get("h1")
        with sniffing("s1-cpu-eth1", count=2, of_type=TO_CONTROLLER) as seen:
            assert " 1 received" in host.cmd("ping -c 1 -W 5 10.0.0.2")
        assert [named_port(bytes(packet)) for packet in seen] == [(TO_CONTROLLER, 1), (TO_CONTROLLER, 2)]
        frame = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01", type=0x1235) / Raw(b"\0\2" + bytes(46))
        with sniffing("s1-eth2", count=1, of_type=0x1235) as sent:
            sendp(frame, iface="s1-cpu-eth1", verbose=False)
        assert [bytes(packet) for packet in sent] == [bytes(frame)]
    assert not Path("/sys/class/net/s1-cpu-eth1").exists()
    assert not Path("/sys/class/net/s1-cpu-eth0").exists()
    assert [bytes(packet) for packet in rdpcap(str(folder / "pcap" / "s1-cpu-eth0_in.pcap"))] == [bytes(frame)]
