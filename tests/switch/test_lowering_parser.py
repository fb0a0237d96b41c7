"""Parsers on any bytes: stacks, variable lengths, lookahead, masks, loops, errors; native against the oracle."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from json_builder import (
    Json,
    action,
    call,
    const,
    extract,
    field,
    named,
    op,
    program,
    state,
    std,
    table,
    transition,
    wrapped,
)
from native_twin import Twin

TAG = [("last", 1), ("value", 7), ("id", 8)]
STACK_SIZE = 3


def _fixed(name: str, number: int, run: Json) -> Json:
    entry = {"action_id": run["id"], "action_const": True, "action_data": [], "action_entry_const": True}
    return table(name, number, [], [run], None, default_entry=entry)


def parser_document() -> Json:
    """first(kind) then by kind: tags (a stack), options (a variable length), a looked-at byte, or a masked kind."""
    headers: dict[str, list[Any]] = {
        "first": [("kind", 8)],
        "report": [("error", 32), ("tags", 8), ("peeked", 16)],
        "options": [("length", 8), ("tail", 8)],
        **{f"tag{i}": TAG for i in range(STACK_SIZE)},
    }
    length = op("*", op("&", field("options", "length"), const(0x1F)), const(4))
    peek = {"type": "lookahead", "value": [4, 13]}
    states = [
        state(
            "start",
            0,
            [extract("report"), extract("first")],
            [field("first", "kind")],
            [
                transition(1, "tags", width=1),
                transition(2, "options", width=1),
                transition(3, "peek", width=1),
                transition(0x40, "wide", 0xF0, width=1),
                transition(4, "verify", width=1),
                transition(5, "skip", width=1),
                transition(6, "loop", width=1),
                transition(8, "no choice", width=1),
                transition(None, None),
            ],
        ),
        state(
            "tags",
            1,
            [extract("tag", "stack")],
            [{"type": "stack_field", "value": ["tag", "last"]}],
            [transition(1, None, width=1), transition(None, "tags")],
        ),
        state(
            "options",
            2,
            [call("extract_VL", {"type": "regular", "value": "options"}, wrapped(length))],
            [],
            [transition(None, None)],
        ),
        state(
            "peek",
            3,
            [call("set", field("scalars", "peeked"), peek)],
            [{"type": "lookahead", "value": [0, 8]}],
            [transition(1, "tags", width=1), transition(None, None)],
        ),
        state(
            "wide",
            4,
            [call("set", field("scalars", "peeked"), const(0x1234))],
            [field("first", "kind"), {"type": "lookahead", "value": [0, 72]}],
            [
                transition(0x41 << 72 | 0x05 << 64, "tags", 0xFF << 72 | 0xFF << 64, width=10),
                transition(None, None),
            ],
        ),
        state(
            "verify",
            5,
            [call("verify", op("==", field("first", "kind"), const(5)), const(77))],
            [],
            [transition(None, None)],
        ),
        state(
            "skip",
            6,
            [call("advance", wrapped(op("*", field("first", "kind"), const(8)))), extract("tag", "stack")],
            [],
            [transition(None, None)],
        ),
        state("loop", 7, [], [], [transition(None, "loop")]),
        # A key that chooses nothing, and may lie beyond the packet.
        state("no choice", 8, [], [{"type": "lookahead", "value": [0, 16]}], [transition(None, "options")]),
    ]
    report = action(
        "report",
        1,
        [],
        call("assign", field("report", "error"), std("parser_error")),
        call("assign", field("report", "tags"), wrapped(op("size_stack", None, named("header_stack", "tag")))),
        call("assign", field("report", "peeked"), field("scalars", "peeked")),
        call("assign", std("egress_spec"), const(1)),
    )
    document = program(
        headers,
        [("peeked", 16)],
        states,
        [report],
        {"init_table": "run", "tables": [_fixed("run", 1, report)]},
        deparsed=["report", "first", "options", *(f"tag{i}" for i in range(STACK_SIZE))],
    )
    _make_stack(document)
    _make_variable(document)
    return document


def _make_stack(document: Json) -> None:
    ids = {header["name"]: header["id"] for header in document["headers"]}
    for header in document["headers"]:
        if header["name"].startswith("tag"):
            header["header_type"] = "tag0_t"
    document["header_stacks"] = [
        {
            "name": "tag",
            "id": 0,
            "header_type": "tag0_t",
            "header_ids": [ids[f"tag{i}"] for i in range(STACK_SIZE)],
        }
    ]


def _make_variable(document: Json) -> None:
    for header_type in document["header_types"]:
        if header_type["name"] == "options_t":
            header_type["fields"].insert(1, ["data", "*"])
            header_type["max_length"] = 18


@cache
def twin() -> Twin:
    return Twin(parser_document())


REPORT = bytes(7)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 8), st.binary(max_size=48))
@example(8, b"\x00")
@example(1, b"\x01\x02\x03\x04\x05\x06\x07\x08")  # more tags than the stack holds
@example(1, b"\x81\x02")
@example(1, b"\x01")
@example(2, b"\x01" + bytes(3))  # 4 bits are no whole byte
@example(2, b"\x02\xaa\xbb\xcc")
@example(2, b"\x1e" + bytes(20))  # 15 bytes
@example(2, b"\x1e" + bytes(5))
@example(3, b"\x01")
@example(3, b"")
@example(6, b"rest")
def test_parser_on_any_bytes(kind: int, rest: bytes) -> None:
    twin().process(1, REPORT + bytes([kind]) + rest)


@settings(max_examples=100, deadline=None)
@given(st.integers(0x3F, 0x51), st.binary(max_size=24))
@example(0x41, b"\x05" + bytes(12))
def test_masked_transition(kind: int, rest: bytes) -> None:
    twin().process(1, REPORT + bytes([kind]) + rest)


@pytest.mark.parametrize("size", range(8))
def test_packet_shorter_than_the_first_header_goes_on_to_ingress(size: int) -> None:
    twin().process(1, b"\xee" * size)


def test_stack_out_of_bounds_is_reported() -> None:
    ((_, data),) = twin().process(1, REPORT + b"\x01" + b"\x00\x11" * 5)
    assert data[3] == 3  # StackOutOfBounds among json_builder.ERRORS
    assert data[4] == STACK_SIZE
    assert data.endswith(b"\x00\x11" * 5)


def test_endless_parser_times_out() -> None:
    ((_, data),) = twin().process(1, REPORT + b"\x06")
    assert data[3] == 5  # ParserTimeout
