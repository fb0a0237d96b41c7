"""Random UET packets, put together bit by bit from the descriptions in `weft/wire/`."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.wire.described_bits import packed
from tests.wire.mrc_samples import VERSIONS, drawn, ipv4, number_of
from weft.wire import Field, Header
from weft.wire.headers.network import ETHERNET, IPV4, IPV4_ETHERTYPE, IPV6, IPV6_ETHERTYPE, UDP
from weft.wire.headers.uet import (
    ATOMIC,
    CC_STATES,
    COMPARE_SWAP,
    COMPARE_SWAP_CODES,
    NEXT_HEADERS,
    OTHER_CC_STATE,
    PACKET_TYPES,
    REQUEST_HEADERS,
    REQUEST_OPCODES,
    SEMANTIC_HEADERS,
    UET_UDP_PORT,
    extension,
    standard_header,
)

KINDS = tuple(PACKET_TYPES)


def chosen(header: Header, values: dict[str, int]) -> dict[str, int]:
    """Return the numbers of a header that a sender chooses."""
    fields = [each for each in header.fields if isinstance(each, Field) and not each.is_fixed]
    return {each.name: number_of(each, values[each.name]) for each in fields}


@dataclass(frozen=True)
class Sample:
    """A UET packet: values of its headers by the described names."""

    version: int
    ethernet: dict[str, int]
    ip: dict[str, int]
    source_port: int
    headers: tuple[tuple[Header, dict[str, int]], ...]
    payload: bytes

    @property
    def header_bytes(self) -> int:
        """Bytes of UET's headers."""
        return sum(header.size_bytes for header, _ in self.headers)

    @property
    def datagram(self) -> bytes:
        """What UDP carries."""
        return b"".join(packed(header, values) for header, values in self.headers) + self.payload

    @property
    def frame(self) -> bytes:
        """The whole frame."""
        return self.framed(self.datagram)

    def framed(self, datagram: bytes) -> bytes:
        """Return a frame around `datagram`: its lengths are right."""
        udp_bytes = UDP.size_bytes + len(datagram)
        udp = {"sport": self.source_port, "dport": UET_UDP_PORT, "len": udp_bytes, "chksum": 0}
        if self.version == 6:
            ip = packed(IPV6, self.ip | {"plen": udp_bytes})
        else:
            ip = ipv4(self.ip | {"len": IPV4.size_bytes + udp_bytes})
        return packed(ETHERNET, self.ethernet) + ip + packed(UDP, udp) + datagram


def semantic(random: Random, next_header: int) -> list[tuple[Header, dict[str, int]]]:
    """Draw a semantic header with its extensions."""
    if NEXT_HEADERS[next_header] == "request_standard":
        header = standard_header(random.choice(tuple(REQUEST_OPCODES)), random.getrandbits(1))
    elif next_header in SEMANTIC_HEADERS:
        header = SEMANTIC_HEADERS[next_header]
    else:
        return []
    given: dict[str, int] = {}
    if header in REQUEST_HEADERS:
        given["opcode"] = random.choice(tuple(header.field("opcode").values))
    values = drawn(random, header, **given)
    found = [(header, values)]
    extended = extension(header, values["opcode"])
    if extended is None:
        return found
    found.append((extended, drawn(random, extended)))
    if extended is ATOMIC:
        code = random.choice((*range(0x15), 0xE0, 0xFF))
        found[-1][1]["atomic_code"] = code
        if code in COMPARE_SWAP_CODES:
            found.append((COMPARE_SWAP, drawn(random, COMPARE_SWAP)))
    return found


def sample(kind: str, number: int, next_header: int | None = None) -> Sample:
    """Return the packet of a kind with this number; even numbers are IPv4's."""
    random = Random(f"{kind} {number} {next_header}")
    described = PACKET_TYPES[kind]
    version = VERSIONS[number % 2]
    headers: list[tuple[Header, dict[str, int]]] = []
    following = 0
    for each in random.choice([described.headers, described.syn_headers or described.headers]):
        header = each
        if header is OTHER_CC_STATE:
            header = CC_STATES.get(headers[-1][1]["cc_type"], header)
        given: dict[str, int] = {} if headers else {"type": described.number}
        if not headers and described.has_semantic:
            following = random.choice(tuple(NEXT_HEADERS)) if next_header is None else next_header
            given["next_header"] = following
        if "cc_type" in (names := {name for name, _ in header.numbers()}) and "sack_bitmap" in names:
            given["cc_type"] = random.choice((0, 1, 0, 1, 2, 15))
        headers.append((header, drawn(random, header, **given)))
    headers += semantic(random, following)
    if version == 4:
        ip = drawn(random, IPV4, proto=17, flags=random.choice((0, 2)), frag=0)
    else:
        ip = drawn(random, IPV6, nh=17)
    ethernet = drawn(random, ETHERNET, type=IPV4_ETHERTYPE if version == 4 else IPV6_ETHERTYPE)
    payload = random.randbytes(random.randint(0, 100))
    return Sample(version, ethernet, ip, random.randint(0, 0xFFFF), tuple(headers), payload)


def plain(sample: Sample) -> list[tuple[str, dict[str, Any]]]:
    """Return the headers by name with the numbers that a sender chooses."""
    return [(header.name, chosen(header, values)) for header, values in sample.headers]
