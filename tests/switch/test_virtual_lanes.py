"""p4/include/virtual_lanes.p4 on native switch, oracle and simple_switch: the same lanes in the same bytes."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_twin import Twin
from p4c import P4c
from reference_switch import AVAILABLE, ReferenceSwitch
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw, raw
from test_native_fabric import FABRIC, IPV4_NUMBER, IPV6_NUMBER, MAC, MAC_NUMBER

from weft.compiler import compile_file
from weft.switch.backend import ActionCall, ExactMatch, LpmMatch, SwitchBackend, TableEntry, TernaryMatch
from weft.traffic.layers import BTH, icrc_is_valid

FORWARDING = "FabricIngress.forwarding."
LANES = "FabricIngress.virtual_lanes."
HOSTS, PEERS = (1, 2), (3, 4)
DATA, SECOND, CONTROL = 3, 4, 6
DSCP = {DATA: 26, SECOND: 32, CONTROL: 48}
CLASS = {dscp: number for number, dscp in DSCP.items()}
LAYERED = 9
"""Last byte of the destination whose packets begin in the second lane."""
CROSSING = (3, 4)
"""By which port packets come and go that change from the second lane back to the first."""
ALL_PORTS = (1 << 9) - 1


def address(ip_version: int, last: int) -> int:
    return (0x0A000000 if ip_version == 4 else 0xFD << 120) + last


def configure(switch: SwitchBackend) -> None:
    """Destination n is by port n; 9 is by port 4, and is a layer of its own."""
    identity = (1, 0, MAC_NUMBER, IPV4_NUMBER, IPV6_NUMBER, 0, 0, 0, 0)
    switch.table_set_default(
        "FabricIngress.identity.identity", ActionCall("FabricIngress.identity.set_identity", identity)
    )
    for number, dscp in DSCP.items():
        for table in ("class_map", "class_map_ipv6"):
            call = ActionCall("FabricIngress.classes.set_class", (number,))
            switch.table_insert(f"FabricIngress.classes.{table}", TableEntry((ExactMatch(dscp),), call))
    for version, bits in ((4, 32), (6, 128)):
        for last in (*HOSTS, *PEERS, LAYERED):
            port = PEERS[-1] if last == LAYERED else last
            hop = ActionCall(f"{FORWARDING}set_next_hop", (port, MAC_NUMBER, 0x020000000000 + port))
            key = (LpmMatch(address(version, last), bits),)
            switch.table_insert(f"{FORWARDING}ipv{version}_lpm", TableEntry(key, hop))
        layer = TableEntry((LpmMatch(address(version, LAYERED), bits),), ActionCall(f"{LANES}set_layer", (1,)))
        switch.table_insert(f"{LANES}layer_by_ipv{version}", layer)


def add_lanes(switch: SwitchBackend) -> None:
    for port in HOSTS:
        entry = TableEntry((ExactMatch(port),), ActionCall(f"{LANES}from_host"))
        switch.table_insert(f"{LANES}host_ports", entry)
    first, second = (ActionCall(f"{LANES}set_virtual_lane", (number, DSCP[number])) for number in (DATA, SECOND))
    switch.table_insert(f"{LANES}layer_lane", TableEntry((ExactMatch(1), ExactMatch(DATA)), second))
    come, go = (TernaryMatch(port, ALL_PORTS) for port in CROSSING)
    back = TableEntry((come, go, ExactMatch(SECOND)), first, priority=2)
    switch.table_insert(f"{LANES}virtual_lane", back)
    onward = TableEntry((TernaryMatch(0, 0), go, ExactMatch(DATA)), second, priority=1)
    switch.table_insert(f"{LANES}virtual_lane", onward)


def lane_after(ingress: int, destination: int, dscp: int) -> int:
    """The same rules in words: the DSCP that a packet leaves with."""
    egress = PEERS[-1] if destination == LAYERED else destination
    number = CLASS.get(dscp, 0)
    if ingress in HOSTS and destination == LAYERED and number == DATA:
        number, dscp = SECOND, DSCP[SECOND]
    if (ingress, egress) == CROSSING and number == SECOND:
        return DSCP[DATA]
    if egress == CROSSING[1] and number == DATA:
        return DSCP[SECOND]
    return dscp


def frame(ip_version: int, destination: int, dscp: int, ecn: int) -> bytes:
    ip = (
        IP(src="10.0.0.77", dst=f"10.0.0.{destination}", tos=dscp << 2 | ecn)
        if ip_version == 4
        else IPv6(src="fd00::77", dst=f"fd00::{destination}", tc=dscp << 2 | ecn)
    )
    sent = Ether(src="02:00:00:00:00:01", dst=MAC) / ip / UDP(sport=0xC001, dport=4791, chksum=0)
    return raw(sent / BTH(opcode=4) / Raw(b"x" * 64))


@pytest.fixture(scope="module")
def document() -> bytes:
    return json.dumps(compile_file(FABRIC).json).encode()


@pytest.fixture(scope="module")
def twin(document: bytes) -> Twin:
    made = Twin(document)
    made.both(configure)
    made.both(add_lanes)
    return made


packets = st.tuples(
    st.sampled_from((*HOSTS, *PEERS)),
    st.sampled_from([4, 6]),
    st.sampled_from((*HOSTS, *PEERS, LAYERED)),
    st.sampled_from((*CLASS, 0, 63)),
    st.integers(0, 3),
)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(packet=packets)
def test_lanes_follow_ports_layer_and_arrival_lane(twin: Twin, packet: tuple[int, int, int, int, int]) -> None:
    ingress, ip_version, destination, dscp, ecn = packet
    ((_, data),) = twin.process(ingress, frame(ip_version, destination, dscp, ecn))
    sent = Ether(data)
    traffic_class = sent[IP].tos if ip_version == 4 else sent[IPv6].tc
    assert (traffic_class >> 2, traffic_class & 3) == (lane_after(ingress, destination, dscp), ecn)
    assert icrc_is_valid(data)
    if ip_version == 4:
        checked = sent[IP].copy()
        del checked.chksum
        assert IP(raw(checked)).chksum == sent[IP].chksum


def test_without_entries_nothing_changes(document: bytes) -> None:
    plain = Twin(document)
    plain.both(configure)
    for ip_version, dscp, ecn in itertools.product((4, 6), (*CLASS, 0, 63), range(4)):
        ((_, data),) = plain.process(1, frame(ip_version, LAYERED, dscp, ecn))
        sent = Ether(data)
        assert (sent[IP].tos if ip_version == 4 else sent[IPv6].tc) == dscp << 2 | ecn


def commands() -> list[str]:
    """What configure() and add_lanes() do, for simple_switch_CLI."""
    own = f"1 0 {MAC_NUMBER} {IPV4_NUMBER} {IPV6_NUMBER} 0 0 0 0"
    lines = [f"table_set_default FabricIngress.identity.identity FabricIngress.identity.set_identity {own}"]
    for number, dscp in DSCP.items():
        for table in ("class_map", "class_map_ipv6"):
            lines.append(f"table_add FabricIngress.classes.{table} FabricIngress.classes.set_class {dscp} => {number}")
    for version, bits in ((4, 32), (6, 128)):
        for last in (*HOSTS, *PEERS, LAYERED):
            port = PEERS[-1] if last == LAYERED else last
            hop = f"{port} {MAC_NUMBER} {0x020000000000 + port}"
            key = f"{hex(address(version, last))}/{bits}"
            lines.append(f"table_add {FORWARDING}ipv{version}_lpm {FORWARDING}set_next_hop {key} => {hop}")
        key = f"{hex(address(version, LAYERED))}/{bits}"
        lines.append(f"table_add {LANES}layer_by_ipv{version} {LANES}set_layer {key} => 1")
    lines += [f"table_add {LANES}host_ports {LANES}from_host {port} =>" for port in HOSTS]
    first, second = (f"{LANES}set_virtual_lane", DATA), (f"{LANES}set_virtual_lane", SECOND)
    come, go = CROSSING
    for table, key, (action, number), priority in (
        ("layer_lane", f"1 {DATA}", second, ""),
        ("virtual_lane", f"{come}&&&511 {go}&&&511 {SECOND}", first, "1"),
        ("virtual_lane", f"0&&&0 {go}&&&511 {DATA}", second, "2"),
    ):
        # simple_switch's lower number wins.
        lines.append(f"table_add {LANES}{table} {action} {key} => {number} {DSCP[number]} {priority}")
    return lines


@pytest.mark.reference
@pytest.mark.skipif(not AVAILABLE, reason="simple_switch is not on PATH")
def test_simple_switch_takes_the_same_lanes(twin: Twin, p4c: P4c, tmp_path: Path) -> None:
    sent = [
        (ingress, frame(ip_version, destination, dscp, 1))
        for ingress, ip_version, destination, dscp in itertools.product(
            (*HOSTS, *PEERS), (4, 6), (*PEERS, LAYERED), (26, 32, 0)
        )
    ]
    with ReferenceSwitch(p4c.compiled(FABRIC).json, tmp_path) as reference:
        reference.command(*commands())
        reference.send(sent)
        left = reference.stop()
    found = [output for port, data in sent for output in twin.process(port, data)]
    assert len(found) == len(sent)
    assert sorted(found) == sorted((port, data) for port, copies in left.items() for data in copies)
