"""Scapy layers of an update of credits behind its Ethernet header (docs/spec/frames.md)."""

from __future__ import annotations

from scapy.layers.l2 import Ether
from scapy.packet import Packet, Padding, bind_top_down

from weft.traffic.layers.made_fields import fields_of
from weft.wire.headers.mac_control import CREDIT_ETHERTYPE, CREDIT_LANE, CREDIT_UPDATE, MAC_CONTROL_ADDRESS
from weft.wire.headers.network import ETHERNET

_DESTINATION = MAC_CONTROL_ADDRESS.to_bytes(6, "big").hex(":")


class CreditLane(Packet):
    """What was sent in a class, and up to where there is memory, in blocks of 64 bytes modulo 4096."""

    name = "CreditLane"
    fields_desc = fields_of(CREDIT_LANE)

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """A lane has no payload: the next one follows."""
        return b"", s


class CreditUpdate(Packet):
    """Credits of all classes of a link."""

    name = "CreditUpdate"
    fields_desc = fields_of(CREDIT_UPDATE, layers={"lanes": CreditLane}, without=len(ETHERNET.fields))

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Zeros follow, up to the smallest frame."""
        return Padding


def is_to_a_mac(ethernet: Packet | None) -> bool:
    """Return whether a frame is for the MAC of a port itself."""
    return isinstance(ethernet, Ether) and ethernet.dst == _DESTINATION


bind_top_down(Ether, CreditUpdate, type=CREDIT_ETHERTYPE, dst=_DESTINATION)
