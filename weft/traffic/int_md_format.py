"""INT-MD stacks and telemetry reports as plain values: encoding and decoding (docs/spec/int-md.md).

After P4.org's INT Dataplane Specification 2.1 and Telemetry Report Format Specification 2.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Address, IPv6Address, ip_address

from weft.errors import InvalidValueError
from weft.wire import Header
from weft.wire.headers.int_md import (
    INT_MD,
    INT_MD_SHIM,
    INT_MD_UDP_PORT,
    MAX_LENGTH_WORDS,
    REPORT,
    REPORT_GROUP,
    InnerType,
    NextProtocol,
    ReportType,
)
from weft.wire.headers.network import IPV4, IPV6, UDP
from weft.wire.headers.roce import BTH, ROCE_UDP_PORT

WORD_BYTES = 4
HEADER_WORDS = INT_MD.size_bytes // WORD_BYTES
MAX_STACK_WORDS = MAX_LENGTH_WORDS - HEADER_WORDS
FIXED_BYTES = INT_MD_SHIM.size_bytes + INT_MD.size_bytes
"""Shim and INT-MD header."""
_TCP_PROTOCOL, _UDP_PROTOCOL = 6, 17
_TO_THE_END = 0xFF


@dataclass(frozen=True)
class Instruction:
    """Metadata that one bit of the instructions asks for; `parts` are the names and widths in bits of its fields."""

    bit: int
    parts: tuple[tuple[str, int], ...]

    @property
    def words(self) -> int:
        """Words that a hop adds."""
        return sum(bits for _, bits in self.parts) // 32

    @property
    def mask(self) -> int:
        """The bit in the bitmap, of which bit 0 is the most significant."""
        return 1 << (15 - self.bit)


INSTRUCTIONS: Mapping[str, Instruction] = {
    "node": Instruction(0, (("node_id", 32),)),
    "interfaces": Instruction(1, (("ingress", 16), ("egress", 16))),
    "latency": Instruction(2, (("latency_ns", 32),)),
    "queue": Instruction(3, (("queue_id", 8), ("queue_bytes", 24))),
    "ingress_time": Instruction(4, (("ingress_ns", 64),)),
    "egress_time": Instruction(5, (("egress_ns", 64),)),
    "logical_interfaces": Instruction(6, (("logical_ingress", 32), ("logical_egress", 32))),
    "utilisation": Instruction(7, (("utilisation", 32),)),
    "buffer": Instruction(8, (("buffer_id", 8), ("buffer_bytes", 24))),
    **{f"reserved{bit}": Instruction(bit, ((f"reserved{bit}", 32),)) for bit in range(9, 15)},
    "checksum": Instruction(15, (("checksum", 32),)),
}
"""By name, in order of the bits."""


def bitmap_of(names: Iterable[str]) -> int:
    """Return the bitmap of instructions. Raises InvalidValueError for an unknown name."""
    bitmap = 0
    for name in names:
        if name not in INSTRUCTIONS:
            raise InvalidValueError(f"instruction '{name}'", valid=INSTRUCTIONS)
        bitmap |= INSTRUCTIONS[name].mask
    return bitmap


def hop_words_of(bitmap: int) -> int:
    """Return the words that each hop adds."""
    return sum(each.words for each in INSTRUCTIONS.values() if bitmap & each.mask)


@dataclass(frozen=True)
class Hop:
    """Metadata of a hop by name; None where the hop did not know it."""

    values: Mapping[str, int | None]

    def __getitem__(self, name: str) -> int | None:
        """Return a value; None if it was not asked for or not known."""
        return self.values.get(name)


@dataclass(frozen=True)
class IntMdStack:
    """Shim, INT-MD header and stack; `hops` are in order of the path, the first switch first."""

    instructions: int
    hops: tuple[Hop, ...] = ()
    remaining_hops: int = 0
    npt: NextProtocol = NextProtocol.UDP_PAYLOAD
    original: int = ROCE_UDP_PORT
    discard: bool = False
    hops_exceeded: bool = False
    mtu_exceeded: bool = False
    domain_id: int = 0
    domain_instructions: int = 0
    domain_flags: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of all of it."""
        words = HEADER_WORDS + len(self.hops) * hop_words_of(self.instructions)
        return INT_MD_SHIM.size_bytes + words * WORD_BYTES


def encoded(stack: IntMdStack) -> bytes:
    """Return a stack as it is on the wire. Raises InvalidValueError if a value or the stack is too large."""
    hop_words = hop_words_of(stack.instructions)
    length = HEADER_WORDS + len(stack.hops) * hop_words
    if length > MAX_LENGTH_WORDS:
        raise InvalidValueError(f"an INT-MD header and stack of {length} words", valid=f"at most {MAX_LENGTH_WORDS}")
    shim = _packed(INT_MD_SHIM, {"npt": stack.npt, "length_words": length, "original": stack.original})
    names = [each.name for each in fields(stack)]
    header = {name: int(getattr(stack, name)) for name in names if name not in ("hops", "npt", "original")}
    return b"".join(
        (
            shim,
            _packed(INT_MD, header | {"hop_words": hop_words}),
            *(_packed_hop(stack.instructions, hop) for hop in reversed(stack.hops)),
        )
    )


def decoded(data: bytes) -> tuple[IntMdStack, bytes]:
    """Return a stack and the bytes that follow it.

    Raises:
        InvalidValueError: no INT-MD of version 2, cut off, or lengths that contradict each other.
    """
    shim, rest = _unpacked(INT_MD_SHIM, data)
    if shim["type"] != 1:
        raise InvalidValueError(f"INT of type {shim['type']}", valid="1, INT-MD")
    if shim["npt"] not in list(NextProtocol):
        raise InvalidValueError(f"next protocol type {shim['npt']}", valid="1, 2")
    size = shim["length_words"] * WORD_BYTES
    if len(rest) < size:
        raise InvalidValueError(f"INT of {size} B, of which {len(rest)} are there")
    header, stack = _unpacked(INT_MD, rest[:size])
    if header["version"] != 2:
        raise InvalidValueError(f"INT-MD of version {header['version']}", valid="2")
    instructions, hop_bytes = header["instructions"], header["hop_words"] * WORD_BYTES
    if header["hop_words"] != hop_words_of(instructions) or header["domain_instructions"]:
        raise InvalidValueError(
            f"{header['hop_words']} words of each hop with the instructions 0x{instructions:04x} and "
            f"0x{header['domain_instructions']:04x} of domain {header['domain_id']}",
            valid=f"{hop_words_of(instructions)} words, no instructions of a domain",
        )
    if (stack and not hop_bytes) or (hop_bytes and len(stack) % hop_bytes):
        raise InvalidValueError(f"a stack of {len(stack)} B with {hop_bytes} B of each hop")
    pushed = [_hop_of(instructions, stack[at : at + hop_bytes]) for at in range(0, len(stack), hop_bytes or 1)]
    return (
        IntMdStack(
            instructions=instructions,
            hops=tuple(reversed(pushed)),
            remaining_hops=header["remaining_hops"],
            npt=NextProtocol(shim["npt"]),
            original=shim["original"],
            discard=bool(header["discard"]),
            hops_exceeded=bool(header["hops_exceeded"]),
            mtu_exceeded=bool(header["mtu_exceeded"]),
            domain_id=header["domain_id"],
            domain_instructions=header["domain_instructions"],
            domain_flags=header["domain_flags"],
        ),
        rest[size:],
    )


@dataclass(frozen=True)
class Report:
    """An individual report; `inner` begins with a header of `inner_type`."""

    type: ReportType
    inner_type: InnerType
    inner: bytes = b""
    metadata: Hop = field(default_factory=lambda: Hop({}))
    metadata_bits: int = 0
    dropped: bool = False
    congested: bool = False
    tracked: bool = True
    intermediate: bool = False


@dataclass(frozen=True)
class ReportGroup:
    """A datagram of reports that a node sends."""

    node_id: int
    sequence: int
    reports: tuple[Report, ...]
    hardware_id: int = 0


def encoded_group(group: ReportGroup) -> bytes:
    """Return a datagram's payload. Raises InvalidValueError if a value or report is too large."""
    names = {"node_id": group.node_id, "sequence": group.sequence, "hardware_id": group.hardware_id}
    parts = [_packed(REPORT_GROUP, names)]
    for place, report in enumerate(group.reports):
        contents = b""
        if report.type is ReportType.INT:
            contents = struct.pack("!HHHH", report.metadata_bits, 0, 0, 0) + _packed_hop(
                report.metadata_bits, report.metadata
            )
        inner = report.inner + bytes(-len(report.inner) % WORD_BYTES)
        words = (len(contents) + len(inner)) // WORD_BYTES
        if words >= _TO_THE_END and place + 1 < len(group.reports):
            raise InvalidValueError(f"report {place} of {words} words, and others follow", valid="at most 254")
        flags = {name: int(getattr(report, name)) for name in ("dropped", "congested", "tracked", "intermediate")}
        header = {
            "type": report.type,
            "inner_type": report.inner_type,
            "length_words": min(words, _TO_THE_END),
            "metadata_words": hop_words_of(report.metadata_bits),
        }
        parts += [_packed(REPORT, header | flags), contents, inner]
    return b"".join(parts)


def decoded_group(data: bytes) -> ReportGroup:
    """Return the reports in a datagram's payload.

    Raises:
        InvalidValueError: no telemetry report of version 2, cut off, or of types that Weft does not know.
    """
    group, rest = _unpacked(REPORT_GROUP, data)
    if group["version"] != 2:
        raise InvalidValueError(f"a telemetry report of version {group['version']}", valid="2")
    reports = []
    while rest:
        header, rest = _unpacked(REPORT, rest)
        size = len(rest) if header["length_words"] == _TO_THE_END else header["length_words"] * WORD_BYTES
        if len(rest) < size:
            raise InvalidValueError(f"a report of {size} B, of which {len(rest)} are there")
        reports.append(_report(header, rest[:size]))
        rest = rest[size:]
    return ReportGroup(group["node_id"], group["sequence"], tuple(reports), group["hardware_id"])


def _report(header: Mapping[str, int], contents: bytes) -> Report:
    if header["type"] not in list(ReportType) or header["inner_type"] not in list(InnerType):
        raise InvalidValueError(
            f"a report of type {header['type']} with contents of type {header['inner_type']}",
            valid="types 0, 1, contents 0, 3, 4, 5",
        )
    metadata, bits = Hop({}), 0
    if header["type"] == ReportType.INT:
        fixed, size = 8, header["metadata_words"] * WORD_BYTES
        if len(contents) < fixed + size:
            raise InvalidValueError(f"a report of {len(contents)} B with {size} B of metadata")
        bits, _, of_domain, _ = struct.unpack_from("!HHHH", contents)
        if hop_words_of(bits) * WORD_BYTES > size or (not of_domain and hop_words_of(bits) * WORD_BYTES != size):
            raise InvalidValueError(f"{size} B of metadata for the bits 0x{bits:04x}")
        metadata = _hop_of(bits, contents[fixed:])
        contents = contents[fixed + size :]
    return Report(
        ReportType(header["type"]),
        InnerType(header["inner_type"]),
        contents,
        metadata,
        bits,
        **{name: bool(header[name]) for name in ("dropped", "congested", "tracked", "intermediate")},
    )


@dataclass(frozen=True)
class ReportedFlow:
    """The packet that a report is about: its addresses and ports without INT, and of RoCEv2 its queue pair and PSN."""

    source: str
    destination: str
    protocol: int
    source_port: int
    destination_port: int
    queue_pair: int | None = None
    psn: int | None = None


def flow_and_stack(report: Report) -> tuple[ReportedFlow, IntMdStack]:
    """Return the flow of a report's packet, and its INT stack.

    Raises:
        InvalidValueError: it does not begin with IP and UDP, has no INT-MD, or is cut off.
    """
    if report.inner_type not in (InnerType.IPV4, InnerType.IPV6):
        raise InvalidValueError(f"a report of a packet of type {report.inner_type}", valid="4, 5")
    is_ipv4 = report.inner_type is InnerType.IPV4
    ip, rest = _unpacked(IPV4 if is_ipv4 else IPV6, report.inner)
    if is_ipv4 and ip["ihl"] != 5:
        raise InvalidValueError("a report of an IPv4 packet with options")
    if ip["proto" if is_ipv4 else "nh"] != _UDP_PROTOCOL:
        raise InvalidValueError("a report of a packet without UDP")
    udp, rest = _unpacked(UDP, rest)
    if udp["dport"] != INT_MD_UDP_PORT:
        raise InvalidValueError(f"a report of a packet to the UDP port {udp['dport']}", valid=str(INT_MD_UDP_PORT))
    stack, rest = decoded(rest)
    kind = IPv4Address if is_ipv4 else IPv6Address
    protocol, ports = _UDP_PROTOCOL, (udp["sport"], stack.original)
    if stack.npt is NextProtocol.LAYER_4:
        protocol = stack.original & 0xFF
        if len(rest) < 4:
            raise InvalidValueError("a report of a packet without its ports")
        ports = struct.unpack_from("!HH", rest)
    queue_pair = psn = None
    if stack.npt is NextProtocol.UDP_PAYLOAD and stack.original == ROCE_UDP_PORT:
        bth, _ = _unpacked(BTH, rest)
        queue_pair, psn = bth["dqpn"], bth["psn"]
    flow = ReportedFlow(str(kind(ip["src"])), str(kind(ip["dst"])), protocol, *ports, queue_pair, psn)
    return flow, stack


def inner_packet(flow: ReportedFlow, stack: IntMdStack) -> bytes:
    """Return the headers of a packet with INT as a report has them; the opposite of `flow_and_stack`."""
    behind = b""
    source_port = flow.source_port
    if stack.npt is NextProtocol.LAYER_4:
        behind = struct.pack("!HHI", flow.source_port, flow.destination_port, 0)
    elif flow.queue_pair is not None:
        behind = _packed(BTH, {"dqpn": flow.queue_pair, "psn": flow.psn or 0})
    payload = encoded(stack) + behind
    udp_bytes = UDP.size_bytes + len(payload)
    udp = _packed(UDP, {"sport": source_port, "dport": INT_MD_UDP_PORT, "len": udp_bytes})
    source, destination = ip_address(flow.source), ip_address(flow.destination)
    if source.version == 4:
        ip = _packed(
            IPV4,
            {
                "len": IPV4.size_bytes + udp_bytes,
                "proto": _UDP_PROTOCOL,
                "src": int(source),
                "dst": int(destination),
            },
        )
    else:
        ip = _packed(IPV6, {"plen": udp_bytes, "nh": _UDP_PROTOCOL, "src": int(source), "dst": int(destination)})
    return ip + udp + payload


def _parts(bitmap: int) -> Iterator[tuple[str, int]]:
    for each in INSTRUCTIONS.values():
        if bitmap & each.mask:
            yield from each.parts


def _hop_of(bitmap: int, data: bytes) -> Hop:
    size = hop_words_of(bitmap) * WORD_BYTES
    left, number = size * 8, int.from_bytes(data[:size], "big")
    values: dict[str, int | None] = {}
    for each in INSTRUCTIONS.values():
        if not bitmap & each.mask:
            continue
        width = each.words * 32
        left -= width
        # All ones of a whole metadata mean that the hop does not know it.
        known = number >> left & ((1 << width) - 1) != (1 << width) - 1
        at = width
        for name, bits in each.parts:
            at -= bits
            values[name] = number >> (left + at) & ((1 << bits) - 1) if known else None
    return Hop(values)


def _packed_hop(bitmap: int, hop: Hop) -> bytes:
    number = bits_so_far = 0
    for each in INSTRUCTIONS.values():
        if not bitmap & each.mask:
            continue
        known = all(hop[name] is not None for name, _ in each.parts)
        for name, bits in each.parts:
            value = hop[name] if known else (1 << bits) - 1
            assert value is not None
            if not 0 <= value < 1 << bits:
                raise InvalidValueError(f"{name} {value}", valid=f"0 to {(1 << bits) - 1}")
            number = number << bits | value
            bits_so_far += bits
    return number.to_bytes(bits_so_far // 8, "big")


def _packed(header: Header, values: Mapping[str, int]) -> bytes:
    number = 0
    for name, each in header.numbers():
        value = int(values.get(name, each.default))
        if not 0 <= value < 1 << each.bits:
            raise InvalidValueError(f"{name} {value}", valid=f"0 to {(1 << each.bits) - 1}")
        number = number << each.bits | value
    return number.to_bytes(header.size_bytes, "big")


def _unpacked(header: Header, data: bytes) -> tuple[dict[str, int], bytes]:
    if len(data) < header.size_bytes:
        raise InvalidValueError(f"{header.title}: {len(data)} B", valid=f"{header.size_bytes} or more")
    number, values = int.from_bytes(data[: header.size_bytes], "big"), {}
    left = header.bits
    for name, each in header.numbers():
        left -= each.bits
        values[name] = number >> left & ((1 << each.bits) - 1)
    return values, data[header.size_bytes :]


def sequence_counts(numbers: Sequence[int]) -> tuple[int, int]:
    """Return how many reports a node has sent up to the last one that came, and how many of these came.

    Args:
        numbers: the reports' sequence numbers in order of arrival, modulo 2^22 from the node's first report, 0. Reports
            may have overtaken each other, and may come twice.
    """
    period = 1 << REPORT_GROUP.field("sequence").bits
    seen: set[int] = set()
    highest = -1
    for number in numbers:
        # The number closest to the highest one so far.
        absolute = highest + ((number - highest + period // 2) % period - period // 2)
        if absolute >= 0:
            seen.add(absolute)
            highest = max(highest, absolute)
    return highest + 1, len(seen)
