"""Scapy layers of communication management: datagrams to queue pair 1 (docs/spec/connection-management.md).

Additional information and private data follow a message's layer as Raw.
"""

from __future__ import annotations

from scapy.packet import Packet, Raw

from weft.traffic.layers.frames import datagram_headers
from weft.traffic.layers.made_fields import fields_of
from weft.traffic.layers.roce import DETH, datagram_hook
from weft.wire.headers import cm as wire
from weft.wire.headers.roce import datagram_udp_bytes

_UDP_LENGTH = datagram_udp_bytes(wire.MAD) + wire.MAD_BYTES - wire.MAD.size_bytes


class CMReq(Packet):
    """REQ: an active side asks for a connection."""

    name = "CM REQ"
    fields_desc = fields_of(wire.CM_REQ)


class CMMra(Packet):
    """MRA: the answer will take longer."""

    name = "CM MRA"
    fields_desc = fields_of(wire.CM_MRA)


class CMRej(Packet):
    """REJ: there will be no connection."""

    name = "CM REJ"
    fields_desc = fields_of(wire.CM_REJ)


class CMRep(Packet):
    """REP: the passive side accepts."""

    name = "CM REP"
    fields_desc = fields_of(wire.CM_REP)


class CMRtu(Packet):
    """RTU: the active side is ready."""

    name = "CM RTU"
    fields_desc = fields_of(wire.CM_RTU)


class CMDreq(Packet):
    """DREQ: one side ends the connection."""

    name = "CM DREQ"
    fields_desc = fields_of(wire.CM_DREQ)


class CMDrep(Packet):
    """DREP: the other one agrees."""

    name = "CM DREP"
    fields_desc = fields_of(wire.CM_DREP)


class CMSidrReq(Packet):
    """SIDR_REQ: asks which queue pair serves datagrams of a service."""

    name = "CM SIDR_REQ"
    fields_desc = fields_of(wire.CM_SIDR_REQ)


class CMSidrRep(Packet):
    """SIDR_REP: names the queue pair."""

    name = "CM SIDR_REP"
    fields_desc = fields_of(wire.CM_SIDR_REP)


class CMIpAddressing(Packet):
    """IP addresses at the beginning of a REQ's or SIDR_REQ's private data (annex A11)."""

    name = "CM IP addressing"
    fields_desc = fields_of(wire.CM_IP_ADDRESSING)


_BY_HEADER: dict[str, type[Packet]] = {
    each.__name__: each for each in (CMReq, CMMra, CMRej, CMRep, CMRtu, CMDreq, CMDrep, CMSidrReq, CMSidrRep)
}
_BY_NUMBER = {each.number: _BY_HEADER[each.header.name] for each in wire.MESSAGES.values()}


class MAD(Packet):
    """Header of a management datagram; AttributeID says which message follows."""

    name = "MAD"
    fields_desc = fields_of(wire.MAD)
    dispatch_hook = datagram_hook((wire.CM_QUEUE_PAIR,), (_UDP_LENGTH,))

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the layer of the message."""
        return _BY_NUMBER.get(int(self.attribute_id), Raw)


def cm_frame(
    *, source_mac: str, destination_mac: str, source_ip: str, destination_ip: str, mad: bytes, psn: int = 0
) -> Packet:
    """Return the frame of a message of 256 bytes."""
    below = datagram_headers(
        source_mac=source_mac,
        destination_mac=destination_mac,
        source_ip=source_ip,
        destination_ip=destination_ip,
        qkey=wire.CM_QUEUE_PAIR_QKEY,
        queue_pairs=(wire.CM_QUEUE_PAIR, wire.CM_QUEUE_PAIR),
        psn=psn,
        source_port=0xC000,
        hop_limit=64,
    )
    return below / MAD(mad)


DETH.payload_guess.insert(0, ({"source_qp": wire.CM_QUEUE_PAIR}, MAD))
