"""Frames that end at a port's MAC: priority pause, and updates of credits."""

from __future__ import annotations

from weft.wire.fields import Field, Header, Repeated, reserved
from weft.wire.headers.valiant_shim import VALIANT_ETHERTYPE

MAC_CONTROL_ETHERTYPE = 0x8808
CREDIT_ETHERTYPE = VALIANT_ETHERTYPE
MAC_CONTROL_ADDRESS = 0x0180C2000001
"""Both have this destination, which a bridge never forwards (IEEE 802.1Q-2018, table 8-1)."""
PRIORITY_PAUSE_OPCODE = 0x0101
CLASSES = 8
CONTROL_FRAME_BYTES = 60
"""The smallest Ethernet frame without its FCS; both are padded to it with zeros."""


def _ethernet(ethertype: int, source: str) -> tuple[Field, ...]:
    return (
        Field("destination", 48, default=MAC_CONTROL_ADDRESS, is_fixed=True, notation="mac"),
        Field("source", 48, source, notation="mac"),
        Field("ethertype", 16, default=ethertype, is_fixed=True, notation="hexadecimal"),
    )


PRIORITY_PAUSE = Header(
    "PriorityPause",
    "Priority-based flow control (PFC)",
    "IEEE 802.1Q-2018, clause 36; IEEE 802.3-2018, annex 31D",
    (
        *_ethernet(MAC_CONTROL_ETHERTYPE, "MAC of the switch, or of the NIC port"),
        Field("opcode", 16, default=PRIORITY_PAUSE_OPCODE, is_fixed=True, notation="hexadecimal"),
        reserved(8),
        Field("class_vector", 8, "one bit per class", notation="hexadecimal"),
        Repeated("quanta", Field("quanta", 16), CLASSES, "pause time in units of 512 bit times; 0 resumes"),
    ),
)

CREDIT_LANE = Header(
    "CreditLane",
    "Credits of one class",
    "InfiniBand Architecture 1.4, volume 1, 7.9.4",
    (
        reserved(4, "reserved1"),
        Field("sent_blocks", 12, "FCTBS: blocks of 64 bytes sent in all"),
        reserved(4, "reserved2"),
        Field("limit_blocks", 12, "FCCL: the block up to which there is memory"),
    ),
)

CREDIT_UPDATE = Header(
    "CreditUpdate",
    "Credit update",
    "docs/spec/frames.md, after InfiniBand Architecture 1.4, volume 1, 7.9.4",
    (
        *_ethernet(CREDIT_ETHERTYPE, "MAC of the port"),
        Field("request", 8, values={0: "update", 1: "request"}, notes={1: "the far end answers at once"}),
        Field("enabled_lanes", 8, "one bit per class", notation="hexadecimal"),
        Repeated("lanes", CREDIT_LANE, CLASSES),
    ),
)
