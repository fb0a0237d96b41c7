"""Scapy layer of the INT shim between Ethernet and IP (docs/spec/frames.md)."""

from __future__ import annotations

from scapy.base_classes import BasePacket
from scapy.fields import BitEnumField, BitField, ByteField, PacketListField, XBitField, XShortEnumField
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, bind_layers

from weft.topologies.int_rates import STANDARD_INT_RATES
from weft.traffic.int_stack import INT_ETHERTYPE, INT_HOP_SLOTS, INT_VERSION

# A fabric's own codes have no name here: the numbers are shown.
_RATES = {code: f"{bps // 10**9}G" for code, bps in enumerate(STANDARD_INT_RATES) if bps or not code}


class IntHop(Packet):
    """One switch's stamp: 64 bits. Queue in 80-byte cells, transmitted bytes in units of 128."""

    name = "IntHop"
    fields_desc = [
        BitEnumField("rate_code", 0, 4, _RATES),
        BitField("timestamp_ns", 0, 24),
        BitField("tx_units", 0, 20),
        BitField("queue_cells", 0, 16),
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """A hop has no payload: what follows belongs to the shim."""
        return b"", s


def _empty_hops() -> list[BasePacket]:
    return [IntHop() for _ in range(INT_HOP_SLOTS)]


class IntShim(Packet):
    """The shim as its sender allocates it: space for five hops, none stamped."""

    name = "IntShim"
    fields_desc = [
        BitField("version", INT_VERSION, 4),
        BitField("echo", 0, 1),
        BitField("overflow", 0, 1),
        BitField("reserved", 0, 2),
        ByteField("hop_slots", INT_HOP_SLOTS),
        XShortEnumField("next_ethertype", 0x0800, {0x0800: "IPv4", 0x86DD: "IPv6"}),
        BitField("hop_count", 0, 4),
        XBitField("path_id", 0, 12),
        PacketListField("hops", _empty_hops(), IntHop, count_from=lambda shim: shim.hop_slots),
    ]


bind_layers(Ether, IntShim, type=INT_ETHERTYPE)
bind_layers(Dot1Q, IntShim, type=INT_ETHERTYPE)
bind_layers(IntShim, IP, next_ethertype=0x0800)
bind_layers(IntShim, IPv6, next_ethertype=0x86DD)
