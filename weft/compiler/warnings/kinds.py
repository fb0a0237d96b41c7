"""The names of the warnings; where p4c-bm2-ss has the same kind, its name is used."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """A kind of warning, as `--Wdisable=` and `--Werror=` take it."""

    UNINITIALIZED_USE = "uninitialized-use"
    UNINITIALIZED_OUT_PARAM = "uninitialized-out-param"
    INVALID_HEADER = "invalid-header"
    UNUSED = "unused"
    UNREACHABLE = "unreachable"
    PARSER_TRANSITION = "parser-transition"
    MISMATCH = "mismatch"
    OVERFLOW = "overflow"
    SHADOW = "shadow"
    ORDERING = "ordering"
    UNSUPPORTED = "unsupported"
    MISSING = "missing"
    IGNORE = "ignore"
    IGNORE_PROPERTY = "ignore-prop"
    DIRECTIVE = "directive"


DESCRIPTIONS = {
    Kind.UNINITIALIZED_USE: "a variable or field that is read before it is written",
    Kind.UNINITIALIZED_OUT_PARAM: "an out parameter that is left without a value",
    Kind.INVALID_HEADER: "a header's field that is read or written while the header is invalid",
    Kind.UNUSED: "a declaration that nothing refers to",
    Kind.UNREACHABLE: "statements, states and cases that are never reached",
    Kind.PARSER_TRANSITION: "parser states from which no path leads to accept, implicit transitions to reject",
    Kind.MISMATCH: "constants that do not fit their type, comparisons that the types alone decide",
    Kind.OVERFLOW: "shifts by the operand's width or more",
    Kind.SHADOW: "a declaration that hides another of the same name",
    Kind.ORDERING: "declarations that depend on an order of evaluation",
    Kind.UNSUPPORTED: "what p4c refuses, or refuses at times",
    Kind.MISSING: "a list of preserved fields that no field is in",
    Kind.IGNORE: "annotations without effect",
    Kind.IGNORE_PROPERTY: "table properties without effect",
    Kind.DIRECTIVE: "#warning, directives that are unknown",
}
