"""Random MRC packets, put together bit by bit from the descriptions in `weft/wire/`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from random import Random
from typing import Any

from tests.wire.described_bits import packed
from weft.traffic.layers import icrc
from weft.wire import Field, Header
from weft.wire.code_points import DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP
from weft.wire.headers.mrc import ENDPOINT_QP, MRC_BTH, MRC_OPCODES, TSETH
from weft.wire.headers.network import ETHERNET, IPV4, IPV4_ETHERTYPE, IPV6, IPV6_ETHERTYPE, UDP
from weft.wire.headers.roce import AETH, ICRC, IMMEDIATE, RETH, ROCE_UDP_PORT

KINDS = tuple(MRC_OPCODES)
WRITES = tuple(name for name, opcode in MRC_OPCODES.items() if opcode.has_payload)
VERSIONS = (4, 6)

GROUPS = {
    "METH": "meth",
    "TSETH": "tseth",
    "SETH": "seth",
    "CCState": "cc_state",
    "NETH": "neth",
    "PETH": "peth",
    "ERTH": "erth",
    "EETH": "eeth",
}
"""Headers of MRC by their names in the engine's dictionaries; their fields have the described names there."""
OF_ROCE = {RETH.name: ("reth", ("virtual_address", "rkey", "length_bytes")), AETH.name: ("aeth", ("syndrome", "msn"))}


def number_of(field: Field, bits: int) -> int:
    """Return the number that a field's bits stand for."""
    return bits - (1 << field.bits) if field.notation == "signed" and bits >> (field.bits - 1) else bits


def drawn(random: Random, header: Header, **given: int) -> dict[str, int]:
    """Draw values of a header's numbers, the lowest and the highest more often than others."""

    def value_of(valid: range | tuple[int, ...]) -> int:
        any_other = random.randint(valid[0], valid[-1]) if isinstance(valid, range) else random.choice(valid)
        return random.choice((valid[0], valid[-1], any_other, any_other))

    return {name: given[name] if name in given else value_of(field.valid_values) for name, field in header.numbers()}


@dataclass(frozen=True)
class Sample:
    """An MRC packet: values of its headers by the described names."""

    version: int
    ethernet: dict[str, int]
    ip: dict[str, int]
    source_port: int
    bth: dict[str, int]
    extended: tuple[tuple[Header, dict[str, int]], ...]
    payload: bytes

    @property
    def transport(self) -> bytes:
        """From the BTH on, without the iCRC."""
        headers = packed(MRC_BTH, self.bth) + b"".join(packed(each, values) for each, values in self.extended)
        return headers + self.payload + bytes(-len(self.payload) % 4)

    @property
    def header_bytes(self) -> int:
        """From the Ethernet header to the last extended header."""
        ip = IPV4 if self.version == 4 else IPV6
        extended = sum(each.size_bytes for each, _ in self.extended)
        return sum(each.size_bytes for each in (ETHERNET, ip, UDP, MRC_BTH)) + extended

    @property
    def frame(self) -> bytes:
        """The whole frame."""
        return self.framed(self.transport)

    def framed(self, transport: bytes) -> bytes:
        """Return a frame around `transport`: lengths and iCRC are right."""
        udp_bytes = UDP.size_bytes + len(transport) + ICRC.size_bytes
        udp = {"sport": self.source_port, "dport": ROCE_UDP_PORT, "len": udp_bytes, "chksum": 0}
        packet = self._ip(udp_bytes) + packed(UDP, udp) + transport
        return packed(ETHERNET, self.ethernet) + packet + icrc(packet)

    def _ip(self, udp_bytes: int) -> bytes:
        if self.version == 6:
            return packed(IPV6, self.ip | {"plen": udp_bytes})
        return ipv4(self.ip | {"len": IPV4.size_bytes + udp_bytes})

    def with_dscp(self, dscp: int) -> Sample:
        """Return the same packet with another code point."""
        return replace(self, ip=self.ip | {"dscp": dscp})

    def native(self) -> dict[str, Any]:
        """Return the engine's dictionary of it, without what other sections than MRC's name differently."""
        groups: dict[str, Any] = {}
        mrc: dict[str, Any] = {"retransmission": bool(self.bth["rtx"]), "trimmed": False}
        for header, values in self.extended:
            if header.name in GROUPS:
                fields = [each for each in header.fields if isinstance(each, Field) and not each.is_fixed]
                mrc[GROUPS[header.name]] = {each.name: number_of(each, values[each.name]) for each in fields}
            elif header is IMMEDIATE:
                groups["immediate"] = values["immediate"]
            else:
                group, names = OF_ROCE[header.name]
                groups[group] = dict(zip(names, values.values(), strict=True))
        flow_label = self.ip.get("fl", 0)
        mrc["entropy"] = self.source_port << 16 | flow_label & 0xFFFF
        bth = {
            "opcode": self.bth["opcode"],
            "solicited": False,
            "migrated": False,
            "partition_key": self.bth["pkey"],
            "fecn": False,
            "becn": False,
            "destination_qp": self.bth["dqpn"],
            "acknowledge_request": bool(self.bth["ackreq"]),
            "psn": self.bth["psn"],
        }
        ends = IPv4Address if self.version == 4 else IPv6Address
        network = {
            "destination_mac": ETHERNET.field("dst").written(self.ethernet["dst"]),
            "source_mac": ETHERNET.field("src").written(self.ethernet["src"]),
            "source_ip": str(ends(self.ip["src"])),
            "destination_ip": str(ends(self.ip["dst"])),
            "dscp": self.ip["dscp"],
            "ecn": self.ip["ecn"],
            "hop_limit": self.ip["ttl" if self.version == 4 else "hlim"],
            "source_udp_port": self.source_port,
        }
        if self.version == 4:
            network |= {"identification": self.ip["id"], "dont_fragment": bool(self.ip["flags"] & 2)}
        else:
            network["flow_label"] = flow_label
        return {**network, "bth": bth, **groups, "mrc": mrc}


def ipv4(values: dict[str, int]) -> bytes:
    """Return an IPv4 header with its checksum."""
    without = packed(IPV4, values | {"chksum": 0})
    total = sum(int.from_bytes(without[at : at + 2], "big") for at in range(0, len(without), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return packed(IPV4, values | {"chksum": total ^ 0xFFFF})


def sample(kind: str, number: int) -> Sample:
    """Return the packet of a kind with this number; even numbers are IPv4's."""
    random = Random(f"{kind} {number}")
    opcode = MRC_OPCODES[kind]
    version = VERSIONS[number % 2]
    payload = random.randbytes(random.randint(0, 100)) if opcode.has_payload else b""
    given = {"opcode": opcode.number, "padcount": -len(payload) % 4}
    if not opcode.has_payload:
        given["ts"] = 0
    if kind.startswith("MRC_ENDPOINT"):
        given["dqpn"] = ENDPOINT_QP
    bth = drawn(random, MRC_BTH, **given)
    present = [each for each in opcode.extensions if each is not TSETH or bth["ts"]]
    dscp = random.choice([each for each in range(64) if each not in (DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP)])
    if version == 4:
        ip = drawn(random, IPV4, dscp=dscp, proto=17, flags=random.choice((0, 2)), frag=0)
    else:
        ip = drawn(random, IPV6, dscp=dscp, nh=17)
    return Sample(
        version,
        drawn(random, ETHERNET, type=IPV4_ETHERTYPE if version == 4 else IPV6_ETHERTYPE),
        ip,
        random.randint(0, 0xFFFF),
        bth,
        tuple((each, drawn(random, each)) for each in present),
        payload,
    )
