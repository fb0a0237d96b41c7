"""Scapy layer of the aggregation header and its 64 lanes (docs/spec/aggregation.md)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from scapy.contrib.roce import BTH
from scapy.fields import BitEnumField, BitField, ByteEnumField, ByteField, Field, IntField, ShortField
from scapy.layers.inet import UDP
from scapy.packet import Packet, Raw, bind_bottom_up

from weft.traffic.aggregation_format import (
    CONTRIBUTION_QP,
    HEADER_VERSION,
    LANE_COUNT,
    RESULT_QP,
    UDP_LENGTH,
    Kind,
    Operation,
)
from weft.traffic.layers.roce import DETH, OPCODE

_LANES = struct.Struct(f"!{LANE_COUNT}i")


class LanesField(Field[Sequence[int], bytes]):
    """64 signed 32-bit integers; fewer are padded with zeros, as a sender does."""

    islist = 1

    def __init__(self, name: str) -> None:
        super().__init__(name, [0] * LANE_COUNT, f"{_LANES.size}s")

    def addfield(self, pkt: Packet, s: bytes, val: Sequence[int] | None) -> bytes:
        """Append the lanes. Raises ValueError for more than 64, struct.error for values beyond int32."""
        lanes = list(val or ())
        if len(lanes) > LANE_COUNT:
            raise ValueError(f"{len(lanes)} lanes (valid: at most {LANE_COUNT})")
        return s + _LANES.pack(*lanes, *([0] * (LANE_COUNT - len(lanes))))

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, list[int]]:
        """Take the lanes off `s`. Raises struct.error if bytes are missing; Scapy then shows Raw."""
        return s[_LANES.size :], list(_LANES.unpack_from(s))

    def i2repr(self, pkt: Packet | None, x: Any) -> str:
        """Show the lanes as a list."""
        return repr(list(x))


class AggregationHeader(Packet):
    """A worker's or switch's contribution on its way up, or the result on its way down."""

    name = "Aggregation"
    fields_desc = [
        BitField("version", HEADER_VERSION, 4),
        BitEnumField("kind", Kind.CONTRIBUTION, 4, {kind.value: kind.name.lower() for kind in Kind}),
        ByteEnumField("operation", Operation.SUM, {op.value: op.name.lower() for op in Operation}),
        ShortField("job_id", 0),
        ShortField("epoch", 0),
        ShortField("slot", 0),
        IntField("round", 0),
        ShortField("rank", 0),
        ByteField("lane_count", LANE_COUNT),
        ByteField("flags", 0),
        LanesField("lanes"),
    ]

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *args: Any, **kwargs: Any) -> type[Packet]:
        """Dissect as Raw what is ordinary RoCEv2: another opcode, destination queue pair or UDP length."""
        below = kwargs.get("_underlayer")
        return cls if below is None or _carries_aggregation(below) else Raw


def _carries_aggregation(deth: Packet) -> bool:
    bth = deth.underlayer
    if not isinstance(bth, BTH) or not isinstance(bth.underlayer, UDP):
        return False
    return (
        bth.opcode == OPCODE["UD_SEND_ONLY"]
        and bth.dqpn in (CONTRIBUTION_QP, RESULT_QP)
        and bth.underlayer.len == UDP_LENGTH
    )


bind_bottom_up(DETH, AggregationHeader)
