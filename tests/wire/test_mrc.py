"""MRC packets: the engine, Scapy's layers and the descriptions in `weft/wire/` are one format, both ways."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from random import Random
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw, raw

from tests.wire.described_bits import packed
from tests.wire.mrc_samples import KINDS, VERSIONS, WRITES, Sample, ipv4, number_of, sample
from weft.engine import _core
from weft.traffic import layers
from weft.traffic.layers import BTH, HAS_TIMESTAMP, MRC_OPCODE, RETRANSMISSION
from weft.wire import Field
from weft.wire.code_points import DSCP_TRIMMABLE, DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP
from weft.wire.headers.mrc import MRC_BTH
from weft.wire.headers.network import ETHERNET, IPV4, IPV6
from weft.wire.headers.network import UDP as UDP_HEADER
from weft.wire.headers.roce import ICRC

# Packets of each kind; the second number with the slow tests. Scapy takes a hundred times as long.
NATIVE, SCAPY = (400, 10_000), (40, 1_000)
TRIMMED_CODE_POINTS = (DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [NATIVE[0], pytest.param(NATIVE[1], marks=pytest.mark.slow)])
def test_the_engine_reads_and_writes_what_is_described(kind: str, count: int) -> None:
    for number in range(count):
        drawn = sample(kind, number)
        parsed, payload = _core.parse_packet(drawn.frame)
        assert parsed == drawn.native()
        assert payload == drawn.payload
        assert _core.build_packet(parsed, payload) == drawn.frame


def in_scapy(drawn: Sample) -> Packet:
    """Return the packet, layer by layer."""
    ends = IPv4Address if drawn.version == 4 else IPv6Address
    addresses = {name: str(ends(drawn.ip[name])) for name in ("src", "dst")}
    traffic_class = drawn.ip["dscp"] << 2 | drawn.ip["ecn"]
    macs = {name: ETHERNET.field(name).written(drawn.ethernet[name]) for name in ("src", "dst")}
    if drawn.version == 4:
        ip = IP(**addresses, tos=traffic_class, **{name: drawn.ip[name] for name in ("id", "flags", "ttl")})
    else:
        ip = IPv6(**addresses, tc=traffic_class, fl=drawn.ip["fl"], hlim=drawn.ip["hlim"])
    bth = drawn.bth
    flags = RETRANSMISSION * bth["rtx"] | HAS_TIMESTAMP * bth["ts"]
    same = {name: bth[name] for name in ("opcode", "padcount", "pkey", "dqpn", "ackreq", "psn")}
    packet = Ether(**macs) / ip / UDP(sport=drawn.source_port, dport=4791, chksum=0) / BTH(**same, resv7=flags)
    for header, values in drawn.extended:
        fields = [each for each in header.fields if isinstance(each, Field)]
        packet /= getattr(layers, header.name)(**{each.name: number_of(each, values[each.name]) for each in fields})
    padded = drawn.payload + bytes(-len(drawn.payload) % 4)
    return packet / Raw(padded) if padded else packet


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [SCAPY[0], pytest.param(SCAPY[1], marks=pytest.mark.slow)])
def test_scapy_reads_and_writes_what_is_described(kind: str, count: int) -> None:
    for number in range(count):
        drawn = sample(kind, number)
        frame = drawn.frame
        assert raw(in_scapy(drawn)) == frame
        dissected = Ether(frame)
        for header, values in drawn.extended:
            layer = dissected[getattr(layers, header.name)]
            found = {each: layer.getfieldval(each) % (1 << field.bits) for each, field in header.numbers()}
            assert found == values
        assert dissected[BTH].sprintf("%BTH.opcode%") == kind
        assert raw(dissected) == frame
        assert layers.icrc_is_valid(frame)


def test_scapy_s_bth_begins_and_ends_its_fields_where_they_are_described() -> None:
    """All that MRC has in addition lies in resv7."""
    described = [each.bits for each in MRC_BTH.fields if isinstance(each, Field)]
    ends = {sum(described[: place + 1]) for place in range(len(described))}
    assert sum(described) == MRC_BTH.bits == 96
    assert (RETRANSMISSION, HAS_TIMESTAMP) == (0x20, 0x10)
    assert {8, 10, 12, 16, 32, 40, 64, 65, 72, 96} <= ends
    assert not set(MRC_OPCODE.values()) & set(layers.OPCODE.values())


@pytest.mark.parametrize("number", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_that_ends_early_is_truncated(kind: str, number: int) -> None:
    frame = sample(kind, number).with_dscp(DSCP_TRIMMABLE).frame
    assert {_core.parse_error(frame[:length]) for length in range(len(frame))} == {"truncated"}


@pytest.mark.parametrize("number", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_packet_that_ends_early_is_refused_with_its_reason(kind: str, number: int) -> None:
    """Lengths and iCRC are those of what is left."""
    drawn = replace(sample(kind, number), payload=b"").with_dscp(DSCP_TRIMMABLE)
    drawn = replace(drawn, bth=drawn.bth | {"padcount": 0})
    whole = drawn.transport
    for length in range(MRC_BTH.size_bytes, len(whole)):
        assert _core.parse_error(drawn.framed(whole[:length])) == "truncated"
    assert _core.parse_error(drawn.framed(whole)) == "none"
    for more in range(1, 9):
        expected = "unexpected_payload" if kind not in WRITES else "bad_pad_count" if more % 4 else "none"
        assert _core.parse_error(drawn.framed(whole + bytes(more))) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_frames_are_refused_or_as_valid_as_before(kind: str) -> None:
    """Only a few bits are covered by nothing: addresses of the link, traffic class, hop limit and the like."""
    random = Random(kind)
    for number in range(200):
        frame = bytearray(sample(kind, number).frame)
        for _ in range(random.randint(1, 3)):
            frame[random.randrange(len(frame))] ^= 1 << random.randrange(8)
        error = _core.parse_error(bytes(frame))
        if error == "none":
            parsed, _ = _core.parse_packet(bytes(frame))
            assert parsed["bth"]["opcode"] in MRC_OPCODE.values()
            assert layers.icrc_is_valid(bytes(frame)) or parsed["mrc"]["trimmed"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("MRC_RELIABILITY_SACK", {"m": 3}),
        ("MRC_ENDPOINT_REQUEST", {"op": 2}),
        ("MRC_ENDPOINT_REQUEST", {"op": 3}),
        ("MRC_ENDPOINT_RESPONSE", {"op": 2}),
        ("MRC_ENDPOINT_RESPONSE", {"op": 3}),
    ],
)
def test_reserved_values_are_refused_both_ways(kind: str, values: dict[str, int]) -> None:
    drawn = sample(kind, 1)
    (header, before), *rest = drawn.extended
    changed = replace(drawn, extended=((header, before | values), *rest))
    assert _core.parse_error(changed.frame) == "bad_mrc_header"
    (name, value), *_ = values.items()
    with pytest.raises(ValueError, match=rf"mrc\.{header.name.lower()}\.{name} is {value} \(valid: 0 "):
        _core.build_packet(changed.native())  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["MRC_ENDPOINT_REQUEST", "MRC_ENDPOINT_RESPONSE"])
def test_an_endpoint_operation_goes_to_its_queue_pair_only(kind: str) -> None:
    drawn = sample(kind, 0)
    changed = replace(drawn, bth=drawn.bth | {"dqpn": 3})
    assert _core.parse_error(changed.frame) == "bad_mrc_header"
    with pytest.raises(ValueError, match="an endpoint operation goes to queue pair 2, not to 3"):
        _core.build_packet(changed.native())  # type: ignore[arg-type]


def test_reserved_bits_are_not_looked_at() -> None:
    """A later revision may use them."""
    drawn = sample("MRC_RELIABILITY_SACK", 0)
    (header, values), rest = drawn.extended
    others = {"type": 15, "next_header": 31, "reserved1": 7, "reserved2": 1, "reserved3": 255}
    changed = replace(drawn, extended=((header, values | others), rest))
    parsed, _ = _core.parse_packet(changed.frame)
    assert parsed == drawn.native()
    with_flags = replace(drawn, bth=drawn.bth | {"ts": 1, "invariant_reserved": 15, "reserved1": 3})
    found, _ = _core.parse_packet(with_flags.frame)
    assert found["mrc"] == drawn.native()["mrc"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bth": {"opcode": 0xC6}}, "BTH opcode 198 is MRC's: its packets are built with their MRC headers"),
        ({"bth": {"opcode": 0x0A}, "mrc": {}}, "BTH opcode 10 is none of MRC's .valid: WRITE 198 to 203, "),
        ({"bth": {"opcode": 0xDC}, "mrc": {"tseth": {}}}, "has_timestamp: BTH opcode 220 has no TSETH"),
        ({"mrc": {"seth": {"cack_psn": 1 << 24}}}, r"mrc\.seth\.cack_psn is 16777216, which is more than 24 bits"),
        ({"mrc": {"cc_state": {"ooo_count": 1 << 15}}}, r"mrc\.cc_state\.ooo_count is 32768, .* 15 bits"),
        ({"mrc": {"seth": {"sack_offset": 1 << 15}}}, r"headers\.mrc\.seth\.sack_offset: 32768 is not"),
        ({"mrc": {"sack": {}}}, r"headers\.mrc: unknown field 'sack' \(valid: .*'seth', 'cc_state'"),
        ({"bth": {"opcode": 0xC6}, "mrc": {}, "dscp": 12}, r"dscp is 12, which switches give to trimmed packets"),
        ({"mrc": {"trimmed": True}}, r"mrc\.trimmed: only switches trim packets \(valid: False\)"),
        ({"bth": {"opcode": 0xDC}, "mrc": {}, "payload": b"weft"}, "opcode 220 carries no payload, but 4 bytes"),
    ],
)
def test_packets_that_cannot_be_are_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"bth": {"opcode": 0xDC}, "source_ip": "10.0.0.1", "destination_ip": "10.0.0.2", **change}
    with pytest.raises(ValueError, match=message):
        _core.build_packet(given, given.pop("payload", b""))  # type: ignore[arg-type]


def test_templates_of_queue_pairs_of_rc_build_no_mrc() -> None:
    with pytest.raises(ValueError, match="a header template builds packets without MRC"):
        _core.HeaderTemplate({"bth": {"opcode": 0xC6}, "mrc": {}})
    with pytest.raises(ValueError, match="BTH opcode 198 is MRC's"):
        _core.HeaderTemplate({"bth": {"opcode": 0xC6}})


def cut_frame(drawn: Sample, length: int, *, ip_length: bool, udp_length: bool) -> bytes:
    """Return the frame cut to `length` bytes by a switch that changes the lengths of these headers."""
    frame = drawn.frame
    ip_at, ip = ETHERNET.size_bytes, IPV4 if drawn.version == 4 else IPV6
    udp_at = ip_at + ip.size_bytes
    cut = bytearray(frame[:length])
    if ip_length and drawn.version == 4:
        cut[ip_at:udp_at] = ipv4(drawn.ip | {"len": length - ip_at})
    elif ip_length:
        cut[ip_at:udp_at] = packed(IPV6, drawn.ip | {"plen": length - udp_at})
    if udp_length:
        cut[udp_at + 4 : udp_at + 6] = (length - udp_at).to_bytes(2, "big")
    return bytes(cut)


LENGTHS = [(False, False), (True, False), (True, True), (False, True)]


@pytest.mark.parametrize(("ip_length", "udp_length"), LENGTHS)
@pytest.mark.parametrize("dscp", TRIMMED_CODE_POINTS)
@pytest.mark.parametrize("kind", WRITES)
def test_a_trimmed_packet_has_its_headers(kind: str, dscp: int, ip_length: bool, udp_length: bool) -> None:
    for number in range(12):
        drawn = replace(sample(kind, number), payload=bytes(range(200)))
        drawn = replace(drawn, bth=drawn.bth | {"padcount": 0}).with_dscp(dscp)
        expected = drawn.native()
        expected["mrc"]["trimmed"] = True
        for length in (drawn.header_bytes, drawn.header_bytes + 1, drawn.header_bytes + 60):
            cut = cut_frame(drawn, length, ip_length=ip_length, udp_length=udp_length)
            parsed, payload = _core.parse_packet(cut)
            assert (parsed, payload) == (expected, b"")


@pytest.mark.parametrize(("ip_length", "udp_length"), LENGTHS)
@pytest.mark.parametrize("number", VERSIONS)
def test_a_frame_cut_within_its_headers_is_refused(number: int, ip_length: bool, udp_length: bool) -> None:
    drawn = sample("MRC_RDMA_WRITE_LAST_WITH_IMMEDIATE", number).with_dscp(DSCP_TRIMMED)
    udp_at = ETHERNET.size_bytes + (IPV4 if drawn.version == 4 else IPV6).size_bytes
    for length in range(udp_at + UDP_HEADER.size_bytes, drawn.header_bytes):
        cut = cut_frame(drawn, length, ip_length=ip_length, udp_length=udp_length)
        assert _core.parse_error(cut) in {"truncated", "bad_udp_length"}


@pytest.mark.parametrize(("ip_length", "udp_length"), LENGTHS)
@pytest.mark.parametrize("number", VERSIONS)
def test_other_packets_are_not_trimmed(number: int, ip_length: bool, udp_length: bool) -> None:
    """Neither an MRC packet without the code point of trimmed ones, nor one of RC, nor a SACK with it."""
    write = replace(sample("MRC_RDMA_WRITE_MIDDLE", number), payload=bytes(200))
    write = replace(write, bth=write.bth | {"padcount": 0})
    refused = {"truncated", "bad_udp_length", "bad_icrc", "bad_pad_count"}
    length = write.header_bytes + 20
    cut = cut_frame(write.with_dscp(DSCP_TRIMMABLE), length, ip_length=ip_length, udp_length=udp_length)
    assert _core.parse_error(cut) in refused
    ordinary = replace(write, bth=write.bth | {"opcode": 0x07, "ts": 0, "rtx": 0}).with_dscp(DSCP_TRIMMED)
    cut = cut_frame(ordinary, length, ip_length=ip_length, udp_length=udp_length)
    assert _core.parse_error(cut) in refused
    sack = sample("MRC_RELIABILITY_SACK", number).with_dscp(DSCP_TRIMMED)
    cut = cut_frame(sack, len(sack.frame) - ICRC.size_bytes, ip_length=ip_length, udp_length=udp_length)
    assert _core.parse_error(cut) in refused


@pytest.mark.parametrize("dscp", TRIMMED_CODE_POINTS)
def test_a_packet_too_short_to_be_trimmed_is_whole_in_spite_of_its_code_point(dscp: int) -> None:
    """Switches give such packets the code point and forward them as they are; the iCRC does not cover it."""
    drawn = replace(sample("MRC_RDMA_WRITE_ONLY", 1), payload=b"whole...")
    drawn = replace(drawn, bth=drawn.bth | {"padcount": 0}).with_dscp(dscp)
    parsed, payload = _core.parse_packet(drawn.frame)
    assert (parsed["mrc"]["trimmed"], payload) == (False, b"whole...")


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("kind", WRITES)
def test_a_packet_built_as_a_length_has_the_same_headers(kind: str, number: int) -> None:
    drawn = sample(kind, number)
    built = _core.build_mrc_as_length(drawn.native(), len(drawn.payload))  # type: ignore[arg-type]
    assert built == drawn.frame[: drawn.header_bytes] + bytes(len(drawn.frame) - drawn.header_bytes)


@pytest.mark.parametrize(
    ("source", "entropy", "ports"),
    [("fd00::1", 0x12345678, (0x1234, 0xA5678)), ("10.0.0.1", 0x12345678, (0x1234, 0))],
)
def test_the_entropy_value_is_the_port_and_the_low_half_of_the_flow_label(
    source: str, entropy: int, ports: tuple[int, int]
) -> None:
    """The four upper bits of the flow label are not its."""
    headers: dict[str, Any] = {
        "source_ip": source,
        "destination_ip": source,
        "flow_label": 0xAFFFF if ":" in source else 0,
        "bth": {"opcode": MRC_OPCODE["MRC_RELIABILITY_NACK"]},
        "mrc": {"entropy": entropy},
    }
    parsed, _ = _core.parse_packet(_core.build_packet(headers))  # type: ignore[arg-type]
    assert (parsed["source_udp_port"], parsed.get("flow_label", 0)) == ports
    assert parsed["mrc"]["entropy"] == (entropy if ":" in source else entropy & 0xFFFF0000)


def test_int_stacks_may_precede_mrc() -> None:
    drawn = sample("MRC_RDMA_WRITE_ONLY", 2)
    headers = drawn.native() | {"telemetry": {"hop_count": 2, "path_id": 7}}
    parsed, payload = _core.parse_packet(_core.build_packet(headers, drawn.payload))  # type: ignore[arg-type]
    assert (parsed["telemetry"]["path_id"], payload) == (7, drawn.payload)
    assert parsed["mrc"] == drawn.native()["mrc"]
