"""Packets to switches' services and to parameter stores, without Scapy: what their headers hold, and their lengths.

Format: docs/spec/services.md.
"""

from __future__ import annotations

from weft.wire.headers.network import BYTES_BEFORE_UDP
from weft.wire.headers.parameter import (
    BLOCK,
    PARAMETER,
    PARAMETER_CACHED,
    PARAMETER_CLIENT_QP,
    PARAMETER_STORE_QP,
    ParameterKind,
)
from weft.wire.headers.roce import datagram_udp_bytes
from weft.wire.headers.service import ANSWER_QP, HEADER_VERSION, REQUEST_QP, SERVICE, Kind, Operation

__all__ = [
    "ANSWER_QP",
    "BLOCK_BYTES",
    "FRAME_BYTES",
    "HEADER_VERSION",
    "PARAMETER_CACHED",
    "PARAMETER_CLIENT_QP",
    "PARAMETER_FRAME_BYTES",
    "PARAMETER_STORE_QP",
    "PARAMETER_UDP_LENGTH",
    "REQUEST_QP",
    "UDP_LENGTH",
    "Kind",
    "Operation",
    "ParameterKind",
]

UDP_LENGTH = datagram_udp_bytes(SERVICE)
FRAME_BYTES = {version: below + UDP_LENGTH for version, below in BYTES_BEFORE_UDP.items()}
"""Length of the frame, from Ethernet to iCRC, by IP version."""

BLOCK_BYTES = BLOCK.size_bytes
PARAMETER_UDP_LENGTH = datagram_udp_bytes(PARAMETER)
"""Without a block."""
PARAMETER_FRAME_BYTES = {
    version: (below + PARAMETER_UDP_LENGTH, below + PARAMETER_UDP_LENGTH + BLOCK_BYTES)
    for version, below in BYTES_BEFORE_UDP.items()
}
"""Of a frame to or from a parameter store without a block, and with one, by IP version."""
