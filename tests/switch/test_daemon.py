"""The switch daemon as a process: ready line, P4Runtime, commands, bad input, and its end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from p4runtime_client import P4RuntimeClient, connected
from router_program import ROUTE, ROUTES, entity
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from weft.switch.daemon.config import ConfigError, parse_config

PATIENCE_S = 60
ROOT = Path(__file__).resolve().parents[2]


def config(**more: Any) -> dict[str, Any]:
    ports = [{"port": 1, "rate_bps": 10**9, "delay_ps": 1000}]
    return {
        "seed": 1,
        "grpc_address": "127.0.0.1:0",
        "switches": [{"device_id": n, "name": f"s{n}", "ports": ports} for n in (1, 2)],
        "internal_links": [[1, 1, 2, 1]],
        **more,
    }


class DaemonProcess:
    def __init__(self, path: Path, document: dict[str, Any]) -> None:
        path.write_text(json.dumps(document))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "weft.switch.daemon", "--config", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def ask(self, text: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.read()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    running = DaemonProcess(tmp_path / "switches.json", config())
    yield running
    running.kill()


def wait_for_stats(daemon: DaemonProcess, name: str, packets: int) -> dict[str, Any]:
    """Ask until the switch has received so many packets: the engine runs by itself."""
    while True:
        stats = daemon.ask('{"command": "stats"}')
        if stats["switches"][name]["received_packets"] >= packets:
            return stats


@pytest.mark.timeout(120)
def test_a_packet_out_crosses_an_internal_link(daemon: DaemonProcess, tmp_path: Path) -> None:
    ready = daemon.read()
    assert ready["ready"] is True
    first = connected(ready["grpc_address"], device_id=1)
    second = connected(ready["grpc_address"], device_id=2)
    assert daemon.ask(json.dumps({"command": "pcap", "device_id": 1, "port": 1, "path": str(tmp_path / "a.pcap")})) == {
        "ok": True
    }
    mac = 'params { param_id: 2 value: "\\x05" }'
    # the second switch sends what arrives to its CPU port
    second.write(
        "INSERT",
        f'table_entry {{ table_id: {ROUTES} match {{ field_id: 1 lpm {{ value: "\\x0a\\x00\\x00\\x00"'
        f" prefix_len: 8 }} }} action {{ action {{ action_id: {ROUTE}"
        f' params {{ param_id: 1 value: "\\x01\\xfe" }} {mac} }} }} }}',
    )
    packet = bytes(Ether(src="02:00:00:00:00:01") / IP(dst="10.0.0.9", ttl=7) / UDP() / b"payload")
    first.send(packet={"payload": packet, "metadata": [{"metadata_id": 1, "value": b"\x01"}]})
    arrived = second.receive("packet").packet
    assert Ether(arrived.payload)[IP].ttl == 6
    assert {each.metadata_id: each.value for each in arrived.metadata} == {1: b"\x01", 2: b"\x00"}
    stats = wait_for_stats(daemon, "s2", 1)
    assert stats["switches"]["s1"]["ports"]["1"]["transmit"]["transmitted"]["packets"] == 1
    assert stats["switches"]["s1"]["ports"]["1"]["link"]["delivered_packets"] == 1
    assert "max_ps" in stats["lateness"]
    assert daemon.ask('{"command": "reset_stats"}') == {"ok": True}
    zero = daemon.ask('{"command": "stats"}')["switches"]["s1"]["ports"]["1"]["transmit"]
    assert zero["transmitted"]["packets"] == 0
    assert daemon.ask('{"command": "pcap", "device_id": 1, "port": 1, "path": null}') == {"ok": True}
    assert (tmp_path / "a.pcap").read_bytes().endswith(b"payload")
    assert len(second.read(entity("table_entry {}"))) == 1
    first.close()
    second.close()
    assert daemon.close() == 0


@pytest.mark.timeout(120)
def test_bad_commands_are_answered_and_survived(daemon: DaemonProcess) -> None:
    daemon.read()
    assert "unknown command 'dance' (valid: 'stats', " in daemon.ask('{"command": "dance"}')["error"]
    assert "not JSON" in daemon.ask("{")["error"]
    assert "unknown command None" in daemon.ask("[]")["error"]
    pcap = {"command": "pcap", "device_id": 3, "port": 1, "path": None}
    assert daemon.ask(json.dumps(pcap))["error"] == "unknown device_id 3 (valid: 1, 2)"
    pcap.update(device_id=1, port=9)
    assert daemon.ask(json.dumps(pcap))["error"] == "unknown port 9 (valid: 1)"
    pcap.update(port=1, path="/nowhere/at/all.pcap")
    assert "/nowhere/at/all.pcap" in daemon.ask(json.dumps(pcap))["error"]
    pcap.update(without_shims="no")
    assert daemon.ask(json.dumps(pcap))["error"] == "without_shims is 'no', neither true nor false"
    pcap.update(command="pcap_by_direction", directory="/nowhere/at/all")
    assert daemon.ask(json.dumps(pcap))["error"] == "without_shims is 'no', neither true nor false"
    assert "switches" in daemon.ask('{"command": "stats"}')
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(PATIENCE_S) == 0


@pytest.mark.timeout(120)
def test_a_missing_interface_is_said_and_exits_4(tmp_path: Path) -> None:
    document = config(internal_links=[])
    document["switches"] = [{"device_id": 1, "name": "s", "ports": [{"port": 1, "interface": "no-such-if0"}]}]
    running = DaemonProcess(tmp_path / "c.json", document)
    assert "no-such-if0" in running.read()["error"]
    assert running.process.wait(PATIENCE_S) == 4
    running.kill()


@pytest.mark.timeout(120)
def test_a_bad_configuration_is_said_and_exits_3(tmp_path: Path) -> None:
    running = DaemonProcess(tmp_path / "c.json", config(dilation=0))
    assert "dilation: Input should be greater than 0" in running.read()["error"]
    assert running.process.wait(PATIENCE_S) == 3
    running.kill()


PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-m", "weft.switch.daemon", "--config", sys.argv[1]],
                         stdin=int(sys.argv[2]), stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.timeout(120)
def test_the_daemon_dies_with_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(config()))
    # this process holds the other end of the daemon's stdin, which so does not end with the parent
    read_end, write_end = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(path), str(read_end)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        pass_fds=[read_end],
    )
    assert parent.stdout is not None
    daemon_pid = int(parent.stdout.readline())
    watch = os.pidfd_open(daemon_pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()

    ended, _, _ = select.select([watch], [], [], PATIENCE_S)
    for descriptor in (watch, read_end, write_end):
        os.close(descriptor)
    assert ended


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"switches": []}, "switches: Tuple should have at least 1 item"),
        ({"colour": 1}, "colour: Extra inputs are not permitted"),
        ({"internal_links": [[1, 1, 2, 7]]}, "port 7 of device 2, which is not there"),
        ({"internal_links": []}, "port 1 of switch 's1' has neither interface nor internal link"),
        ({"internal_links": [[1, 1, 2, 1], [1, 1, 2, 1]]}, "port 1 of device 1 has two internal links"),
        ({"switches": [{"device_id": -1, "name": "a"}]}, "switches.0.device_id"),
        (
            {"switches": [{"device_id": 1, "name": "a", "ports": [{"port": 512, "interface": "x"}]}]},
            "switches.0.ports.0.port: Input should be less than or equal to 511",
        ),
        (
            {"switches": [{"device_id": 1, "name": "a", "ports": [{"port": 1, "interface": "x"}] * 2}]},
            "switches.0: interface 'x' of switch 'a' is listed twice",
        ),
        (
            {
                "switches": [
                    {
                        "device_id": 1,
                        "name": "a",
                        "ports": [{"port": 1, "interface": name} for name in ("x", "y")],
                    }
                ]
            },
            "switches.0: port 1 of switch 'a' is listed twice",
        ),
        (
            {
                "switches": [{"device_id": 1, "name": "a"}, {"device_id": 1, "name": "b"}],
                "internal_links": [],
            },
            "two switches have the same device_id",
        ),
    ],
)
def test_the_configuration_is_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(json.dumps(config(**change)))
    assert message in str(caught.value)


def test_a_client_of_an_unknown_device_gets_the_known_ones(daemon: DaemonProcess) -> None:
    ready = daemon.read()
    client = P4RuntimeClient(ready["grpc_address"], device_id=7)
    with pytest.raises(Exception, match=r"unknown device_id 7 \(valid: 1, 2\)"):
        client.arbitrate()
    client.close()
