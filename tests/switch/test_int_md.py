"""INT-MD of p4/include/int_md on both implementations of the switch, by docs/spec/int-md.md."""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import ip_address

import pytest
from native_twin import CPU_PORT, Twin
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw, raw

from weft.compiler import compile_file
from weft.controller.features.int_md import EVENTS
from weft.paths import FABRIC_P4
from weft.switch.backend import (
    ActionCall,
    CloneSession,
    ExactMatch,
    LpmMatch,
    Replica,
    SwitchBackend,
    TableEntry,
    TernaryMatch,
)
from weft.traffic.int_md_format import (
    IntMdStack,
    ReportedFlow,
    ReportGroup,
    bitmap_of,
    decoded,
    decoded_group,
    flow_and_stack,
    hop_words_of,
)
from weft.traffic.layers import AETH, BTH, OPCODE, IntShim, icrc_is_valid, rdma_write_frame
from weft.wire.headers.int_md import INT_MD_UDP_PORT, InnerType, ReportType

EGRESS = "FabricEgress.int_md."
MAC, NEXT_MAC = "02:01:00:00:00:00", "02:02:00:00:00:00"
HOST_PORT, OTHER_HOST_PORT, UPLINK, OTHER_UPLINK = 1, 2, 3, 4
SOURCE = {4: "10.0.0.1", 6: "fd00::1"}
DESTINATION = {4: "10.0.1.1", 6: "fd00:0:1::1"}
COLLECTOR = {4: "10.0.2.9", 6: "fd00:0:2::9"}
OWN = {4: "10.0.0.254", 6: "fd00::fe"}
COLLECTOR_PORT, DSCP = 32766, 0
ALL = bitmap_of(["node", "interfaces", "latency", "queue", "ingress_time", "egress_time"])
FEW = bitmap_of(["node", "queue"])


def number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


def route(switch: SwitchBackend, destination: str, port: int) -> None:
    version = ip_address(destination).version
    table = f"FabricIngress.forwarding.ipv{version}_lpm"
    call = ActionCall("FabricIngress.forwarding.set_next_hop", (port, number(MAC), number(NEXT_MAC)))
    entry = TableEntry((LpmMatch(int(ip_address(destination)), 32 if version == 4 else 128),), call)
    try:
        switch.table_insert(table, entry)
    except Exception:
        switch.table_modify(table, entry)


@dataclass
class Fabric:
    """One switch that is in turn every switch of a path."""

    twin: Twin
    version: int

    def node(self, node_id: int) -> None:
        def act(switch: SwitchBackend) -> None:
            switch.table_set_default(f"{EGRESS}int_md_node", ActionCall(f"{EGRESS}set_node", (node_id, 1, 80, 1)))
            collector = (
                node_id, number(MAC), self.version, int(ip_address(OWN[self.version])),
                int(ip_address(COLLECTOR[self.version])), COLLECTOR_PORT, DSCP,
            )  # fmt: skip
            report = "FabricEgress.int_md_report."
            switch.table_set_default(f"{report}int_md_collector", ActionCall(f"{report}set_collector", collector))

        self.twin.both(act)

    def mtu(self, size: int) -> None:
        def act(switch: SwitchBackend) -> None:
            for port in (UPLINK, OTHER_UPLINK):
                switch.table_modify(
                    f"{EGRESS}int_md_egress",
                    TableEntry((ExactMatch(port),), ActionCall(f"{EGRESS}to_switch", (size,))),
                )

        self.twin.both(act)

    def watch(self, *, instructions: int = ALL, hops: int = 8, every: int = 1, protocol: int | None = None) -> None:
        match = [TernaryMatch(0, 0)] * 6
        if protocol is not None:
            match[2] = TernaryMatch(protocol, 0xFF)
        call = ActionCall(f"{EGRESS}watch", (instructions, hop_words_of(instructions), hops, every, 5))
        entry = TableEntry(tuple(match), call, priority=1)

        def act(switch: SwitchBackend) -> None:
            for old in list(switch.table_entries(f"{EGRESS}int_md_watchlist")):
                switch.table_delete(f"{EGRESS}int_md_watchlist", old.key, old.priority)
            switch.table_insert(f"{EGRESS}int_md_watchlist", entry)
            switch.register_fill(f"{EGRESS}int_md_samples", 0)

        self.twin.both(act)

    def passes(self, frame: bytes, node: int, came: int, goes: int) -> dict[int, bytes]:
        """What leaves, by port."""
        self.node(node)
        self.twin.both(lambda switch: route(switch, DESTINATION[self.version], goes))
        frame = raw(Ether(src=NEXT_MAC, dst=MAC, type=int.from_bytes(frame[12:14], "big"))) + frame[14:]
        sent = self.twin.process(came, frame)
        assert len({port for port, _ in sent}) == len(sent)
        return dict(sent)

    def events(self) -> dict[str, int]:
        counts = self.twin.native.counter_read_all("int_md_events")
        return {name: value.packets for name, value in zip(EVENTS, counts, strict=True) if value.packets}


@pytest.fixture(scope="module")
def twin() -> Twin:
    made = Twin(json.dumps(compile_file(FABRIC_P4, defines={"INT_MD": "1"}).json).encode())

    def configure(switch: SwitchBackend) -> None:
        identity = (1, 1, number(MAC), *(int(ip_address(OWN[version])) for version in (4, 6)), 0, 0, 0, 0)
        place = "FabricIngress.identity."
        switch.table_set_default(f"{place}identity", ActionCall(f"{place}set_identity", identity))
        for version in (4, 6):
            route(switch, COLLECTOR[version], OTHER_UPLINK)
        for port in (HOST_PORT, OTHER_HOST_PORT):
            edge = "FabricIngress.int_md_edge."
            switch.table_insert(
                f"{edge}int_md_ingress", TableEntry((ExactMatch(port),), ActionCall(f"{edge}at_edge", ()))
            )
            switch.table_insert(
                f"{EGRESS}int_md_egress", TableEntry((ExactMatch(port),), ActionCall(f"{EGRESS}to_host", ()))
            )
        for port in (UPLINK, OTHER_UPLINK):
            switch.table_insert(
                f"{EGRESS}int_md_egress", TableEntry((ExactMatch(port),), ActionCall(f"{EGRESS}to_switch", (9000,)))
            )
        switch.clone_session_set(1, CloneSession((Replica(CPU_PORT, 0),)))

    made.both(configure)
    return made


@pytest.fixture(params=[4, 6])
def fabric(request: pytest.FixtureRequest, twin: Twin) -> Fabric:
    def clear(switch: SwitchBackend) -> None:
        switch.register_fill("FabricEgress.int_md_report.int_md_sequence", 0)
        for index in range(len(EVENTS)):
            value = switch.counter_read("int_md_events", index)
            switch.counter_write("int_md_events", index, type(value)(0, 0))

    twin.both(clear)
    found = Fabric(twin, request.param)
    found.watch()
    found.mtu(9000)
    return found


def write(version: int, payload: int = 100, int_telemetry: bool = False) -> bytes:
    frame = rdma_write_frame(
        source_mac=NEXT_MAC,
        destination_mac=MAC,
        source_ip=SOURCE[version],
        destination_ip=DESTINATION[version],
        destination_qp=0x123456,
        psn=77,
        source_port=50000,
        payload=bytes(range(payload)),
        int_telemetry=int_telemetry,
    )
    return raw(frame)


def ip_of(version: int, **fields: int) -> Packet:
    kind = IP if version == 4 else IPv6
    return kind(src=SOURCE[version], dst=DESTINATION[version], **fields)


def behind_udp(frame: bytes) -> bytes:
    packet = Ether(frame)
    assert packet[UDP].dport == INT_MD_UDP_PORT
    assert packet[UDP].len == len(frame) - len(packet) + len(raw(packet[UDP]))
    return raw(packet[UDP].payload)


def report_of(frame: bytes, version: int) -> tuple[ReportGroup, ReportedFlow, IntMdStack]:
    packet = Ether(frame)
    address = IP if version == 4 else IPv6
    assert (packet[address].src, packet[address].dst) == (OWN[version], COLLECTOR[version])
    assert packet[UDP].dport == COLLECTOR_PORT
    received = packet[UDP].chksum
    if version == 6:
        del packet[UDP].chksum
        assert received == Ether(raw(packet))[UDP].chksum
    else:
        assert received == 0
    size = packet[address].len if version == 4 else packet[address].plen + 40
    assert len(frame) == 14 + size
    group = decoded_group(raw(packet[UDP].payload))
    (report,) = group.reports
    assert report.type is ReportType.INNER_ONLY
    assert report.inner_type is (InnerType.IPV4 if version == 4 else InnerType.IPV6)
    assert report.tracked
    assert (report.dropped, report.congested, report.intermediate) == (False, False, False)
    return group, *flow_and_stack(report)


def test_three_switches_build_a_stack_and_the_last_one_reports_it(fabric: Fabric) -> None:
    version, sent = fabric.version, write(fabric.version)
    first = fabric.passes(sent, 11, HOST_PORT, UPLINK)[UPLINK]
    stack, rest = decoded(behind_udp(first))
    assert [hop["node_id"] for hop in stack.hops] == [11]
    assert (stack.original, stack.remaining_hops) == (4791, 7)
    assert BTH(rest).dqpn == 0x123456
    second = fabric.passes(first, 22, UPLINK, OTHER_UPLINK)[OTHER_UPLINK]
    stack, _ = decoded(behind_udp(second))
    assert [(hop["node_id"], hop["ingress"], hop["egress"]) for hop in stack.hops] == [
        (11, HOST_PORT, UPLINK),
        (22, UPLINK, OTHER_UPLINK),
    ]
    last = fabric.passes(second, 33, UPLINK, HOST_PORT)
    group, flow, stack = report_of(last[OTHER_UPLINK], version)
    assert (group.node_id, group.sequence) == (33, 0)
    assert flow == ReportedFlow(SOURCE[version], DESTINATION[version], 17, 50000, 4791, 0x123456, 77)
    assert [hop["node_id"] for hop in stack.hops] == [11, 22, 33]
    assert (stack.remaining_hops, stack.hops_exceeded, stack.mtu_exceeded) == (5, False, False)
    for hop in stack.hops:
        assert hop["egress_ns"] - hop["ingress_ns"] == hop["latency_ns"]
    # The host has what was sent, but for the addresses and the hop limit.
    before, after = Ether(sent), Ether(last[HOST_PORT])
    assert raw(after[UDP]) == raw(before[UDP])
    assert icrc_is_valid(last[HOST_PORT])
    assert fabric.events() == {"started": 1, "pushed": 3, "removed": 1, "reported": 1}


def test_a_switch_with_both_hosts_reports_one_hop(fabric: Fabric) -> None:
    sent = write(fabric.version)
    left = fabric.passes(sent, 5, HOST_PORT, OTHER_HOST_PORT)
    _, flow, stack = report_of(left[OTHER_UPLINK], fabric.version)
    assert [(hop["node_id"], hop["ingress"], hop["egress"]) for hop in stack.hops] == [(5, 1, 2)]
    assert flow.psn == 77
    assert raw(Ether(left[OTHER_HOST_PORT])[UDP]) == raw(Ether(sent)[UDP])


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_packet_with_a_checksum_has_a_new_udp_header_before_its_own(fabric: Fabric, transport: str) -> None:
    version = fabric.version
    layer = TCP(sport=4000, dport=80, seq=9) if transport == "tcp" else UDP(sport=4000, dport=5000)
    sent = raw(Ether(src=NEXT_MAC, dst=MAC) / ip_of(version) / layer / Raw(b"payload!"))
    layer_4 = raw(Ether(sent)[type(layer)])
    first = fabric.passes(sent, 1, HOST_PORT, UPLINK)[UPLINK]
    stack, rest = decoded(behind_udp(first))
    assert stack.original == (6 if transport == "tcp" else 17)
    assert rest == layer_4
    second = fabric.passes(first, 2, UPLINK, OTHER_UPLINK)[OTHER_UPLINK]
    last = fabric.passes(second, 3, UPLINK, HOST_PORT)
    _, flow, stack = report_of(last[OTHER_UPLINK], version)
    assert [hop["node_id"] for hop in stack.hops] == [1, 2, 3]
    assert (flow.protocol, flow.source_port, flow.destination_port) == (
        6 if transport == "tcp" else 17,
        4000,
        80 if transport == "tcp" else 5000,
    )
    assert raw(Ether(last[HOST_PORT])[type(layer)]) == layer_4


def test_no_hop_adds_more_than_may(fabric: Fabric) -> None:
    fabric.watch(hops=1)
    first = fabric.passes(write(fabric.version), 1, HOST_PORT, UPLINK)[UPLINK]
    second = fabric.passes(first, 2, UPLINK, OTHER_UPLINK)[OTHER_UPLINK]
    stack, _ = decoded(behind_udp(second))
    assert ([hop["node_id"] for hop in stack.hops], stack.hops_exceeded) == ([1], True)
    last = fabric.passes(second, 3, UPLINK, HOST_PORT)
    _, _, stack = report_of(last[OTHER_UPLINK], fabric.version)
    assert ([hop["node_id"] for hop in stack.hops], stack.hops_exceeded, stack.remaining_hops) == ([1], True, 0)
    assert icrc_is_valid(last[HOST_PORT])


def test_a_packet_grows_to_the_mtu_and_no_further(fabric: Fabric) -> None:
    fabric.watch(instructions=FEW)
    sent = write(fabric.version)
    size = len(sent) - 14
    # Nothing fits; the fixed headers fit; one hop's metadata fit; two.
    for room, hops in ((15, None), (16, 0), (23, 0), (24, 1), (31, 1), (32, 2)):
        fabric.mtu(size + room)
        first = fabric.passes(sent, 1, HOST_PORT, UPLINK)[UPLINK]
        if hops is None:
            assert Ether(first)[UDP].dport == 4791
            assert fabric.events() == {"not_started": 1}
            continue
        second = fabric.passes(first, 2, UPLINK, OTHER_UPLINK)[OTHER_UPLINK]
        stack, _ = decoded(behind_udp(second))
        assert (len(stack.hops), stack.mtu_exceeded) == (hops, hops < 2)
        assert len(second) - 14 <= size + room
        last = fabric.passes(second, 3, UPLINK, HOST_PORT)
        _, _, stack = report_of(last[OTHER_UPLINK], fabric.version)
        # The sink adds its own, which its link to the host does not carry.
        assert (len(stack.hops), stack.mtu_exceeded) == (hops + 1, hops < 2)


def test_one_packet_of_every_three_is_watched(fabric: Fabric) -> None:
    fabric.watch(every=3)
    sent = write(fabric.version)
    ports = [Ether(fabric.passes(sent, 1, HOST_PORT, UPLINK)[UPLINK])[UDP].dport for _ in range(7)]
    assert [port == INT_MD_UDP_PORT for port in ports] == [True, False, False, True, False, False, True]


def test_flows_that_no_entry_matches_stay_as_they_are(fabric: Fabric) -> None:
    fabric.watch(protocol=6)
    assert Ether(fabric.passes(write(fabric.version), 1, HOST_PORT, UPLINK)[UPLINK])[UDP].dport == 4791
    assert fabric.events() == {}


def test_reports_are_numbered(fabric: Fabric) -> None:
    for sequence in range(3):
        left = fabric.passes(write(fabric.version), 7, HOST_PORT, OTHER_HOST_PORT)
        group, _, _ = report_of(left[OTHER_UPLINK], fabric.version)
        assert group.sequence == sequence


def test_int_from_a_host_is_dropped(fabric: Fabric) -> None:
    forged = fabric.passes(write(fabric.version), 1, HOST_PORT, UPLINK)[UPLINK]
    before = fabric.twin.native.counter_read_all("int_md_events")[6].packets
    assert fabric.passes(forged, 1, HOST_PORT, OTHER_HOST_PORT) == {}
    assert fabric.twin.native.counter_read_all("int_md_events")[6].packets == before


@pytest.mark.parametrize(
    ("at", "value"),
    [(0, 0x20), (0, 0x10), (1, 2), (1, 255), (4, 0x10)],
    ids=["type", "npt", "too short", "too long", "version"],
)
def test_broken_int_changes_no_switch(fabric: Fabric, at: int, value: int) -> None:
    """Both switches agree on it (`Twin.process`), and nothing is reported."""
    whole = fabric.passes(write(fabric.version), 1, HOST_PORT, UPLINK)[UPLINK]
    frame = bytearray(whole)
    frame[14 + (20 if fabric.version == 4 else 40) + 8 + at] = value
    assert OTHER_UPLINK not in fabric.passes(bytes(frame), 2, UPLINK, HOST_PORT)


def test_hpcc_shim_and_int_md_go_together(fabric: Fabric) -> None:
    sent = write(fabric.version, int_telemetry=True)
    first = fabric.passes(sent, 1, HOST_PORT, UPLINK)[UPLINK]
    packet = Ether(first)
    assert packet[IntShim].next_ethertype == (0x0800 if fabric.version == 4 else 0x86DD)
    stack, _ = decoded(raw(packet[UDP].payload))
    assert len(stack.hops) == 1
    last = fabric.passes(first, 2, UPLINK, HOST_PORT)
    assert raw(Ether(last[HOST_PORT])[UDP]) == raw(Ether(sent)[UDP])
    _, _, stack = report_of(last[OTHER_UPLINK], fabric.version)
    assert len(stack.hops) == 2


def test_without_a_node_nothing_happens(fabric: Fabric) -> None:
    frame = fabric.passes(write(fabric.version), 1, HOST_PORT, UPLINK)[UPLINK]

    def act(switch: SwitchBackend) -> None:
        switch.table_set_default(f"{EGRESS}int_md_node", ActionCall("NoAction", ()))
        route(switch, DESTINATION[fabric.version], HOST_PORT)

    fabric.twin.both(act)
    sent = fabric.twin.process(UPLINK, raw(Ether(src=NEXT_MAC, dst=MAC))[:12] + frame[12:])
    assert len(sent) == 1
    assert raw(Ether(sent[0][1])[UDP].payload) == raw(Ether(frame)[UDP].payload)


def test_acknowledgements_are_watched_too(fabric: Fabric) -> None:
    """The parser takes them further than others, and INT stands before all of it."""
    packet = (
        Ether(src=NEXT_MAC, dst=MAC)
        / ip_of(fabric.version)
        / UDP(sport=50000, dport=4791, chksum=0)
        / BTH(opcode=OPCODE["RC_ACKNOWLEDGE"], dqpn=9, psn=3)
        / AETH(msn=5)
    )
    first = fabric.passes(raw(packet), 1, HOST_PORT, UPLINK)[UPLINK]
    last = fabric.passes(first, 2, UPLINK, HOST_PORT)
    assert raw(Ether(last[HOST_PORT])[UDP]) == raw(Ether(raw(packet))[UDP])
    _, flow, _ = report_of(last[OTHER_UPLINK], fabric.version)
    assert (flow.queue_pair, flow.psn) == (9, 3)
