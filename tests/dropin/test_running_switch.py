"""`weft switch` as a process between two network namespaces: it forwards, captures, logs, and can be traced."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from controller_script import write_routes
from namespaces import Namespace
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, raw
from scapy.utils import rdpcap

from tests.thrift.client import Client
from tests.thrift.conftest import free_port
from weft.cli import weft
from weft.compiler import compile_file
from weft.errors import CheckFailedError
from weft.traffic.layers import IntHop, IntShim

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).parent / "programs" / "basic_forward.p4"
START = "import sys; from weft.thrift.commands import switch; switch(prog_name='weft-switch')"
ECHO_REQUEST = 8
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class RunningSwitch:
    """The process, its log, and where it serves P4Runtime and Thrift."""

    def __init__(self, process: subprocess.Popen[str], log: Path, address: str, thrift_port: int) -> None:
        self.process = process
        self.log = log
        self.address = address
        self.thrift_port = thrift_port


StartSwitch = Callable[..., RunningSwitch]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartSwitch]:
    """Starts `weft switch` with a launch line in the style of p4lang's tutorials."""
    running: list[subprocess.Popen[str]] = []
    result = compile_file(PROGRAM)
    (tmp_path / "build.json").write_text(result.json_text())
    (tmp_path / "build.txtpb").write_text(result.p4info_text())

    def launch(hosts: tuple[Namespace, Namespace], *options: str) -> RunningSwitch:
        log, thrift_port = tmp_path / "s1.log", free_port()
        line = [sys.executable, "-c", START]
        for number, host in enumerate(hosts, start=1):
            line += ["-i", f"{number}@{host.outside}"]
        line += [f"--pcap={tmp_path}", "--nanolog", "ipc:///tmp/bm-0-log.ipc", "--device-id", "0"]
        line += [str(tmp_path / "build.json"), "--log-console", "--thrift-port", str(thrift_port), *options]
        line += ["--", "--grpc-server-addr", "127.0.0.1:0"]
        with log.open("w") as out:
            process = subprocess.Popen(line, stdout=out, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
        running.append(process)
        address = _wait_for(lambda: re.search(r"P4Runtime on (\S+)", log.read_text()), process)[1]
        routes = {"10.0.1.1": 1, "10.0.1.2": 2}
        write_routes(address, tmp_path / "build.txtpb", tmp_path / "build.json", routes)
        return RunningSwitch(process, log, address, thrift_port)

    yield launch
    for process in running:
        process.terminate()
        assert process.wait(30) == 0


def _wait_for(look: Callable[[], re.Match[str] | None], process: subprocess.Popen[str]) -> re.Match[str]:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert process.poll() is None, "the switch has ended"
        found = look()
        if found is not None:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come")


def test_a_launch_line_of_the_tutorials_works(
    hosts: tuple[Namespace, Namespace], start: StartSwitch, tmp_path: Path
) -> None:
    switch = start(hosts)
    said = hosts[0].run("ping", "-c", "3", "-i", "0.2", "-W", "5", "10.0.1.2")
    assert " 3 received" in said
    log = switch.log.read_text()
    client = Client(switch.thrift_port)
    assert client.call("standard:bm_mt_get_num_entries", table_name="ipv4_lpm") == 2
    ports = [tuple(each.values()) for each in client.call("standard:bm_dev_mgr_show_ports")]
    assert ports == [(number, host.outside, True, {}) for number, host in enumerate(hosts, 1)]
    client.socket.close()
    assert "--nanolog has no effect" in log
    routed = r"table MyIngress.ipv4_lpm: hdr.ipv4.dstAddr = 10.0.1.2 → hit 10.0.1.2/32"
    _wait_for(lambda: re.search(routed, switch.log.read_text()), switch.process)
    _wait_for(lambda: re.search(r"ipv4.ttl = 63 .*basic_forward.p4:\d+", switch.log.read_text()), switch.process)
    # captures can be read while the switch runs
    received = tmp_path / f"{hosts[0].outside}_in.pcap"
    sent = tmp_path / f"{hosts[1].outside}_out.pcap"
    _wait_for(lambda: re.match("3", str(len(_pings(received)))), switch.process)
    assert [packet[IP].ttl for packet in _pings(sent)] == [63] * 3
    assert abs(float(_pings(sent)[0].time) - time.time()) < 60, "captures bear the wall clock's time"


def test_captures_leave_out_shims_on_request(
    hosts: tuple[Namespace, Namespace], start: StartSwitch, tmp_path: Path
) -> None:
    switch = start(hosts, "--pcap-without-shims")
    plain = Ether(src="02:00:00:00:00:01", dst="ff:ff:ff:ff:ff:ff") / IP(src="10.0.1.1", dst="10.0.1.2") / ICMP(id=7)
    with_shim = raw(plain)[:12] + raw(IntShim(next_ethertype=0x0800, hops=[IntHop()] * 5)) + raw(plain)[14:]
    shim = with_shim[:12] + b"\x88\xb5" + with_shim[12:]
    send = "import socket,sys; s = socket.socket(17, 3); s.bind((sys.argv[1], 0)); s.send(bytes.fromhex(sys.argv[2]))"
    hosts[0].run(sys.executable, "-c", send, hosts[0].inside, shim.hex())
    received = tmp_path / f"{hosts[0].outside}_in.pcap"

    def found() -> re.Match[str] | None:
        frames = [raw(packet) for packet in rdpcap(str(received))] if received.stat().st_size else []
        assert shim not in frames
        return re.match("1", str(frames.count(raw(plain))))

    _wait_for(found, switch.process)


def _pings(path: Path) -> list[Packet]:
    return [packet for packet in rdpcap(str(path)) if ICMP in packet and packet[ICMP].type == ECHO_REQUEST]


def test_a_running_switch_is_traced_without_losing_its_state(
    hosts: tuple[Namespace, Namespace], start: StartSwitch
) -> None:
    switch = start(hosts, "-L", "info")
    pinging = subprocess.Popen(
        ["ip", "netns", "exec", hosts[0].name, "ping", "-i", "0.2", "-c", "100", "10.0.1.2"],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        arguments = ["trace", switch.address, "--port", "1", "--timeout", "30"]
        result = CliRunner().invoke(weft, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert "in by port 1, 98 bytes" in result.output
        assert "action MyIngress.ipv4_forward(dstAddr = 02:00:00:00:00:02, port = 2)" in result.output
        assert "out by port 2, 98 bytes" in result.output
        result = CliRunner().invoke(weft, [*arguments, "--json", "-n", "2"], catch_exceptions=False)
        events = [json.loads(line) for line in result.output.splitlines()]
        assert [event["event"] for event in events if event["event"] in ("received", "sent")] == [
            "received",
            "sent",
        ] * 2
    finally:
        pinging.terminate()
        pinging.wait()
    # plain code again, with the same routes
    assert " 1 received" in hosts[0].run("ping", "-c", "1", "-W", "5", "10.0.1.2")


def test_why_a_packet_is_dropped_is_reported(hosts: tuple[Namespace, Namespace], start: StartSwitch) -> None:
    switch = start(hosts, "-L", "info")
    hosts[0].run("ip", "route", "add", "10.9.0.0/16", "via", "10.0.1.2")
    pinging = subprocess.Popen(
        ["ip", "netns", "exec", hosts[0].name, "ping", "-i", "0.2", "-c", "100", "10.9.0.1"],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        result = CliRunner().invoke(weft, ["trace", switch.address, "--timeout", "30"], catch_exceptions=False)
    finally:
        pinging.terminate()
        pinging.wait()
    assert "hdr.ipv4.dstAddr = 10.9.0.1 → miss, default action" in result.output
    assert re.search(r"dropped \(program_ingress\): .*basic_forward.p4:\d+: mark_to_drop", result.output)


def test_a_trace_without_a_packet_says_so(hosts: tuple[Namespace, Namespace], start: StartSwitch) -> None:
    switch = start(hosts, "-L", "info")
    with pytest.raises(CheckFailedError, match=r"no packet came to .* on port 77 within 0.3 s"):
        CliRunner().invoke(weft, ["trace", switch.address, "--port", "77", "--timeout", "0.3"], catch_exceptions=False)


def test_packets_are_dumped(hosts: tuple[Namespace, Namespace], start: StartSwitch) -> None:
    switch = start(hosts, "-L", "info", "--dump-packet-data", "6")
    hosts[0].run("ping", "-c", "1", "-W", "5", "10.0.1.2")
    for line in ("in by port 1, 98 bytes: 02 00 00 00 00 02", "out by port 2, 98 bytes: 02 00 00 00 00 02"):
        _wait_for(lambda line=line: re.search(line, switch.log.read_text()), switch.process)  # type: ignore[misc]
    assert "table" not in switch.log.read_text()


def test_the_first_packets_are_printed_as_trees(hosts: tuple[Namespace, Namespace], start: StartSwitch) -> None:
    switch = start(hosts, "-L", "info", "--trace", "2")
    hosts[0].run("ping", "-c", "2", "-i", "0.2", "-W", "5", "10.0.1.2")
    _wait_for(lambda: re.search(r"packet 2: .*(\n[├│└ ].*)*out by port", switch.log.read_text()), switch.process)
    printed = [line for line in switch.log.read_text().splitlines() if "[INFO]" not in line]
    assert [line for line in printed if line.startswith("packet")] == [
        "packet 1: in by port 1, 98 bytes",
        "packet 2: in by port 2, 98 bytes",
    ]
    assert [line for line in printed if line.startswith("└")] == [
        "└── out by port 2, 98 bytes",
        "└── out by port 1, 98 bytes",
    ]
    # the third and fourth packet went through plain code, untraced, and the switch may be traced again
    assert " 1 received" in hosts[0].run("ping", "-c", "1", "-W", "5", "10.0.1.2")
