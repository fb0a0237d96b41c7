"""Constants of packets to switches' services, without Scapy.

Format: docs/spec/services.md.
"""

from __future__ import annotations

from enum import IntEnum

HEADER_VERSION = 1
UDP_LENGTH = 64
FRAME_BYTES = {4: 98, 6: 118}
"""Length of the frame, from Ethernet to iCRC, by IP version."""
PARAMETER_FRAME_BYTES = {4: (90, 218), 6: (110, 238)}
"""Of a frame to or from a parameter store without a block, and with one, by IP version."""
REQUEST_QP = 0xA66001
ANSWER_QP = 0xFFFFFF


BLOCK_BYTES = 128
PARAMETER_UDP_LENGTH = 56
"""Without a block."""
PARAMETER_STORE_QP = 0xA66002
PARAMETER_CLIENT_QP = 0xA66003
PARAMETER_CACHED = 1
"""Flag of what a switch has answered."""


class ParameterKind(IntEnum):
    """What a packet to or from a parameter store is."""

    PULL = 0
    PUSH = 1
    VALUE = 2
    DONE = 3


class Kind(IntEnum):
    """Direction of a packet."""

    REQUEST = 0
    ANSWER = 1


class Operation(IntEnum):
    """What is asked of a switch."""

    BARRIER = 0
    FETCH_AND_ADD = 1
    COMPARE_AND_SWAP = 2
