"""Constants of packets to switches' services, without Scapy.

Format: docs/spec/services.md.
"""

from __future__ import annotations

from enum import IntEnum

HEADER_VERSION = 1
UDP_LENGTH = 64
FRAME_BYTES = {4: 98, 6: 118}
"""Length of the frame, from Ethernet to iCRC, by IP version."""
REQUEST_QP = 0xA66001
ANSWER_QP = 0xFFFFFF


class Kind(IntEnum):
    """Direction of a packet."""

    REQUEST = 0
    ANSWER = 1


class Operation(IntEnum):
    """What is asked of a switch."""

    BARRIER = 0
    FETCH_AND_ADD = 1
    COMPARE_AND_SWAP = 2
