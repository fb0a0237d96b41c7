"""Building and parsing: a round trip for everything valid, a named refusal for everything else."""

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transport.header_strategies import OPCODES, RC_ACKNOWLEDGE, RC_WRITE_ONLY, UD_SEND_ONLY, packets
from tests.transport.icrc_reference import reseal
from weft.engine import build_packet, parse_error, parse_packet
from weft.wire.headers.mrc import MRC_OPCODES

Packet = tuple[dict[str, Any], bytes]

ETHERNET, IPV4, UDP = 14, 20, 8
BTH_AT = ETHERNET + IPV4 + UDP


def write_frame(payload: bytes = b"abcd", **changes: Any) -> bytes:
    headers = {
        "source_ip": "10.0.0.1",
        "destination_ip": "10.0.0.2",
        "bth": {"opcode": RC_WRITE_ONLY, "destination_qp": 7},
        "reth": {"length_bytes": len(payload)},
    }
    return build_packet({**headers, **changes}, payload)  # type: ignore[typeddict-item]


def with_bytes(frame: bytes, at: int, new: bytes) -> bytes:
    return frame[:at] + new + frame[at + len(new) :]


@given(packets())
def test_round_trip(packet: Packet) -> None:
    headers, payload = packet
    frame = build_packet(headers, payload)  # type: ignore[arg-type]
    assert parse_error(frame) == "none"
    parsed_headers, parsed_payload = parse_packet(frame)
    parsed = {**parsed_headers}
    for address in ("source_ip", "destination_ip"):  # the same IPv6 address may be written differently
        assert ipaddress.ip_address(str(parsed.pop(address))) == ipaddress.ip_address(headers.pop(address))
    assert parsed == headers
    assert parsed_payload == payload


@given(packets(), st.integers(0, 40))
def test_ethernet_padding_is_ignored(packet: Packet, padding: int) -> None:
    frame = build_packet(*packet)  # type: ignore[arg-type]
    assert parse_packet(frame + bytes(padding)) == parse_packet(frame)


@given(packets(), st.data())
def test_every_cut_is_refused(packet: Packet, data: st.DataObject) -> None:
    frame = build_packet(*packet)  # type: ignore[arg-type]
    size = data.draw(st.integers(0, len(frame) - 1))
    assert parse_error(frame[:size]) == "truncated"


@given(packets(), st.data())
def test_a_flipped_bit_is_noticed_unless_switches_may_change_it(packet: Packet, data: st.DataObject) -> None:
    headers, payload = packet
    headers.pop("telemetry", None)
    frame = build_packet(headers, payload)  # type: ignore[arg-type]
    bit = data.draw(st.integers(8 * ETHERNET, 8 * len(frame) - 1))
    at = bit // 8
    flipped = with_bytes(frame, at, bytes([frame[at] ^ 1 << bit % 8]))
    ip = ETHERNET
    is_ipv4 = frame[12:14] == b"\x08\x00"
    udp = ip + (20 if is_ipv4 else 40)
    mutable = {udp + 6, udp + 7, udp + 8 + 4}
    if not is_ipv4:  # IPv4 has its header checksum for these
        mutable |= {ip, ip + 1, ip + 2, ip + 3, ip + 7}
    assert at in mutable or parse_error(flipped) != "none"


@given(st.binary(max_size=400))
def test_noise_is_refused(noise: bytes) -> None:
    assert parse_error(noise) != "none"
    with pytest.raises(ValueError, match=parse_error(noise)):
        parse_packet(noise)


@given(packets(), st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), max_size=8))
def test_damage_with_a_right_icrc_never_crashes(packet: Packet, damage: list[tuple[int, int]]) -> None:
    frame = bytearray(build_packet(*packet))  # type: ignore[arg-type]
    for at, value in damage:
        frame[at % len(frame)] = value
    parse_error(bytes(frame))


@pytest.mark.parametrize(
    ("at", "new", "error"),
    [
        (12, b"\x08\x06", "not_roce"),  # ARP
        (12, b"\x86\xdd", "bad_ip_header"),  # IPv4 said to be IPv6
        (ETHERNET, b"\x46", "bad_ip_header"),  # options
        (ETHERNET + 9, b"\x06", "not_roce"),  # TCP
        (ETHERNET + 6, b"\x20", "fragmented"),
        (ETHERNET + 6, b"\x40\x01", "fragmented"),
        (ETHERNET + 2, b"\x00\x13", "bad_ip_header"),
        (ETHERNET + 2, b"\x00\x3c", "bad_udp_length"),
        (ETHERNET + IPV4 + 2, b"\x00\x35", "not_roce"),  # DNS
        (ETHERNET + IPV4 + 4, b"\x00\x2f", "bad_udp_length"),
        (ETHERNET + IPV4 + 6, b"\x12\x34", "bad_udp_checksum"),
        (BTH_AT + 1, b"\x41", "bad_transport_version"),
        (BTH_AT, b"\x15", "unknown_opcode"),
        (BTH_AT, b"\x11", "unexpected_payload"),  # an acknowledgement with payload
    ],
)
def test_a_wrong_field_has_its_own_error(at: int, new: bytes, error: str) -> None:
    frame = with_bytes(write_frame(), at, new)
    assert parse_error(reseal(frame) if frame[ETHERNET] == 0x45 else frame) == error


def test_wrong_checksums() -> None:
    frame = write_frame()
    assert parse_error(with_bytes(frame, ETHERNET + 10, b"\0\0")) == "bad_ip_checksum"
    assert parse_error(frame[:-1] + bytes([frame[-1] ^ 1])) == "bad_icrc"


@pytest.mark.parametrize("payload_bytes", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("pad", [0, 1, 2, 3])
def test_only_a_pad_count_that_the_payload_has_room_for_is_taken(payload_bytes: int, pad: int) -> None:
    frame = write_frame(bytes(payload_bytes))
    padded_bytes = -(-payload_bytes // 4) * 4
    changed = reseal(with_bytes(frame, BTH_AT + 1, bytes([0x40 | pad << 4])))
    if pad > padded_bytes:
        assert parse_error(changed) == "bad_pad_count"
    else:
        assert len(parse_packet(changed)[1]) == padded_bytes - pad


def test_a_length_that_is_no_multiple_of_four_is_refused() -> None:
    frame = write_frame(b"abcd")
    shorter = bytearray(frame[:-5] + frame[-4:])
    shorter[ETHERNET + 2 : ETHERNET + 4] = (len(shorter) - ETHERNET).to_bytes(2, "big")
    shorter[ETHERNET + IPV4 + 4 : ETHERNET + IPV4 + 6] = (len(shorter) - ETHERNET - IPV4).to_bytes(2, "big")
    assert parse_error(reseal(bytes(shorter))) == "bad_pad_count"


def test_a_right_udp_checksum_is_taken() -> None:
    frame = bytearray(write_frame(b"odd"))
    udp = bytes(frame[ETHERNET + IPV4 :])
    pseudo = frame[ETHERNET + 12 : ETHERNET + 20] + b"\0\x11" + len(udp).to_bytes(2, "big")
    words = bytes(pseudo) + udp + b"\0" * (len(udp) % 2)
    total = sum(int.from_bytes(words[at : at + 2], "big") for at in range(0, len(words), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    frame[ETHERNET + IPV4 + 6 : ETHERNET + IPV4 + 8] = (total ^ 0xFFFF).to_bytes(2, "big")
    assert parse_error(bytes(frame)) == "none"


@pytest.mark.parametrize(
    ("at", "new"),
    [(0, b"\x28"), (1, b"\x04"), (2, b"\x08\x06"), (4, b"\x60")],
    ids=["version", "slots", "next", "hops"],
)
def test_a_bad_int_shim_is_refused(at: int, new: bytes) -> None:
    frame = write_frame(telemetry={})
    assert parse_error(frame) == "none"
    assert parse_error(with_bytes(frame, ETHERNET + at, new)) == "bad_int_shim"


def aggregation_frame(lanes: int = 64) -> bytes:
    return build_packet(
        {
            "source_ip": "10.0.0.1",
            "destination_ip": "10.0.0.254",
            "bth": {"opcode": UD_SEND_ONLY, "destination_qp": 0xA66000},
            "aggregation": {"job_id": 3, "round": 9, "lane_count": lanes},
        },
        bytes(4 * lanes),
    )


@pytest.mark.parametrize(("lanes", "udp_bytes"), [(0, 52), (64, 308), (128, 564), (256, 1076), (1024, 4148)])
def test_an_aggregation_packet_is_as_long_as_written(lanes: int, udp_bytes: int) -> None:
    frame = aggregation_frame(lanes)
    assert len(frame) == ETHERNET + IPV4 + udp_bytes
    assert int.from_bytes(frame[ETHERNET + IPV4 + 4 : ETHERNET + IPV4 + 6], "big") == udp_bytes
    headers, payload = parse_packet(frame)
    assert (headers["aggregation"]["lane_count"], payload) == (lanes, bytes(4 * lanes))


@pytest.mark.parametrize("lanes", [0, 64])
@pytest.mark.parametrize(
    ("at", "new"),
    [(0, b"\x10"), (0, b"\x22"), (14, b"\x00\x3f"), (14, b"\x01\x00")],
    ids=["version", "kind", "lanes", "more lanes"],
)
def test_a_bad_aggregation_header_is_refused(lanes: int, at: int, new: bytes) -> None:
    frame = with_bytes(aggregation_frame(lanes), BTH_AT + 12 + 8 + at, new)
    assert parse_error(reseal(frame)) == "bad_aggregation_header"


def test_every_opcode_that_is_not_listed_is_unknown() -> None:
    frame = write_frame()
    of_mrc = {opcode.number for opcode in MRC_OPCODES.values()}
    for opcode in set(range(256)) - set(OPCODES) - of_mrc:
        assert parse_error(reseal(with_bytes(frame, BTH_AT, bytes([opcode])))) == "unknown_opcode"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bth": {"opcode": 0x15}}, "unknown BTH opcode 21"),
        ({"bth": {"opcode": RC_ACKNOWLEDGE}}, "carries no payload"),
        ({"bth": {"psn": 1 << 24}}, "psn is 16777216"),
        ({"bth": {"psm": 1}}, "headers.bth: unknown field 'psm'"),
        ({"dscp": 64}, "dscp is 64"),
        ({"dscp": -1}, "headers.dscp: -1"),
        ({"source_mac": "02:00:00:00:00"}, "'02:00:00:00:00' is not a MAC"),
        ({"source_ip": "10.0.0"}, "'10.0.0' is not an IP"),
        ({"source_ip": "fd00::1"}, "different IP versions"),
        ({"telemetry": {"hop_count": 6}}, "hop_count is 6"),
        ({"telemetry": {"hops": [{}] * 6}}, "more than 5 hops"),
        ({"aggregation": {}}, "needs opcode 0x64"),
    ],
)
def test_what_does_not_fit_is_not_built(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_frame(**changes)


def test_a_lane_count_that_is_not_the_payloads_is_not_built() -> None:
    with pytest.raises(ValueError, match="lane_count is 64 in a packet with 512 bytes"):
        build_packet(
            {
                "source_ip": "10.0.0.1",
                "destination_ip": "10.0.0.254",
                "bth": {"opcode": UD_SEND_ONLY, "destination_qp": 0xA66000},
                "aggregation": {"lane_count": 64},
            },
            bytes(512),
        )


def test_a_payload_beyond_ip_is_not_built() -> None:
    with pytest.raises(ValueError, match="does not fit an IP packet"):
        write_frame(bytes(65_500))
