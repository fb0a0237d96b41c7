"""The aggregation packet, without Scapy: what its header holds, and its lengths.

Format: docs/spec/aggregation.md.
"""

from __future__ import annotations

from typing import Literal

from weft.engine import _core
from weft.traffic.data_types import DataType
from weft.wire.headers.aggregation import (
    AGGREGATION,
    ALL_WORKERS,
    CONTRIBUTION_QP,
    HEADER_VERSION,
    IN_PACKETS,
    LANE_BYTES,
    LANE_COUNTS,
    RESULT_QP,
    Kind,
    LaneType,
    Operation,
)
from weft.wire.headers.network import BYTES_BEFORE_UDP
from weft.wire.headers.roce import datagram_udp_bytes

__all__ = [
    "ALL_WORKERS",
    "CONTRIBUTION_QP",
    "HEADER_VERSION",
    "IN_PACKETS",
    "LANE_BYTES",
    "LANE_COUNT",
    "LANE_COUNTS",
    "RESULT_QP",
    "Kind",
    "LaneType",
    "Operation",
    "OperationName",
    "elements_per_lane",
    "frame_bytes",
    "has_exponents",
    "udp_length",
]

LANE_COUNT = 64
"""Of packets with data, unless a fabric has wider ones."""
OperationName = Literal["sum", "max", "min", "average", "and", "or", "xor"]
"""Those of `Operation`."""


def udp_length(lane_count: int) -> int:
    """Return the UDP length of a packet with so many lanes."""
    return datagram_udp_bytes(AGGREGATION) + LANE_BYTES * lane_count


def frame_bytes(ip_version: int, lane_count: int) -> int:
    """Return the length of the frame, from Ethernet to iCRC; `ip_version` is 4 or 6."""
    return BYTES_BEFORE_UDP[ip_version] + udp_length(lane_count)


def has_exponents(dtype: DataType, operation: Operation) -> bool:
    """Return whether elements travel in block floating point, whose exponents go ahead."""
    return dtype.is_float and operation.combined_by is Operation.SUM


def elements_per_lane(dtype: DataType, operation: Operation, workers: int) -> int:
    """Return how many elements travel in a lane: as many as fit, sums of 16-bit floats one or two."""
    name = operation.combined_by.name.lower()
    return _core.LaneEncoding(dtype.value, name, workers).elements_per_lane
