"""The engine reads and writes the headers that `weft/wire/` describes: same fields, same bytes, both ways."""

import ipaddress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Padding, Raw, raw

from tests.wire.described_bits import headers, packed, unpacked
from weft.engine import Collector, Engine, Link, PortMac, TransmitPort, _core
from weft.traffic.layers import CreditLane, CreditUpdate, icrc
from weft.wire import HEADERS, Field, Header
from weft.wire.headers import int_md
from weft.wire.headers.aggregation import AGGREGATION, CONTRIBUTION_QP, LANE_BYTES, LANE_COUNTS, Kind
from weft.wire.headers.int_shim import INT_ETHERTYPE, INT_SHIM
from weft.wire.headers.mac_control import CLASSES, CONTROL_FRAME_BYTES, CREDIT_UPDATE
from weft.wire.headers.mrc import MRC_OPCODES
from weft.wire.headers.network import ETHERNET, IPV4, IPV4_ETHERTYPE
from weft.wire.headers.network import UDP as UDP_HEADER
from weft.wire.headers.roce import BTH, CNP_PADDING, DETH, ICRC, OPCODES, ROCE_UDP_PORT

# Names of headers of the engine's dictionaries; those that are one number have no names of fields.
GROUPS = {
    "DETH": "deth",
    "RETH": "reth",
    "AtomicETH": "atomic_eth",
    "AETH": "aeth",
    "AtomicAckETH": "atomic_ack_original",
    "ImmDt": "immediate",
    "IETH": "invalidate_rkey",
}
# Headers whose fields the engine writes by hand, or one by one: their bytes are compared below or elsewhere. INT-MD is
# read by weft/traffic/int_md_format.py.
BY_HAND = {
    *("Ether", "ARP", "IP", "IPv6", "ICMP", "ICMPv6ND", "UDP"),
    *("AtomicAckETH", "ImmDt", "IETH", "CNPPadding", "ICRC", "ParameterBlock"),
    *("PriorityPause", "CreditUpdate", "CreditLane", "ValiantShim"),
    *(each.name for each in vars(int_md).values() if isinstance(each, Header)),  # in Python and P4 only
}
BTH_AT = ETHERNET.size_bytes + IPV4.size_bytes + UDP_HEADER.size_bytes
ADDRESSES = {"source_ip": "10.0.0.1", "destination_ip": "10.0.0.2"}


def test_every_header_is_compared() -> None:
    assert {*_core.header_fields(), *BY_HAND} == HEADERS.keys()


@pytest.mark.parametrize("name", sorted(_core.header_fields()))
def test_the_engine_has_the_described_fields(name: str) -> None:
    """Widths and order; hops follow the shim's own fields."""
    described = [each.bits for each in HEADERS[name].fields if isinstance(each, Field)]
    assert [bits for _, bits in _core.header_fields()[name]] == described


def test_an_opcode_has_the_described_headers() -> None:
    by_number = {opcode.number: opcode for opcode in OPCODES.values()}
    of_mrc = {opcode.number for opcode in MRC_OPCODES.values()}  # test_mrc.py
    for number in range(256):
        frame: dict[str, Any] = {**ADDRESSES, "bth": {"opcode": number}}
        if number in of_mrc:
            with pytest.raises(ValueError, match=f"BTH opcode {number} is MRC's"):
                _core.build_packet(frame)
            continue
        if number not in by_number:
            with pytest.raises(ValueError, match=f"unknown BTH opcode {number}"):
                _core.build_packet(frame)
            continue
        opcode = by_number[number]
        built = _core.build_packet(frame)
        extended = sum(each.size_bytes for each in opcode.extensions)
        assert len(built) == BTH_AT + BTH.size_bytes + extended + ICRC.size_bytes
        found = _core.parse_packet(built)[0].keys() & set(GROUPS.values())
        assert found == {GROUPS[each.name] for each in opcode.extensions if each is not CNP_PADDING}
        if opcode.has_payload:
            assert _core.parse_packet(_core.build_packet(frame, b"weft"))[1] == b"weft"
        else:
            with pytest.raises(ValueError, match="carries no payload"):
                _core.build_packet(frame, b"weft")


def flat(value: Any) -> list[int]:
    """Return the numbers of a header as the engine has parsed it, in its order, which is the wire's."""
    if isinstance(value, dict):
        return [number for each in value.values() for number in flat(each)]
    if isinstance(value, list):
        return [number for each in value for number in flat(each)]
    return [int(value)]


def free_values(header: Header, values: dict[str, int], without: tuple[str, ...] = ()) -> list[int]:
    """Return the values that a sender chooses, in wire order."""
    return [values[name] for name, field in header.numbers() if not field.is_fixed and name not in without]


def framed(ethertype: int, behind_ethernet: bytes, roce: bytes) -> bytes:
    """Return an Ethernet frame with the shim, IPv4, UDP, the RoCEv2 headers and the iCRC."""
    udp = IP(src="10.0.0.1", dst="10.0.0.2", flags="DF", id=0) / UDP(dport=ROCE_UDP_PORT, chksum=0)
    packet = raw(udp / Raw(roce + bytes(ICRC.size_bytes)))
    ethernet = raw(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", type=ethertype))
    body = packet[: -ICRC.size_bytes]
    return ethernet + behind_ethernet + body + icrc(body)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_rocev2_is_read_and_written_as_described(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(OPCODES)))
    opcode = OPCODES[name]
    bth = data.draw(
        headers(BTH, opcode=opcode.number, padcount=0).filter(
            lambda each: each["dqpn"] not in (CONTRIBUTION_QP, 0xFFFFFF)
        )
    )
    extended = [(each, data.draw(headers(each))) for each in opcode.extensions]
    shim = data.draw(st.none() | headers(INT_SHIM).filter(lambda each: each["hop_count"] <= 5))
    if shim is not None:
        shim["next_ethertype"] = IPV4_ETHERTYPE
    roce = packed(BTH, bth) + b"".join(packed(each, values) for each, values in extended)
    ethertype = IPV4_ETHERTYPE if shim is None else INT_ETHERTYPE
    frame = framed(ethertype, b"" if shim is None else packed(INT_SHIM, shim), roce)
    assert _core.parse_error(frame) == "none"

    parsed: dict[str, Any] = {**_core.parse_packet(frame)[0]}
    assert flat(parsed["bth"]) == free_values(BTH, bth, ("padcount",))
    for each, values in extended:
        if each is not CNP_PADDING:
            assert flat(parsed[GROUPS[each.name]]) == free_values(each, values)
    if shim is not None:
        assert flat(parsed["telemetry"]) == free_values(INT_SHIM, shim, ("next_ethertype",))
    assert _core.build_packet(parsed).hex() == frame.hex()  # type: ignore[arg-type]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_aggregation_is_read_and_written_as_described(data: st.DataObject) -> None:
    lanes = data.draw(st.sampled_from(LANE_COUNTS))
    header = data.draw(headers(AGGREGATION, lane_count=lanes))
    deth = data.draw(headers(DETH))
    bth = data.draw(headers(BTH, opcode=OPCODES["UD_SEND_ONLY"].number, padcount=0, dqpn=CONTRIBUTION_QP))
    roce = packed(BTH, bth) + packed(DETH, deth) + packed(AGGREGATION, header) + bytes(LANE_BYTES * lanes)
    frame = framed(IPV4_ETHERTYPE, b"", roce)
    assert _core.parse_error(frame) == "none"
    parsed, payload = _core.parse_packet(frame)
    assert flat(parsed["aggregation"]) == free_values(AGGREGATION, header)
    assert _core.build_packet(parsed, payload).hex() == frame.hex()


@given(headers(AGGREGATION, lane_count=0), st.data())
@settings(max_examples=20, deadline=None)
def test_values_that_are_not_described_are_refused(header: dict[str, int], data: st.DataObject) -> None:
    changed = data.draw(st.sampled_from(("version", "kind")))
    header[changed] = data.draw(st.integers(2 if changed == "kind" else 3, 15))
    bth = {name: field.default for name, field in BTH.numbers()}
    bth |= {"opcode": OPCODES["UD_SEND_ONLY"].number, "dqpn": CONTRIBUTION_QP}
    deth = {name: 0 for name, _ in DETH.numbers()}
    frame = framed(IPV4_ETHERTYPE, b"", packed(BTH, bth) + packed(DETH, deth) + packed(AGGREGATION, header))
    assert _core.parse_error(frame) == "bad_aggregation_header"
    assert max(Kind) == 1


@given(
    st.sets(st.integers(0, CLASSES - 1), min_size=1),
    st.lists(st.integers(0, 4095), min_size=CLASSES, max_size=CLASSES),
    st.integers(16, 1000),
)
@settings(max_examples=40, deadline=None)
def test_a_credit_update_is_answered_as_described(classes: set[int], sent: list[int], blocks: int) -> None:
    """FCCL is FCTBS and the whole buffer, which is empty: what the answer has was read from what was asked."""
    engine = Engine()
    forth, back = Link(engine), Link(engine)
    answers = Collector(engine)
    back.connect(answers)
    mac = PortMac(engine, TransmitPort(engine, back, rate_bps=10**11), Collector(engine))
    mac.enable_credits(
        source_mac="02:00:00:00:00:02",
        classes=sorted(classes),
        buffer_bytes=64 * blocks,
        largest_frame_bytes=1024,
    )
    forth.connect(mac)
    enabled = sum(1 << each for each in classes)
    lanes = [CreditLane(sent_blocks=each, limit_blocks=2000) for each in sent]
    request = CreditUpdate(request="request", enabled_lanes=enabled, lanes=lanes)
    asked = raw(Ether(dst="01:80:c2:00:00:01", src="02:00:00:00:00:01") / request)
    asked += bytes(CONTROL_FRAME_BYTES - len(asked))
    assert unpacked(CREDIT_UPDATE, asked)["enabled_lanes"] == enabled
    TransmitPort(engine, forth, rate_bps=10**11).enqueue(asked)
    engine.run_for(10_000_000)
    (_, _, frame), *_ = answers.packets
    answer = Ether(frame)
    assert len(frame) == CONTROL_FRAME_BYTES
    assert answer.layers() == [Ether, CreditUpdate, Padding]
    assert (answer[CreditUpdate].request, answer[CreditUpdate].enabled_lanes) == (0, enabled)
    numbers = unpacked(CREDIT_UPDATE, frame)
    for each in range(CLASSES):
        expected = (sent[each] + blocks) % 4096 if each in classes else 0
        assert numbers[f"lanes[{each}].limit_blocks"] == expected
        assert answer[CreditUpdate].lanes[each].limit_blocks == expected
        assert numbers[f"lanes[{each}].sent_blocks"] == 0


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_ipv4_and_udp_are_read_and_written_as_described(data: st.DataObject) -> None:
    identification, hop_limit, port = (data.draw(st.integers(0, end)) for end in (0xFFFF, 0xFF, 0xFFFF))
    dscp, ecn = data.draw(st.integers(0, 63)), data.draw(st.integers(0, 3))
    source, destination = (data.draw(st.integers(0, 2**32 - 1)) for _ in range(2))
    built = _core.build_packet(
        {
            "source_ip": str(ipaddress.IPv4Address(source)),
            "destination_ip": str(ipaddress.IPv4Address(destination)),
            "identification": identification,
            "hop_limit": hop_limit,
            "dscp": dscp,
            "ecn": ecn,
            "source_udp_port": port,
            "bth": {"opcode": OPCODES["RC_SEND_ONLY"].number},
        }
    )
    ip = unpacked(IPV4, built[ETHERNET.size_bytes :])
    udp = unpacked(UDP_HEADER, built[ETHERNET.size_bytes + IPV4.size_bytes :])
    assert {name: ip[name] for name in ("version", "ihl", "dscp", "ecn", "id", "flags", "ttl", "proto")} == {
        "version": 4,
        "ihl": 5,
        "dscp": dscp,
        "ecn": ecn,
        "id": identification,
        "flags": 2,
        "ttl": hop_limit,
        "proto": 17,
    }
    assert (ip["src"], ip["dst"], ip["len"]) == (source, destination, len(built) - ETHERNET.size_bytes)
    assert udp == {"sport": port, "dport": ROCE_UDP_PORT, "len": len(built) - 34, "chksum": 0}
