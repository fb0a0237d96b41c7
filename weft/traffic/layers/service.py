"""Scapy layer of the header of packets to switches' services (docs/spec/services.md), and whole frames."""

from __future__ import annotations

from typing import Any

from scapy.packet import Packet

from weft.traffic.layers.frames import HOP_LIMIT, datagram_headers
from weft.traffic.layers.made_fields import fields_of
from weft.traffic.layers.roce import DETH, datagram_hook
from weft.traffic.service_format import (
    ANSWER_QP,
    REQUEST_QP,
    UDP_LENGTH,
    Kind,
)
from weft.wire.headers.service import SERVICE

_QUEUE_PAIRS = (REQUEST_QP, ANSWER_QP)
_UDP_LENGTHS = (UDP_LENGTH,)


class ServiceHeader(Packet):
    """A request to a service on its way up, or an answer on its way down."""

    name = "Service"
    fields_desc = fields_of(SERVICE)
    dispatch_hook = datagram_hook(_QUEUE_PAIRS, _UDP_LENGTHS)


def service_frame(
    *,
    source_mac: str,
    destination_mac: str,
    source_ip: str,
    destination_ip: str,
    qkey: int,
    kind: Kind = Kind.REQUEST,
    source_port: int = 0xC000,
    hop_limit: int = HOP_LIMIT,
    **fields: Any,
) -> Packet:
    """Return a frame of `service_format.FRAME_BYTES`; `fields` are the header's."""
    below = datagram_headers(
        source_mac=source_mac,
        destination_mac=destination_mac,
        source_ip=source_ip,
        destination_ip=destination_ip,
        qkey=qkey,
        queue_pairs=(REQUEST_QP, REQUEST_QP if kind is Kind.REQUEST else ANSWER_QP),
        psn=fields.get("sequence", 0),
        source_port=source_port,
        hop_limit=hop_limit,
    )
    return below / ServiceHeader(kind=kind, **fields)


# Before layers that are bound to any DETH: both kinds have this source.
DETH.payload_guess.insert(0, ({"source_qp": REQUEST_QP}, ServiceHeader))
