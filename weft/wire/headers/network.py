"""Headers below RoCEv2, as Weft uses them."""

from __future__ import annotations

from weft.wire.fields import Field, Header, reserved

IPV4_ETHERTYPE, ARP_ETHERTYPE, IPV6_ETHERTYPE = 0x0800, 0x0806, 0x86DD

_DSCP = Field("dscp", 6, source="RFC 2474, section 3")
_ECN = Field("ecn", 2, values={0: "Not-ECT", 1: "ECT(1)", 2: "ECT(0)", 3: "CE"}, source="RFC 3168, section 5")


def _protocol(name: str) -> Field:
    return Field(name, 8, values={1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6"}, is_closed=False)


ETHERNET = Header(
    "Ether",
    "Ethernet",
    "IEEE 802.3-2018, clause 3",
    (
        Field("dst", 48, notation="mac"),
        Field("src", 48, notation="mac"),
        Field("type", 16, notation="hexadecimal"),
    ),
    p4="ethernet_t",
)

ARP = Header(
    "ARP",
    "ARP",
    "RFC 826",
    (
        Field("hwtype", 16, default=1, values={1: "Ethernet"}),
        Field("ptype", 16, default=IPV4_ETHERTYPE, values={IPV4_ETHERTYPE: "IPv4"}, notation="hexadecimal"),
        Field("hwlen", 8, default=6, is_fixed=True),
        Field("plen", 8, default=4, is_fixed=True),
        Field("op", 16, default=1, values={1: "request", 2: "reply"}),
        Field("hwsrc", 48, notation="mac"),
        Field("psrc", 32, notation="ipv4"),
        Field("hwdst", 48, notation="mac"),
        Field("pdst", 32, notation="ipv4"),
    ),
    p4="arp_t",
)

IPV4 = Header(
    "IP",
    "IPv4, without options",
    "RFC 791, section 3.1",
    (
        Field("version", 4, default=4, is_fixed=True),
        Field("ihl", 4, default=5, is_fixed=True),
        _DSCP,
        _ECN,
        Field("len", 16),
        Field("id", 16),
        Field("flags", 3, notation="hexadecimal"),
        Field("frag", 13),
        Field("ttl", 8, default=64),
        _protocol("proto"),
        Field("chksum", 16, notation="hexadecimal"),
        Field("src", 32, notation="ipv4"),
        Field("dst", 32, notation="ipv4"),
    ),
    p4="ipv4_t",
)

IPV6 = Header(
    "IPv6",
    "IPv6",
    "RFC 8200, section 3",
    (
        Field("version", 4, default=6, is_fixed=True),
        _DSCP,
        _ECN,
        Field("fl", 20),
        Field("plen", 16),
        _protocol("nh"),
        Field("hlim", 8, default=64),
        Field("src", 128, notation="ipv6"),
        Field("dst", 128, notation="ipv6"),
    ),
    p4="ipv6_t",
)

ICMP = Header(
    "ICMP",
    "ICMP and ICMPv6",
    "RFC 792; RFC 4443, section 2.1",
    (Field("type", 8), Field("code", 8), Field("chksum", 16, notation="hexadecimal")),
    p4="icmp_t",
)

NEIGHBOUR = Header(
    "ICMPv6ND",
    "Neighbour solicitation or advertisement with one link-layer option",
    "RFC 4861, sections 4.3, 4.4 and 4.6.1",
    (
        Field("R", 1),
        Field("S", 1),
        Field("O", 1),
        reserved(29, "res"),
        Field("tgt", 128, notation="ipv6"),
        Field("option_type", 8, default=2, values={1: "source", 2: "target"}),
        Field("option_length", 8, default=1, is_fixed=True),
        Field("lladdr", 48, notation="mac"),
    ),
    p4="neighbour_t",
)

UDP = Header(
    "UDP",
    "UDP",
    "RFC 768",
    (
        Field("sport", 16),
        Field("dport", 16),
        Field("len", 16),
        Field("chksum", 16, notation="hexadecimal"),
    ),
    p4="udp_t",
)

BYTES_BEFORE_UDP = {
    4: ETHERNET.size_bytes + IPV4.size_bytes,
    6: ETHERNET.size_bytes + IPV6.size_bytes,
}
"""Bytes before UDP in a frame without shims, by IP version."""
