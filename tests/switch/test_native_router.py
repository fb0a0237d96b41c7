"""The router program on the native switch and the oracle: same entries, same packets, same results."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_twin import CPU_PORT, Twin
from router_program import router_document

from weft.switch.backend import (
    ActionCall,
    CloneSession,
    CounterValue,
    ExactMatch,
    GroupMember,
    GroupRef,
    LpmMatch,
    MemberRef,
    RangeMatch,
    Replica,
    SwitchBackend,
    TableEntry,
    TernaryMatch,
)


def ipv4_packet(source: int, destination: int, ttl: int = 64, protocol: int = 17, checksum: int = 0) -> bytes:
    header = bytes([0x45, 0, 0, 40, 0, 1, 0, 0, ttl, protocol]) + checksum.to_bytes(2, "big")
    addresses = source.to_bytes(4, "big") + destination.to_bytes(4, "big")
    return bytes(range(12)) + b"\x08\x00" + header + addresses + b"payload of the packet"


def configure(switch: SwitchBackend) -> None:
    for prefix, length, port in ((0x0A000000, 8, 1), (0x0A010000, 16, 2), (0x0A010203, 32, 3), (0, 0, 4)):
        route = ActionCall("route", (port, 0x020000000000 + port))
        switch.table_insert("routes", TableEntry((LpmMatch(prefix, length),), route))
    for member in range(1, 5):
        switch.member_insert("selector", member, ActionCall("set_port", (10 + member,)))
    switch.group_insert("selector", 1, [GroupMember(1), GroupMember(2, 2), GroupMember(4)])
    switch.table_insert("ecmp", TableEntry((ExactMatch(0x0A010204),), GroupRef(1)))
    switch.table_insert("ecmp", TableEntry((ExactMatch(0x0A010205),), MemberRef(3)))
    deny, permit = ActionCall("deny"), ActionCall("permit")
    low_ttl = (TernaryMatch(0, 0), RangeMatch(0, 9), TernaryMatch(0, 0))
    switch.table_insert("acl", TableEntry(low_ttl, permit, 20))
    tcp = (TernaryMatch(0x0B000000, 0xFF000000), RangeMatch(0, 255), TernaryMatch(6, 0xFF))
    switch.table_insert("acl", TableEntry(tcp, deny, 10))
    rest = (TernaryMatch(0, 0), RangeMatch(0, 255), TernaryMatch(0, 0))
    switch.table_insert("acl", TableEntry(rest, permit, 1))
    for port, call in (
        (1, ActionCall("police", (5,))),
        (2, ActionCall("learn")),
        (3, ActionCall("multicast", (9,))),
        (4, ActionCall("clone", (3,))),
        (5, ActionCall("multicast", (10,))),
        (6, ActionCall("police", (99,))),
    ):
        switch.table_insert("police_table", TableEntry((ExactMatch(port),), call))
    switch.multicast_group_set(9, [Replica(1, 1), Replica(2, 2), Replica(CPU_PORT, 3)])
    switch.clone_session_set(3, CloneSession((Replica(7, 0), Replica(8, 1)), packet_length_bytes=20))


@pytest.fixture(scope="module")
def twin() -> Twin:
    made = Twin(router_document())
    made.both(configure)
    return made


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    port=st.integers(0, 7),
    source=st.sampled_from([0x0B000001, 0x0C000001]) | st.integers(0, 0xFFFFFFFF),
    destination=st.sampled_from([0x0A010203, 0x0A010204, 0x0A010205, 0x0A0000FF]) | st.integers(0, 0xFFFFFFFF),
    ttl=st.integers(0, 255),
    protocol=st.sampled_from([6, 17]),
)
def test_forwarding(twin: Twin, port: int, source: int, destination: int, ttl: int, protocol: int) -> None:
    twin.process(port, ipv4_packet(source, destination, ttl, protocol))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([0, 1, 2, 3, 4, CPU_PORT]), st.binary(max_size=60))
def test_any_bytes(twin: Twin, port: int, data: bytes) -> None:
    twin.process(port, data)


def test_packet_out_leaves_by_the_port_it_names(twin: Twin) -> None:
    assert twin.process(CPU_PORT, b"\x03\x80" + b"frame of some length") == [(7, b"frame of some length")]


def test_state_afterwards_is_the_same(twin: Twin) -> None:
    for port in (1, 1, 2, 3, 4, 5, 6):
        twin.process(port, ipv4_packet(0x0C000001, 0x0A010203))
    native, oracle = twin.native, twin.oracle
    assert native.counter_read_all("counter") == oracle.counter_read_all("counter")
    assert native.counter_read("counter", 5).packets >= 2
    assert native.register_read_all("register") == oracle.register_read_all("register")
    key = (LpmMatch(0x0A010203, 32),)
    counted = native.direct_counter_read("routes", key, 0)
    assert counted == oracle.direct_counter_read("routes", key, 0)
    assert counted.packets > 0


def test_unknown_multicast_group_is_counted() -> None:
    fresh = Twin(router_document())
    fresh.both(configure)
    assert fresh.process(5, ipv4_packet(1, 2)) == []
    assert fresh.native.drops()["empty_multicast_group"] == 1


def test_counters_can_be_written() -> None:
    fresh = Twin(router_document())
    fresh.native.counter_write("counter", 3, CounterValue(7, 700))
    assert fresh.native.counter_read("counter", 3) == CounterValue(7, 700)
    fresh.native.register_fill("register", 9)
    fresh.native.register_write("register", 2, 0xFFFFFFFF)
    assert list(fresh.native.register_read_all("register"))[:4] == [9, 9, 0xFFFFFFFF, 9]
