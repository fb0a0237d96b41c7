"""Packets to services of switches: barriers and counters (docs/spec/services.md)."""

from __future__ import annotations

from enum import IntEnum

from weft.wire.fields import Field, Header

HEADER_VERSION = 1
REQUEST_QP = 0xA66001
ANSWER_QP = 0xFFFFFF


class Kind(IntEnum):
    """Direction of a packet."""

    REQUEST = 0
    ANSWER = 1


class Operation(IntEnum):
    """Request to a switch."""

    BARRIER = 0
    FETCH_AND_ADD = 1
    COMPARE_AND_SWAP = 2


SERVICE = Header(
    "ServiceHeader",
    "Header of packets to services",
    "docs/spec/services.md",
    (
        Field("version", 4, default=HEADER_VERSION, is_fixed=True),
        Field(
            "kind",
            4,
            values={each.value: each.name.lower() for each in Kind},
            notes={Kind.REQUEST: "up", Kind.ANSWER: "down"},
        ),
        Field("operation", 8, values={each.value: each.name.lower() for each in Operation}),
        Field("group_id", 16),
        Field("epoch", 16, "of the group; what switches have kept of another epoch counts as empty"),
        Field("cell", 16, "which of the group's barriers, or counters, from 0"),
        Field("sequence", 32, "a barrier's round, from 0 in each epoch; the number of a client's request"),
        Field(
            "member",
            16,
            "barrier: rank among the parent's children, 0 in answers; counter: number of the client",
        ),
        Field("flags", 16, is_fixed=True),
        Field("operand", 64, "request: what to add, or the new value; answer: the value found. 0 in barriers"),
        Field("comparand", 64, "compare-and-swap: the value expected; else 0"),
    ),
    p4="service_t",
)
