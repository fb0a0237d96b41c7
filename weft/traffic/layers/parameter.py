"""Scapy layers of packets between clients and a parameter store (docs/spec/services.md), and whole frames."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from scapy.contrib.roce import BTH
from scapy.fields import BitEnumField, BitField, ByteField, IntField, ShortField
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from weft.traffic.layers.frames import DATA_DSCP, ECT0, HOP_LIMIT, ip_header
from weft.traffic.layers.roce import DETH, OPCODE, ROCE_UDP_PORT
from weft.traffic.service_format import (
    BLOCK_BYTES,
    HEADER_VERSION,
    PARAMETER_CLIENT_QP,
    PARAMETER_STORE_QP,
    PARAMETER_UDP_LENGTH,
    ParameterKind,
)

_QUEUE_PAIRS = (PARAMETER_STORE_QP, PARAMETER_CLIENT_QP)


class ParameterHeader(Packet):
    """A pull, a push, or the answer to one; a block follows a push and a value."""

    name = "Parameter"
    fields_desc = [
        BitField("version", HEADER_VERSION, 4),
        BitEnumField(
            "kind", ParameterKind.PULL, 4, {each.value: each.name.lower() for each in ParameterKind}
        ),
        ByteField("flags", 0),
        ShortField("group_id", 0),
        ShortField("epoch", 0),
        ShortField("client", 0),
        IntField("block", 0),
        IntField("sequence", 0),
        IntField("block_version", 0),
        IntField("reserved", 0),
    ]

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *args: Any, **kwargs: Any) -> type[Packet]:
        """Dissect as Raw what is ordinary RoCEv2: another opcode, destination queue pair or UDP length."""
        below = kwargs.get("_underlayer")
        return cls if below is None or _carries_parameters(below) else Raw


def _carries_parameters(deth: Packet) -> bool:
    bth = deth.underlayer
    if not isinstance(bth, BTH) or not isinstance(bth.underlayer, UDP):
        return False
    return (
        bth.opcode == OPCODE["UD_SEND_ONLY"]
        and bth.dqpn in _QUEUE_PAIRS
        and bth.underlayer.len in (PARAMETER_UDP_LENGTH, PARAMETER_UDP_LENGTH + BLOCK_BYTES)
    )


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
    frame = (
        Ether(src=source_mac, dst=destination_mac)
        / ip_header(source_ip, destination_ip, DATA_DSCP, ECT0, hop_limit)
        / UDP(sport=source_port, dport=ROCE_UDP_PORT, chksum=0)
        / BTH(opcode=OPCODE["UD_SEND_ONLY"], migreq=1, dqpn=to, psn=fields.get("sequence", 0) & 0xFFFFFF)
        / DETH(qkey=qkey, source_qp=source)
        / ParameterHeader(kind=kind, **fields)
    )
    return frame / Raw(block_data) if kind in (ParameterKind.PUSH, ParameterKind.VALUE) else frame


# Before layers that are bound to any DETH.
for _queue_pair in _QUEUE_PAIRS:
    DETH.payload_guess.insert(0, ({"source_qp": _queue_pair}, ParameterHeader))
