"""Scapy layers of packets between clients and a parameter store (docs/spec/services.md), and whole frames."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from scapy.packet import Packet, Raw

from weft.traffic.layers.frames import HOP_LIMIT, datagram_headers
from weft.traffic.layers.made_fields import fields_of
from weft.traffic.layers.roce import DETH, datagram_hook
from weft.traffic.service_format import (
    BLOCK_BYTES,
    PARAMETER_CLIENT_QP,
    PARAMETER_STORE_QP,
    PARAMETER_UDP_LENGTH,
    ParameterKind,
)
from weft.wire.headers.parameter import PARAMETER

_QUEUE_PAIRS = (PARAMETER_STORE_QP, PARAMETER_CLIENT_QP)
_UDP_LENGTHS = (PARAMETER_UDP_LENGTH, PARAMETER_UDP_LENGTH + BLOCK_BYTES)


class ParameterHeader(Packet):
    """A pull, a push, or the answer to one; a block follows a push and a value."""

    name = "Parameter"
    fields_desc = fields_of(PARAMETER)
    dispatch_hook = datagram_hook(_QUEUE_PAIRS, _UDP_LENGTHS)


def parameter_frame(
    *,
    source_mac: str,
    destination_mac: str,
    source_ip: str,
    destination_ip: str,
    qkey: int,
    kind: IntEnum = ParameterKind.PULL,
    block_data: bytes = bytes(BLOCK_BYTES),
    source_port: int = 0xC000,
    hop_limit: int = HOP_LIMIT,
    **fields: Any,
) -> Packet:
    """Return a frame of `service_format.PARAMETER_FRAME_BYTES`; `fields` are the header's."""
    asks = kind in (ParameterKind.PULL, ParameterKind.PUSH)
    to, source = _QUEUE_PAIRS if asks else reversed(_QUEUE_PAIRS)
    below = datagram_headers(
        source_mac=source_mac,
        destination_mac=destination_mac,
        source_ip=source_ip,
        destination_ip=destination_ip,
        qkey=qkey,
        queue_pairs=(source, to),
        psn=fields.get("sequence", 0),
        source_port=source_port,
        hop_limit=hop_limit,
    )
    frame = below / ParameterHeader(kind=kind, **fields)
    return frame / Raw(block_data) if kind in (ParameterKind.PUSH, ParameterKind.VALUE) else frame


# Before layers that are bound to any DETH.
for _queue_pair in _QUEUE_PAIRS:
    DETH.payload_guess.insert(0, ({"source_qp": _queue_pair}, ParameterHeader))
