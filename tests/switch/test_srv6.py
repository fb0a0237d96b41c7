"""SRv6 of p4/include/ev_routes on both implementations of the switch, by docs/spec/srv6.md."""

from __future__ import annotations

import json
from ipaddress import ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_twin import Twin
from scapy.layers.inet import UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw, raw

from weft.compiler import compile_file
from weft.controller.routing.srv6 import BLOCK, FIRST_LOCAL_USID, address_of
from weft.paths import FABRIC_P4
from weft.switch.backend import ActionCall, ExactMatch, SwitchBackend, TableEntry
from weft.traffic.aggregation_format import frame_bytes

MAC, NEXT_MAC, HOST_MAC = "02:01:00:00:00:00", "02:02:00:00:00:00", "02:00:00:00:00:01"
SOURCE, DESTINATION, OWN = "fd00:0:1::1", "fd00::1", "fd00::fe"
HOST_PORT, UPLINK = 1, 3
USID, SPINE = 7, 9
HOST = FIRST_LOCAL_USID + HOST_PORT
PLACE = "FabricIngress.srv6."


def number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


@pytest.fixture(scope="module")
def twin() -> Twin:
    made = Twin(json.dumps(compile_file(FABRIC_P4, defines={"SRV6": "1"}).json).encode())

    def configure(switch: SwitchBackend) -> None:
        identity = (1, 1, number(MAC), 0x0A0000FE, int(ip_address(OWN)), 0, 0, 0, 0)
        own = "FabricIngress.identity."
        switch.table_set_default(f"{own}identity", ActionCall(f"{own}set_identity", identity))
        switch.table_set_default(f"{PLACE}own_usid_of_switch", ActionCall(f"{PLACE}set_usid", (USID,)))
        for usid, action, port, mac in ((SPINE, "to_switch", UPLINK, NEXT_MAC), (HOST, "to_host", HOST_PORT, HOST_MAC)):
            call = ActionCall(f"{PLACE}{action}", (port, number(MAC), number(mac)))
            switch.table_insert(f"{PLACE}next_usid", TableEntry((ExactMatch(usid),), call))

    made.both(configure)
    return made


def inner(**fields: int) -> Packet:
    return IPv6(src=SOURCE, dst=DESTINATION, tc=0x12, fl=77, **fields) / UDP(sport=0xC003, dport=4791) / Raw(bytes(64))


def outer(usids: list[int], **fields: object) -> Packet:
    return Ether(src=NEXT_MAC, dst=MAC) / IPv6(
        **({"src": SOURCE, "dst": str(address_of(usids)), "tc": 0x12, "fl": 77, "hlim": 64, "nh": 41} | fields)
    )


def drops(twin: Twin) -> dict[str, int]:
    names = {}
    for entry in twin.native.table_entries("FabricIngress.drops.drops"):
        value = twin.native.direct_counter_read("FabricIngress.drops.drops", entry.key, entry.priority)
        names[entry.action.action.rpartition(".")[2]] = value.packets
    return names


def reason(twin: Twin, frame: Packet | bytes, port: int = UPLINK) -> str:
    """Return why a frame is dropped."""
    before = drops(twin)
    assert twin.process(port, raw(frame)) == []
    changed = [name for name, count in drops(twin).items() if count != before[name]]
    assert len(changed) == 1
    return changed[0]


def test_a_switch_shifts_the_list_and_sends_to_the_next(twin: Twin) -> None:
    ((port, frame),) = twin.process(HOST_PORT, raw(outer([USID, SPINE, 2, HOST]) / inner()))
    sent = Ether(frame)
    assert port == UPLINK
    assert (sent.src, sent.dst) == (MAC, NEXT_MAC)
    assert sent[IPv6].dst == str(address_of([SPINE, 2, HOST]))
    assert (sent[IPv6].hlim, sent[IPv6].nh, sent[IPv6].tc) == (63, 41, 0x12)
    assert raw(sent[IPv6].payload) == raw(inner())


def test_six_usids_fill_the_address(twin: Twin) -> None:
    ((_, frame),) = twin.process(HOST_PORT, raw(outer([USID, SPINE, 3, 4, 5, HOST]) / inner()))
    listed = int(ip_address(Ether(frame)[IPv6].dst))
    assert listed == int(BLOCK.network_address) | SPINE << 80 | 3 << 64 | 4 << 48 | 5 << 32 | HOST << 16


def test_the_last_switch_takes_the_outer_header_off(twin: Twin) -> None:
    """What the way has done to the outer header is seen in the inner one: a mark, the class, the hop limit."""
    ((port, frame),) = twin.process(UPLINK, raw(outer([USID, HOST], hlim=60, tc=0x33) / inner()))
    sent = Ether(frame)
    assert port == HOST_PORT
    assert (sent.src, sent.dst) == (MAC, HOST_MAC)
    assert (sent[IPv6].src, sent[IPv6].dst, sent[IPv6].nh) == (SOURCE, DESTINATION, 17)
    assert (sent[IPv6].tc, sent[IPv6].hlim, sent[IPv6].fl) == (0x33, 59, 77)
    assert raw(sent[UDP]) == raw(inner()[UDP])


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (outer([SPINE, USID, HOST]) / inner(), "srv6_foreign_usid"),
        (outer([0, USID, HOST]) / inner(), "srv6_foreign_usid"),
        (outer([USID]) / inner(), "srv6_no_next_usid"),
        (outer([USID, 0, HOST]) / inner(), "srv6_no_next_usid"),
        (outer([USID, 0x1234, HOST]) / inner(), "srv6_no_next_usid"),
        (outer([USID, FIRST_LOCAL_USID + 99]) / inner(), "srv6_no_next_usid"),
        (outer([USID, HOST], hlim=0) / inner(), "srv6_hop_limit"),
        (outer([USID, HOST], hlim=1) / inner(), "srv6_hop_limit"),
        (outer([USID, HOST], dst="fcbb:bb01:7:e001::") / inner(), "no_route"),
        (outer([USID, HOST], nh=17) / UDP(dport=4791) / Raw(bytes(30)), "no_route"),
        (outer([USID, HOST], nh=43) / Raw(bytes(24)), "no_route"),
        (outer([USID, HOST]) / Raw(b"\x45" + bytes(60)), "parser_error"),
        (raw(outer([USID, HOST]) / inner())[:70], "parser_error"),
        (raw(outer([USID, HOST]) / inner())[:40], "parser_error"),
    ],
)
def test_what_is_wrong_is_dropped_and_counted(twin: Twin, frame: Packet | bytes, expected: str) -> None:
    assert reason(twin, frame) == expected


def test_only_the_next_switch_takes_a_packet(twin: Twin) -> None:
    frame = outer([USID, HOST]) / inner()
    frame.dst = NEXT_MAC
    assert reason(twin, frame) == "not_for_this_switch"


def test_an_outer_header_does_not_hide_aggregation(twin: Twin) -> None:
    """Of packets without one, the switch forwards none to another node."""
    lanes = frame_bytes(6, 64) - 14 - 40 - 8
    inside = bytes.fromhex("64 40 ffff 00 a66000 00 000000").ljust(lanes, b"\0")
    packet = IPv6(src=SOURCE, dst=DESTINATION) / UDP(sport=1, dport=4791) / Raw(inside)
    assert reason(twin, outer([USID, HOST]) / packet) == "aggregation_not_forwarded"


def test_other_packets_go_as_before(twin: Twin) -> None:
    assert reason(twin, Ether(src=NEXT_MAC, dst=MAC) / inner()) == "no_route"
    ((port, frame),) = twin.process(
        HOST_PORT, raw(Ether(src=HOST_MAC, dst=MAC) / IPv6(src=DESTINATION, dst=OWN) / ICMPv6EchoRequest())
    )
    assert port == HOST_PORT
    assert Ether(frame)[IPv6].src == OWN


@given(st.binary(min_size=1, max_size=120), st.lists(st.integers(0, 0xFFFF), max_size=6), st.integers(0, 255))
@settings(deadline=None, max_examples=150)
def test_both_switches_agree_whatever_comes(twin: Twin, data: bytes, usids: list[int], next_header: int) -> None:
    """And what leaves goes where the list says."""
    listed = [USID, *usids][:6]
    sent = twin.process(UPLINK, raw(outer(listed, nh=next_header)) + data)
    assert {port for port, _ in sent} <= {HOST_PORT, UPLINK}
