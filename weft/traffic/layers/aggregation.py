"""Scapy layer of the aggregation header and its lanes (docs/spec/aggregation.md)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from scapy.fields import Field
from scapy.packet import Packet, bind_bottom_up

from weft.errors import InvalidValueError
from weft.traffic.aggregation_format import (
    CONTRIBUTION_QP,
    LANE_COUNT,
    LANE_COUNTS,
    RESULT_QP,
    udp_length,
)
from weft.traffic.layers.made_fields import fields_of
from weft.traffic.layers.roce import DETH, datagram_hook
from weft.wire.headers.aggregation import AGGREGATION

_QUEUE_PAIRS = (CONTRIBUTION_QP, RESULT_QP)
_UDP_LENGTHS = frozenset(map(udp_length, LANE_COUNTS))


class LanesField(Field[Sequence[int], bytes]):
    """Signed 32-bit integers, padded with zeros to the next of `LANE_COUNTS`, as a sender does."""

    islist = 1

    def __init__(self, name: str) -> None:
        super().__init__(name, [0] * LANE_COUNT, "0s")

    def i2count(self, pkt: Packet | None, val: Sequence[int] | None) -> int:
        """Return how many lanes are sent. Raises ValueError for more than a packet may have."""
        lanes = len(val or ())
        if lanes > LANE_COUNTS[-1]:
            raise InvalidValueError(f"{lanes} lanes", valid=f"at most {LANE_COUNTS[-1]}")
        return next(count for count in LANE_COUNTS if count >= lanes)

    def addfield(self, pkt: Packet, s: bytes, val: Sequence[int] | None) -> bytes:
        """Append the lanes. Raises ValueError for too many, struct.error for values beyond int32."""
        return s + struct.pack(f"!{len(val or ())}i", *(val or ())).ljust(4 * self.i2count(pkt, val), b"\0")

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, list[int]]:
        """Take the lanes off `s`. Raises struct.error if bytes are missing; Scapy then shows Raw."""
        lanes = struct.Struct(f"!{pkt.getfieldval('lane_count')}i")
        return s[lanes.size :], list(lanes.unpack_from(s))

    def i2repr(self, pkt: Packet | None, x: Any) -> str:
        """Show the lanes as a list."""
        return repr(list(x))


class AggregationHeader(Packet):
    """A worker's or switch's contribution on its way up, or the result on its way down."""

    name = "Aggregation"
    fields_desc = fields_of(AGGREGATION, lists={"lanes": LanesField})
    dispatch_hook = datagram_hook(_QUEUE_PAIRS, _UDP_LENGTHS)


bind_bottom_up(DETH, AggregationHeader)
