"""Constants of the aggregation packet, without Scapy.

Format: docs/spec/aggregation.md.
"""

from __future__ import annotations

from enum import IntEnum

LANE_COUNT = 64
"""Of a worker's packets with data."""
LANE_COUNTS = (0, 64, 128, 256, 1024)
"""How many lanes a packet may have; 0 is a header only."""
HEADER_VERSION = 2
ALL_WORKERS = 0xFFFF
"""The destination of a result that all get."""


def udp_length(lane_count: int) -> int:
    """Return the UDP length: UDP 8, BTH 12, DETH 8, aggregation header 20, the lanes, iCRC 4."""
    return 52 + 4 * lane_count


FRAME_BYTES = {4: 34 + udp_length(LANE_COUNT), 6: 54 + udp_length(LANE_COUNT)}
"""Length of the frame, from Ethernet to iCRC, by IP version."""
CONTRIBUTION_QP = 0xA66000
RESULT_QP = 0xFFFFFF


class Kind(IntEnum):
    """Direction of an aggregation packet."""

    CONTRIBUTION = 0
    RESULT = 1


class Operation(IntEnum):
    """What a switch does with the lanes; sums wrap modulo 2^32."""

    SUM = 0
    MAX = 1
    MIN = 2
