"""Constants of the aggregation packet, without Scapy.

Format: docs/spec/aggregation.md.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

from weft.engine import _core
from weft.traffic.data_types import DataType

LANE_BYTES = 4
LANE_COUNT = 64
"""Of packets with data, unless a fabric has wider ones."""
LANE_COUNTS = (0, 64, 128, 256, 1024)
"""How many lanes a packet may have; 0 is a header only."""
HEADER_VERSION = 2
ALL_WORKERS = 0xFFFF
"""The destination of a result that all get."""


def udp_length(lane_count: int) -> int:
    """Return the UDP length: UDP 8, BTH 12, DETH 8, aggregation header 20, the lanes, iCRC 4."""
    return 52 + LANE_BYTES * lane_count


_BEFORE_UDP: dict[int, int] = {4: 14 + 20, 6: 14 + 40}


def frame_bytes(ip_version: int, lane_count: int) -> int:
    """Return the length of the frame, from Ethernet to iCRC; `ip_version` is 4 or 6."""
    return _BEFORE_UDP[ip_version] + udp_length(lane_count)


CONTRIBUTION_QP = 0xA66000
RESULT_QP = 0xFFFFFF


class Kind(IntEnum):
    """Direction of an aggregation packet."""

    CONTRIBUTION = 0
    RESULT = 1


OperationName = Literal["sum", "max", "min", "average", "and", "or", "xor"]
"""Those of `Operation`."""


class Operation(IntEnum):
    """How elements of all ranks are combined; sums of integers wrap. `AND`, `OR` and `XOR` are of integers.

    Packets carry those below 256. An average is a sum that hosts divide by the number of ranks at the end: integers are
    rounded towards zero, floats to nearest.
    """

    SUM = 0
    MAX = 1
    MIN = 2
    AND = 3
    OR = 4
    XOR = 5
    AVERAGE = 256

    @property
    def combined_by(self) -> Operation:
        """The operation by which two elements become one."""
        return Operation.SUM if self is Operation.AVERAGE else self

    @property
    def is_bitwise(self) -> bool:
        """Whether it is one of bits, not of numbers."""
        return self in (Operation.AND, Operation.OR, Operation.XOR)


class LaneType(IntEnum):
    """What a lane holds: an integer, or as many narrow ones as fit."""

    INT32 = 0
    INT16 = 1
    INT8 = 2

    @property
    def elements(self) -> int:
        """How many integers a lane holds."""
        return 1 << self

    @property
    def element_bytes(self) -> int:
        """Size of an integer."""
        return LANE_BYTES >> self


IN_PACKETS = tuple(each for each in Operation if each < 256)
"""The operations of switches."""


def has_exponents(dtype: DataType, operation: Operation) -> bool:
    """Return whether elements travel in block floating point, whose exponents go ahead."""
    return dtype.is_float and operation.combined_by is Operation.SUM


def elements_per_lane(dtype: DataType, operation: Operation, workers: int) -> int:
    """Return how many elements travel in a lane: as many as fit, sums of 16-bit floats one or two."""
    name = operation.combined_by.name.lower()
    return _core.LaneEncoding(dtype.value, name, workers).elements_per_lane
