"""Scapy layer of the shim between Ethernet and all else that leads to an intermediate (docs/spec/frames.md)."""

from __future__ import annotations

from typing import Any

from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_layers

from weft.traffic.layers.credit_update import CreditUpdate, is_to_a_mac
from weft.traffic.layers.int_shim import IntShim
from weft.traffic.layers.made_fields import fields_of
from weft.wire.headers.int_shim import INT_ETHERTYPE
from weft.wire.headers.network import IPV4_ETHERTYPE, IPV6_ETHERTYPE
from weft.wire.headers.valiant_shim import VALIANT_ETHERTYPE, VALIANT_SHIM, VALIANT_VERSION

__all__ = ["VALIANT_ETHERTYPE", "VALIANT_VERSION", "ValiantShim"]


class ValiantShim(Packet):
    """The number of the switch or group that the packet goes to before its destination."""

    name = "ValiantShim"
    fields_desc = fields_of(VALIANT_SHIM)

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *args: Any, **kwargs: Any) -> type[Packet]:
        """Dissect as a credit update what goes to the address that ends at a MAC."""
        return CreditUpdate if is_to_a_mac(kwargs.get("_underlayer")) else cls


bind_layers(Ether, ValiantShim, type=VALIANT_ETHERTYPE)
bind_layers(ValiantShim, IP, next_ethertype=IPV4_ETHERTYPE)
bind_layers(ValiantShim, IPv6, next_ethertype=IPV6_ETHERTYPE)
bind_layers(ValiantShim, IntShim, next_ethertype=INT_ETHERTYPE)
