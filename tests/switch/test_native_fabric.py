"""p4/fabric.p4 on the native switch and on the oracle: forwarding, telemetry and aggregation in the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_twin import CPU_PORT, Twin
from scapy.layers.inet import IP, TCP, UDP, IPOption_RR
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw, raw

from weft.compiler import compile_file
from weft.switch.backend import (
    ActionCall,
    ExactMatch,
    GroupMember,
    GroupRef,
    LpmMatch,
    Replica,
    SwitchBackend,
    TableEntry,
)
from weft.traffic.layers import BTH, AggregationHeader, IntShim, aggregation_frame, icrc_is_valid

FABRIC = Path(__file__).resolve().parents[2] / "p4" / "fabric.p4"
MAC, MAC_NUMBER = "02:01:00:00:00:00", 0x020100000000
IPV4, IPV4_NUMBER = "10.0.0.254", 0x0A0000FE
IPV6_NUMBER = 0xFD00000000000000_00000000000000FE
FORWARDING = "FabricIngress.forwarding."
AGGREGATION = "FabricIngress.aggregation."
JOB, EPOCH, QKEY, GROUP = 0x0102, 3, 0xDEADBEEF, 7
UPLINKS = (5, 6, 7)


def next_hop(port: int) -> ActionCall:
    return ActionCall(f"{FORWARDING}set_next_hop", (port, MAC_NUMBER, 0x020000000000 + port))


def configure(switch: SwitchBackend) -> None:
    """A leaf with hosts on ports 1 and 2, three uplinks, and one aggregation job of both hosts, itself the root."""
    identity = (0x123, 0x9E3779B9, MAC_NUMBER, IPV4_NUMBER, IPV6_NUMBER, 0, 0, 0, 0)
    switch.table_set_default(
        "FabricIngress.identity.identity", ActionCall("FabricIngress.identity.set_identity", identity)
    )
    for port in (1, 2):
        route = TableEntry((LpmMatch(0x0A000000 + port, 32),), next_hop(port))
        switch.table_insert(f"{FORWARDING}ipv4_lpm", route)
    uplinks = ActionCall(f"{FORWARDING}set_ecmp_group", (1,))
    switch.table_insert(f"{FORWARDING}ipv4_lpm", TableEntry((LpmMatch(0x0A000000, 8),), uplinks))
    switch.table_insert(f"{FORWARDING}ipv6_lpm", TableEntry((LpmMatch(0xFD00 << 112, 16),), uplinks))
    for port in UPLINKS:
        switch.member_insert(f"{FORWARDING}ecmp_selector", port, next_hop(port))
    members = [GroupMember(port) for port in UPLINKS]
    switch.group_insert(f"{FORWARDING}ecmp_selector", 1, members)
    switch.table_insert(f"{FORWARDING}ecmp", TableEntry((ExactMatch(1),), GroupRef(1)))
    for dscp, priority in ((26, 3), (48, 6)):
        call = ActionCall("FabricIngress.classes.set_class", (priority,))
        switch.table_insert("FabricIngress.classes.class_map", TableEntry((ExactMatch(dscp),), call))
    for port in (1, 2, *UPLINKS):
        stamp = ActionCall("FabricEgress.telemetry.set_int", (6, 1, 1))
        switch.table_insert("FabricEgress.telemetry.int_port", TableEntry((ExactMatch(port),), stamp))
    _configure_job(switch)


def _configure_job(switch: SwitchBackend) -> None:
    job = (QKEY, EPOCH, 4, 16, 8, 0b11, 1, 0, 0, 0, 0, GROUP, 2)
    call = ActionCall(f"{AGGREGATION}set_job", job)
    switch.table_insert(f"{AGGREGATION}aggregation_job", TableEntry((ExactMatch(JOB),), call))
    for rank in range(2):
        child = ActionCall(f"{AGGREGATION}child", (rank, 1 << rank, 0))
        key = (ExactMatch(JOB), ExactMatch(rank + 1))
        switch.table_insert(f"{AGGREGATION}aggregation_member", TableEntry(key, child))
    switch.multicast_group_set(GROUP, [Replica(1, 1), Replica(2, 2)])


@pytest.fixture(scope="module")
def twin() -> Twin:
    made = Twin(json.dumps(compile_file(FABRIC).json).encode())
    made.both(configure)
    return made


def roce_frame(destination: str, *, shim: bool = False, ttl: int = 64, source_port: int = 0xC001) -> bytes:
    layers = IP(src="10.0.0.1", dst=destination, tos=26 << 2 | 2, ttl=ttl)
    below = Ether(src="02:00:00:00:00:01", dst=MAC)
    if shim:
        below = below / IntShim()
    return raw(below / layers / UDP(sport=source_port, dport=4791, chksum=0) / BTH(opcode=4) / Raw(b"x" * 64))


def contribution(rank: int, lanes: np.ndarray, round_number: int = 0, **changes: int) -> bytes:
    arguments = {
        "job_id": JOB, "epoch": EPOCH, "slot": 2, "round_number": round_number, "rank": rank, "qkey": QKEY, **changes
    }  # fmt: skip
    frame = aggregation_frame(
        source_mac="02:00:00:00:00:01",
        destination_mac=MAC,
        source_ip=f"10.0.0.{rank + 1}",
        destination_ip=IPV4,
        lanes=[int(lane) for lane in lanes],
        **arguments,
    )
    return raw(frame)


def test_roce_packet_is_routed_and_keeps_its_icrc(twin: Twin) -> None:
    ((port, data),) = twin.process(1, roce_frame("10.0.0.2"))
    sent = Ether(data)
    assert (port, sent[IP].ttl, sent.dst) == (2, 63, "02:00:00:00:00:02")
    assert icrc_is_valid(data)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"options": [IPOption_RR()]}, 10), ({"version": 5}, 1), ({"ihl": 4}, 1)],
    ids=["options", "version", "header length"],
)
def test_ipv4_headers_that_cannot_be_routed_are_dropped_and_counted(
    twin: Twin, changes: dict[str, object], reason: int
) -> None:
    before = twin.native.direct_counter_read("FabricIngress.drops.drops", (ExactMatch(reason),), 0).packets
    frame = raw(Ether(dst=MAC) / IP(src="10.0.0.1", dst="10.0.0.2", **changes) / UDP(sport=1, dport=2))
    assert twin.process(1, frame) == []
    after = twin.native.direct_counter_read("FabricIngress.drops.drops", (ExactMatch(reason),), 0).packets
    assert after == before + 1


def test_int_shim_is_stamped(twin: Twin) -> None:
    ((_, data),) = twin.process(1, roce_frame("10.0.0.2", shim=True))
    shim = Ether(data)[IntShim]
    assert (shim.hop_count, shim.path_id, shim.hops[0].rate_code) == (1, 0x123, 6)


def test_ecmp_spreads_flows_over_all_uplinks(twin: Twin) -> None:
    ports = {twin.process(1, roce_frame("10.9.0.1", source_port=0xC000 + flow))[0][0] for flow in range(64)}
    assert ports == set(UPLINKS)


@pytest.mark.parametrize("round_number", [0, 1, 2])
def test_contributions_add_up_and_the_result_goes_to_all(twin: Twin, round_number: int) -> None:
    rng = np.random.default_rng(round_number)
    lanes = rng.integers(-(2**31), 2**31, (2, 64), dtype=np.int64).astype(np.int32)
    assert twin.process(1, contribution(0, lanes[0], round_number)) == []
    assert twin.process(1, contribution(0, lanes[0], round_number)) == []  # a duplicate is absorbed
    results = twin.process(2, contribution(1, lanes[1], round_number))
    assert [port for port, _ in results] == [1, 2]
    expected = (lanes[0].view(np.uint32) + lanes[1].view(np.uint32)).view(np.int32)
    for _, data in results:
        assert icrc_is_valid(data)
        assert Ether(data)[AggregationHeader].lanes == expected.tolist()
    late = twin.process(1, contribution(0, lanes[0], round_number))
    assert [port for port, _ in late] == [1]


@pytest.mark.parametrize("changes", [{"qkey": 1}, {"epoch": 9}, {"slot": 8}, {"job_id": 5}, {"rank": 1}])
def test_foreign_contributions_are_dropped(twin: Twin, changes: dict[str, int]) -> None:
    before = twin.native.drops()["program_ingress"]
    frame = contribution(changes.pop("rank", 0), np.zeros(64, np.int32), 9, **changes)
    assert twin.process(1, frame) == []
    assert twin.native.drops()["program_ingress"] == before + 1


SEEDS = [
    roce_frame("10.0.0.2"),
    roce_frame("10.9.0.1", shim=True),
    roce_frame("10.0.0.2", ttl=1),
    contribution(0, np.arange(64), 5),
    raw(Ether(dst=MAC) / IPv6(src="fd00::1", dst="fd00:1::2") / UDP(sport=1, dport=4791) / BTH(opcode=0x11)),
    raw(Ether(dst="ff:ff:ff:ff:ff:ff") / ARP(pdst=IPV4)),
    raw(Ether(dst=MAC) / IP(dst="10.0.0.2", options=[]) / TCP()),
    bytes([0, 128]) + roce_frame("10.0.0.2"),
]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(SEEDS),
    st.sampled_from([1, 2, 5, CPU_PORT]),
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 255)), max_size=3),
    st.none() | st.integers(0, 120),
)
def test_damaged_packets_fare_alike(
    twin: Twin, frame: bytes, port: int, changes: list[tuple[int, int]], length: int | None
) -> None:
    damaged = bytearray(frame)
    for offset, value in changes:
        damaged[offset % len(damaged)] = value
    twin.process(port, bytes(damaged[:length]))


def test_aggregation_state_is_the_same_afterwards(twin: Twin) -> None:
    for register in (
        "slot_tag",
        "slot_bitmap",
        "slot_state",
        "slot_request",
        "slot_has_lanes",
        "slot_lane0",
        "slot_lane63",
    ):
        name = AGGREGATION + register
        assert twin.native.register_read_all(name) == twin.oracle.register_read_all(name)
