"""Constants of the aggregation packet, without Scapy.

Format: docs/spec/aggregation.md.
"""

from __future__ import annotations

from enum import IntEnum

LANE_COUNT = 64
"""Of packets with data, unless a fabric has wider ones."""
LANE_COUNTS = (0, 64, 128, 256, 1024)
"""How many lanes a packet may have; 0 is a header only."""
HEADER_VERSION = 2
ALL_WORKERS = 0xFFFF
"""The destination of a result that all get."""


def udp_length(lane_count: int) -> int:
    """Return the UDP length: UDP 8, BTH 12, DETH 8, aggregation header 20, the lanes, iCRC 4."""
    return 52 + 4 * lane_count


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


class Operation(IntEnum):
    """What a switch does with the lanes; sums wrap modulo 2^32."""

    SUM = 0
    MAX = 1
    MIN = 2
