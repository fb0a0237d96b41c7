"""Scapy layer of the INT shim between Ethernet and IP (docs/spec/frames.md)."""

from __future__ import annotations

from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, bind_layers

from weft.traffic.layers.made_fields import fields_of
from weft.wire.headers.int_shim import INT_ETHERTYPE, INT_HOP, INT_SHIM
from weft.wire.headers.network import IPV4_ETHERTYPE, IPV6_ETHERTYPE


class IntHop(Packet):
    """One switch's stamp: 64 bits. Queue in 80-byte cells, transmitted bytes in units of 128."""

    name = "IntHop"
    fields_desc = fields_of(INT_HOP)

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """A hop has no payload: what follows belongs to the shim."""
        return b"", s


class IntShim(Packet):
    """The shim as its sender allocates it: space for five hops, none stamped."""

    name = "IntShim"
    fields_desc = fields_of(INT_SHIM, layers={"hops": IntHop})


bind_layers(Ether, IntShim, type=INT_ETHERTYPE)
bind_layers(Dot1Q, IntShim, type=INT_ETHERTYPE)
bind_layers(IntShim, IP, next_ethertype=IPV4_ETHERTYPE)
bind_layers(IntShim, IPv6, next_ethertype=IPV6_ETHERTYPE)
