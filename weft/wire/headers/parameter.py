"""Packets between clients and a parameter store (docs/spec/services.md)."""

from __future__ import annotations

from enum import IntEnum

from weft.wire.fields import Field, Header, Repeated, reserved

HEADER_VERSION = 1
PARAMETER_STORE_QP = 0xA66002
PARAMETER_CLIENT_QP = 0xA66003
BLOCK_WORDS = 16
PARAMETER_CACHED = 1
"""Flag of what a switch has answered."""


class ParameterKind(IntEnum):
    """Kind of a packet to or from a parameter store."""

    PULL = 0
    PUSH = 1
    VALUE = 2
    DONE = 3


PARAMETER = Header(
    "ParameterHeader",
    "Header of packets to and from a parameter store",
    "docs/spec/services.md",
    (
        Field("version", 4, default=HEADER_VERSION, is_fixed=True),
        Field("kind", 4, values={each.value: each.name.lower() for each in ParameterKind}),
        Field("flags", 8, "bit 0: a switch has answered"),
        Field("group_id", 16),
        Field("epoch", 16, "of the group"),
        Field("client", 16, "its number"),
        Field("block", 32, "from 0"),
        Field("sequence", 32, "number of the client's request"),
        Field("block_version", 32, "of answers: the version found, or made; 0 in requests"),
        reserved(32),
    ),
    p4="parameter_t",
)

BLOCK = Header(
    "ParameterBlock",
    "Block of parameters",
    "docs/spec/services.md",
    (Repeated("words", Field("word", 64, notation="hexadecimal"), BLOCK_WORDS),),
    p4="block_t",
)
