"""Watched ports and backup replicas follow the state of ports; real interfaces report theirs by netlink."""

from __future__ import annotations

import os
import queue
import shutil
import struct
import subprocess
from collections.abc import Iterator

import pytest
from finsy.proto import rpc_code
from p4runtime_client import P4RuntimeClient, connected
from router_program import MULTICAST, POLICE, PROFILE, SET_PORT, entity
from scapy.layers.l2 import Ether

from weft.port_monitor import PortMonitor, changes, has_carrier
from weft.switch.backend import Replica
from weft.switch.backend.live_replicas import live_replicas
from weft.switch.oracle import OracleSwitch
from weft.switch.p4runtime.device import Device
from weft.switch.p4runtime.service import Server

PACKET = bytes(Ether(type=0x1234))
GROUP = (
    "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 5"
    ' replicas { port: "\\001" instance: 1 }'
    ' replicas { port: "\\002" instance: 2 backup_replicas { port: "\\003" instance: 5 }'
    ' backup_replicas { port: "\\004" instance: 6 } } } }'
)
FLOOD = (
    f"table_entry {{ table_id: {POLICE} match {{ field_id: 1 exact {{ value: '\\011' }} }}"
    f" action {{ action {{ action_id: {MULTICAST} params {{ param_id: 1 value: '\\005' }} }} }} }}"
)


def outputs(switch: OracleSwitch) -> list[int]:
    return sorted(output.port for output in switch.process(9, PACKET))


def test_the_first_backup_whose_port_is_up_stands_in(
    client: P4RuntimeClient, switches: dict[int, OracleSwitch]
) -> None:
    switch = switches[1]
    client.write("INSERT", GROUP)
    client.write("INSERT", FLOOD)
    seen = [outputs(switch)]
    for port, up in ((2, False), (3, False), (4, False), (3, True), (2, True), (1, False)):
        switch.set_port_up(port, up)
        seen.append(outputs(switch))
    assert seen == [[1, 2], [1, 3], [1, 4], [1], [1, 3], [1, 2], [1, 2]]
    query = "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 5 } }"
    assert client.read(entity(query)) == [entity(GROUP)]
    client.write("DELETE", GROUP)
    switch.set_port_up(2, False)
    assert outputs(switch) == []


def test_ports_stay_down_over_a_change_of_program(client: P4RuntimeClient, switches: dict[int, OracleSwitch]) -> None:
    switches[1].set_port_up(2, False)
    client.write("INSERT", GROUP)
    client.write("INSERT", FLOOD)
    assert outputs(switches[1]) == [1, 3]


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ('replicas { port: "\\001" backup_replicas { port: "\\001" instance: 2 } }', "different ports"),
        (
            'replicas { port: "\\001" } replicas { port: "\\002" backup_replicas { port: "\\001" } }',
            "replica 1: port 1 with instance 0 is listed twice",
        ),
        (
            'replicas { port: "\\001" backup_replicas { port: "\\002" instance: 65536 } }',
            "replica 0: backup replica 0: instance 65536 is out of range (valid: 0 to 65535)",
        ),
    ],
)
def test_bad_backups_are_refused(client: P4RuntimeClient, replicas: str, message: str) -> None:
    text = f"packet_replication_engine_entry {{ multicast_group_entry {{ multicast_group_id: 5 {replicas} }} }}"
    error = client.write_error("INSERT", text)
    assert error.canonical_code == rpc_code.INVALID_ARGUMENT
    assert message in error.message


def test_a_watched_port_must_exist() -> None:

    server = Server({1: Device(1, OracleSwitch(), 510, port_numbers=[1, 2])}, "127.0.0.1:0")
    server.start()
    client = connected(server.address)
    call = f'action {{ action_id: {SET_PORT} params {{ param_id: 1 value: "\\001" }} }}'
    client.write("INSERT", f"action_profile_member {{ action_profile_id: {PROFILE} member_id: 1 {call} }}")
    group = (
        f"action_profile_group {{ action_profile_id: {PROFILE} group_id: 1 max_size: 1"
        ' members { member_id: 1 weight: 1 watch_port: "\\003" } }'
    )
    error = client.write_error("INSERT", group)
    assert error.canonical_code == rpc_code.INVALID_ARGUMENT
    assert "watch_port 3: there is no such port (valid: 1, 2)" in error.message
    client.write("INSERT", group.replace("\\003", "\\002"))
    client.close()
    server.stop()


def test_replicas_without_backups_stay() -> None:
    assert live_replicas([Replica(1)], {1}) == (Replica(1),)


def test_netlink_messages() -> None:
    header = struct.Struct("=IHHII")
    address = header.pack(20, 20, 0, 0, 0) + b"1234"
    link = header.pack(16, 16, 0, 0, 0)
    assert not changes(address)
    assert changes(address + link)
    for broken in (b"", b"\1", header.pack(0, 1, 0, 0, 0)):
        assert not changes(broken)


@pytest.fixture
def veth() -> Iterator[tuple[str, str]]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2")
    ends = ("wfail0", "wfail1")
    subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
    yield ends
    subprocess.run(["ip", "link", "del", ends[0]], check=False, capture_output=True)


@pytest.mark.mininet
def test_an_interface_reports_its_carrier(veth: tuple[str, str], caplog: pytest.LogCaptureFixture) -> None:
    reports: queue.SimpleQueue[bool] = queue.SimpleQueue()
    monitor = PortMonitor({veth[0]: reports.put})
    monitor.start()
    assert reports.get(timeout=10) is False
    for command, up in (("up", True), ("down", False)):
        for end in veth:
            subprocess.run(["ip", "link", "set", end, command], check=True)
        assert reports.get(timeout=10) is up
    for end in veth:
        subprocess.run(["ip", "link", "set", end, "up"], check=True)
    assert reports.get(timeout=10) is True
    subprocess.run(["ip", "link", "del", veth[0]], check=True)
    assert reports.get(timeout=10) is False
    monitor.stop()
    assert not has_carrier(veth[0])
    states = ["is up", "is down or gone", "is up", "is down or gone"]
    assert caplog.messages == [f"interface {veth[0]} {state}" for state in states]
