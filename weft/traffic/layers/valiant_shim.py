"""Scapy layer of the shim between Ethernet and all else that leads to an intermediate (docs/spec/frames.md)."""

from __future__ import annotations

from scapy.fields import BitField, ShortField, XShortEnumField
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_layers

from weft.traffic.int_stack import INT_ETHERTYPE
from weft.traffic.layers.int_shim import IntShim

VALIANT_ETHERTYPE = 0x88B6
VALIANT_VERSION = 1


class ValiantShim(Packet):
    """The number of the switch or group that the packet goes to before its destination."""

    name = "ValiantShim"
    fields_desc = [
        BitField("version", VALIANT_VERSION, 4),
        BitField("reserved", 0, 12),
        ShortField("intermediate", 0),
        XShortEnumField(
            "next_ethertype", 0x0800, {0x0800: "IPv4", 0x86DD: "IPv6", INT_ETHERTYPE: "INT shim"}
        ),
    ]


bind_layers(Ether, ValiantShim, type=VALIANT_ETHERTYPE)
bind_layers(ValiantShim, IP, next_ethertype=0x0800)
bind_layers(ValiantShim, IPv6, next_ethertype=0x86DD)
bind_layers(ValiantShim, IntShim, next_ethertype=INT_ETHERTYPE)
