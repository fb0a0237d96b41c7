"""In-network aggregation: the header, and lanes of 32 bits behind it (docs/spec/aggregation.md)."""

from __future__ import annotations

from enum import IntEnum

from weft.wire.fields import Field, Header, Repeated

HEADER_VERSION = 2
LANE_BYTES = 4
LANE_COUNTS = (0, 64, 128, 256, 1024)
"""How many lanes a packet may have; 0 is a header only."""
ALL_WORKERS = 0xFFFF
"""The destination of a result that all get."""
CONTRIBUTION_QP = 0xA66000
RESULT_QP = 0xFFFFFF


class Kind(IntEnum):
    """Direction of an aggregation packet."""

    CONTRIBUTION = 0
    RESULT = 1


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


IN_PACKETS = tuple(each for each in Operation if each < 256)
"""The operations of switches."""


class LaneType(IntEnum):
    """Content of a lane: an integer, or as many narrow ones as fit."""

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


AGGREGATION = Header(
    "AggregationHeader",
    "Aggregation header",
    "docs/spec/aggregation.md",
    (
        Field("version", 4, default=HEADER_VERSION, is_fixed=True),
        Field(
            "kind",
            4,
            values={each.value: each.name.lower() for each in Kind},
            notes={Kind.CONTRIBUTION: "up", Kind.RESULT: "down"},
        ),
        Field(
            "operation",
            8,
            values={each.value: each.name.lower() for each in IN_PACKETS},
            notes={Operation.SUM: "wraps"},
        ),
        Field("job_id", 16),
        Field("epoch", 16, "of the job; slots of another epoch count as empty"),
        Field("slot", 16, "within the job's quota, from 0"),
        Field("round", 32, "starts at 0 in each epoch; version = round mod 2"),
        Field(
            "rank",
            16,
            "of the contributor among its parent's children; 0 in results",
            label="Rank among the parent's children",
        ),
        Field(
            "lane_count",
            16,
            f"{', '.join(f'{count:,}' for count in LANE_COUNTS)}; 0 is a header only",
            label="Lanes",
        ),
        Field(
            "data_type",
            8,
            "two's complement, the first in the highest bits",
            values={each.value: each.name.lower() for each in LaneType},
            notes={LaneType.INT16: "two a lane", LaneType.INT8: "four a lane"},
        ),
        Field(
            "flags",
            8,
            "bit 0, OVERFLOW: a sum has left its type's range on the way; the others are 0",
            notation="hexadecimal",
        ),
        Field(
            "destination",
            16,
            "number of the worker that gets the lanes of the result",
            default=ALL_WORKERS,
            values={ALL_WORKERS: "all"},
            is_closed=False,
        ),
        Repeated(
            "lanes",
            Field("lane", 8 * LANE_BYTES, notation="signed"),
            0,
            "as data_type says",
            counted_by="lane_count",
        ),
    ),
    p4="aggregation_t",
)
