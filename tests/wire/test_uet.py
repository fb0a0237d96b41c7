"""UET packets: the engine, Scapy's layers and the descriptions in `weft/wire/` are one format, both ways."""

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from scapy.packet import NoPayload, Packet, Raw, raw

from tests.wire.uet_samples import KINDS, Sample, chosen, plain, sample
from weft.engine import _core
from weft.traffic import layers
from weft.wire import HEADERS, Field
from weft.wire.headers import uet
from weft.wire.headers.uet import NEXT_HEADERS, PACKET_TYPES, UET_UDP_PORT

# Packets of each kind; the second number with the slow tests. Scapy takes a hundred times as long.
NATIVE, SCAPY = (400, 10_000), (40, 1_000)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [NATIVE[0], pytest.param(NATIVE[1], marks=pytest.mark.slow)])
def test_the_engine_reads_and_writes_what_is_described(kind: str, count: int) -> None:
    for number in range(count):
        drawn = sample(kind, number)
        parsed, payload = _core.parse_uet(drawn.datagram)
        assert (parsed, payload) == (plain(drawn), drawn.payload)
        assert _core.build_uet(parsed, payload) == drawn.datagram


@pytest.mark.parametrize("kind", KINDS)
def test_a_packet_that_ends_within_its_headers_is_refused(kind: str) -> None:
    for number in range(20):
        drawn = sample(kind, number)
        for length in range(drawn.header_bytes):
            assert _core.uet_parse_error(drawn.datagram[:length]) == "truncated"
        assert _core.parse_uet(drawn.datagram[: drawn.header_bytes]) == (plain(drawn), b"")


@pytest.mark.parametrize("kind", KINDS)
def test_reserved_bits_are_not_looked_at(kind: str) -> None:
    """A later version may use them."""
    for number in range(20):
        drawn = sample(kind, number)
        headers = tuple(
            (
                header,
                values | {name: (1 << field.bits) - 1 for name, field in header.numbers() if is_reserved(name, field)},
            )
            for header, values in drawn.headers
        )
        assert _core.parse_uet(replace(drawn, headers=headers).datagram) == (plain(drawn), drawn.payload)


def is_reserved(name: str, field: Field) -> bool:
    return field.is_fixed and name not in ("syn", "som", "version", "hd")


@pytest.mark.parametrize(
    ("datagram", "error"),
    [
        ("", "truncated"),
        ("08" + "00" * 40, "encrypted"),
        ("00" * 40, "unknown_type"),
        ("78" + "00" * 40, "unknown_type"),
        ("f8" + "00" * 40, "unknown_type"),
        ("1380" + "00" * 60, "unknown_next_header"),
        ("1180" + "00" * 10 + "10" + "00" * 60, "unknown_opcode"),
        ("1180" + "00" * 10 + "0140" + "00" * 60, "bad_version"),
        ("3a00" + "00" * 10 + "0040" + "00" * 60, "bad_version"),
    ],
)
def test_malformed_packets_are_refused_by_name(datagram: str, error: str) -> None:
    data = bytes.fromhex(datagram)
    assert _core.uet_parse_error(data) == error
    with pytest.raises(ValueError, match=f"not a valid UET packet: {error}$"):
        _core.parse_uet(data)


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ([], "headers none are read as none and then truncated"),
        ([("UETRequest", {"next_header": 1})], "headers UETRequest are read as UETRequest and then truncated"),
        (
            [("UETRequest", {"next_header": 1}), ("UETMedium", {})],
            "headers UETRequest, UETMedium are read as UETRequest, UETSmall: types, next_header",
        ),
        ([("UETRequest", {"next_header": 4}), ("UETSmall", {})], "and then truncated|are read as"),
        ([("UETRequest", {"type": 13})], "and then truncated"),
        ([("UETRequest", {"psn_offset": 1})], r"UETRequest: unknown field 'psn_offset' \(valid: 'type', "),
        ([("UETSynRequest", {"psn_offset": 4096})], r"UETSynRequest\.psn_offset is 4096, which is more than 12 bits"),
        ([("UETNackCCX", {"state1": 1 << 60})], r"UETNackCCX\.state1 is 1152921504606846976, .* 60 bits"),
        ([("UETRequest", {"clear_psn_offset": 1 << 15})], r"UETRequest\.clear_psn_offset: 32768 is not of the right"),
        ([("UETRequests", {})], r"headers: 'UETRequests' is no header of UET \(valid: UETRequest, UETSynRequest, "),
        (["UETRequest"], r"headers: 'UETRequest' is no header \(valid: a pair of a name and a dict"),
        ([("UETRequest", 1)], r"headers: \('UETRequest', 1\) is no header"),
    ],
)
def test_packets_that_cannot_be_are_refused(headers: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.build_uet(headers)


def test_random_bytes_are_read_or_refused() -> None:
    """What is read is built again as it was, but for reserved bits."""
    random = Random("uet")
    found = set()
    for _ in range(20_000):
        data = random.randbytes(random.randint(0, 140))
        found.add(_core.uet_parse_error(data))
        if _core.uet_parse_error(data) == "none":
            parsed, payload = _core.parse_uet(data)
            built = _core.build_uet(parsed, payload)
            assert len(built) == len(data)
            assert _core.parse_uet(built) == (parsed, payload)
    assert found == {
        *("none", "truncated", "encrypted", "unknown_type", "unknown_next_header", "unknown_opcode", "bad_version"),
    }


def built(drawn: Sample) -> Packet:
    """Return UDP and what is behind it, layer by layer."""
    packet = UDP(sport=drawn.source_port, dport=UET_UDP_PORT, chksum=0)
    for header, values in drawn.headers:
        packet = packet / getattr(layers, header.name)(**chosen(header, values))
    return packet / Raw(drawn.payload) if drawn.payload else packet


def read(packet: Packet) -> tuple[list[tuple[str, dict[str, int]]], bytes]:
    """Return UET's headers behind UDP with the numbers that a sender chooses, and the payload."""
    found, inner = [], packet.payload
    while isinstance(inner, layers.UETLayer):
        fields = [each for each in inner.described.fields if isinstance(each, Field) and not each.is_fixed]
        found.append((inner.described.name, {each.name: int(inner.getfieldval(each.name)) for each in fields}))
        inner = inner.payload
    return found, b"" if isinstance(inner, NoPayload) else raw(inner)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [SCAPY[0], pytest.param(SCAPY[1], marks=pytest.mark.slow)])
def test_scapy_reads_and_writes_what_is_described(kind: str, count: int) -> None:
    for number in range(count):
        drawn = sample(kind, number)
        assert raw(built(drawn)) == drawn.frame[-8 - len(drawn.datagram) :]
        packet = Ether(drawn.frame)
        assert read(packet[UDP]) == (plain(drawn), drawn.payload)
        assert raw(packet) == drawn.frame


@pytest.mark.parametrize("kind", KINDS)
def test_a_packet_cut_at_any_byte_is_read_up_to_its_last_whole_header(kind: str) -> None:
    """Scapy leaves what is not whole as bytes."""
    for number in range(6):
        drawn = sample(kind, number)
        ends = [0]
        for header, _ in drawn.headers:
            ends.append(ends[-1] + header.size_bytes)
        for length in range(2, drawn.header_bytes):
            found = Ether(drawn.framed(drawn.datagram[:length]))[UDP]
            whole = sum(end <= length for end in ends[1:])
            assert read(found)[0][:whole] == plain(drawn)[:whole]
            assert raw(found)[8:][:length] == drawn.datagram[:length]


def test_every_header_occurs_in_the_samples() -> None:
    found = {header.name for kind in KINDS for number in range(300) for header, _ in sample(kind, number).headers}
    assert found == {each.name for each in uet.HEADERS}
    assert found == {name for name in HEADERS if name.startswith("UET")}


@pytest.mark.parametrize("number", range(32))
def test_types_without_a_layout_are_bytes(number: int) -> None:
    data = bytes((number << 3, 0)) + bytes(40)
    layer = Ether(sample("ACK", 0).framed(data))[UDP].payload
    has_layout = number in {each.number for each in PACKET_TYPES.values()}
    assert isinstance(layer, layers.UETLayer) is has_layout
    assert isinstance(layer, Raw) is not has_layout


@pytest.mark.parametrize("next_header", [*range(7, 16), 0])
def test_reserved_next_headers_are_payload(next_header: int) -> None:
    drawn = sample("RUD_REQUEST", 2, 0)
    assert NEXT_HEADERS.get(next_header, "none") == "none"
    ((header, values),) = drawn.headers
    changed = replace(drawn, headers=((header, values | {"next_header": next_header}),))
    found, payload = read(Ether(changed.frame)[UDP])
    assert (found, payload) == (plain(changed), drawn.payload)


def test_data_goes_with_the_packet_that_establishes_a_context() -> None:
    """The first packet of a PDC has `syn`, a write and its payload."""
    write = layers.UETSynRequest(
        type=2, next_header=3, ackreq=1, psn=1000, spdcid=7, psn_offset=0
    ) / layers.UETStandard(opcode="write", message_id=1, buffer_offset=4096, match_bits=9, request_length=4)
    packet = UDP(raw(UDP(sport=50_000) / write / Raw(b"weft")))
    assert packet.dport == UET_UDP_PORT
    assert packet[layers.UETStandard].message_id == 1
    assert packet[layers.UETSynRequest].syn == 1
    assert packet[Raw].load == b"weft"


def test_types_and_their_headers_are_one_to_one() -> None:
    numbers = [each.number for each in PACKET_TYPES.values()]
    assert numbers == sorted(numbers)
    assert all(first < second for first, second in pairwise(numbers))
    for kind in PACKET_TYPES.values():
        for first in (kind.headers[0], *kind.syn_headers[:1]):
            assert kind.number in first.field("type").values
