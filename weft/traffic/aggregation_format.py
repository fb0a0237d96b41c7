"""Constants of the aggregation packet, without Scapy.

Format: docs/spec/aggregation.md.
"""

from __future__ import annotations

from enum import IntEnum

LANE_COUNT = 64
HEADER_VERSION = 1
UDP_LENGTH = 304
FRAME_BYTES = {4: 338, 6: 358}
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
