"""Headers are stored chunk by chunk: where chunks lie, and that fields across them keep their neighbours' bits."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from json_builder import action, call, const, extract, field, program, state, std, table, transition
from native_twin import Twin

from weft.switch.bmv2json import HeaderType
from weft.switch.bmv2json.model_headers import Field
from weft.switch.lowering.layout import header_block

Fields = list[tuple[str, int]]


@st.composite
def header_fields(draw: st.DrawFn) -> Fields:
    """Fields of any widths; the last one fills the last byte."""
    widths = draw(
        st.lists(st.sampled_from([1, 3, 4, 7, 8, 12, 16, 20, 24, 31, 32, 48, 64, 128]), min_size=1, max_size=12)
    )
    if rest := -sum(widths) % 8:
        widths.append(rest)
    return [(f"f{i}", width) for i, width in enumerate(widths)]


def with_field(data: bytes, fields: Fields, index: int, value: int) -> bytes:
    """The header with this field's bits replaced."""
    behind = sum(width for _, width in fields[index + 1 :])
    mask = (1 << fields[index][1]) - 1 << behind
    return (int.from_bytes(data, "big") & ~mask | value << behind).to_bytes(len(data), "big")


@given(header_fields())
def test_chunks_tile_the_header(fields: Fields) -> None:
    block = header_block(HeaderType("h_t", 0, tuple(Field(name, width) for name, width in fields)))
    end = 0
    for chunk in block.chunks:
        assert chunk.offset_bytes == end
        assert chunk.size_bytes in (1, 2, 4, 8)
        assert chunk.offset_bytes % chunk.size_bytes == 0
        end += chunk.size_bytes
    assert end == block.fixed_bytes == sum(width for _, width in fields) // 8


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_stored_field_leaves_the_others_alone(data: Any) -> None:
    fields = data.draw(header_fields())
    size_bytes = sum(width for _, width in fields) // 8
    writes = []
    for _ in range(data.draw(st.integers(1, 6))):
        index = data.draw(st.integers(0, len(fields) - 1))
        writes.append((index, data.draw(st.integers(0, (1 << fields[index][1]) - 1))))
    assigned = [call("assign", field("h", fields[index][0]), const(value)) for index, value in writes]
    act = action("act", 0, [], *assigned, call("assign", std("egress_spec"), const(1)))
    twin = Twin(
        program(
            {"h": fields},
            [("unused", 8)],
            [state("start", 0, [extract("h")], [], [transition(None, None)])],
            [act],
            {"init_table": "t", "tables": [table("t", 0, [], [act])]},
        )
    )
    packet = data.draw(st.binary(min_size=size_bytes, max_size=size_bytes))
    expected = packet
    for index, value in writes:
        expected = with_field(expected, fields, index, value)
    assert twin.process(0, packet + b"payload") == [(1, expected + b"payload")]


def test_more_headers_than_there_is_room_for_in_front() -> None:
    """A packet has 128 bytes of headroom; two added headers take more."""
    large = [(f"f{i}", 64) for i in range(16)]
    headers = {"a": large, "b": large, "c": [("x", 8)]}
    act = action(
        "act",
        0,
        [],
        *(call("add_header", {"type": "header", "value": name}) for name in ("a", "b")),
        call("assign", field("a", "f0"), const(0xA1)),
        call("assign", field("b", "f15"), const(0xB2)),
        call("assign", std("egress_spec"), const(1)),
    )
    twin = Twin(
        program(
            headers,
            [("unused", 8)],
            [state("start", 0, [extract("c")], [], [transition(None, None)])],
            [act],
            {"init_table": "t", "tables": [table("t", 0, [], [act])]},
        )
    )
    added = (0xA1).to_bytes(8, "big") + bytes(240) + (0xB2).to_bytes(8, "big")
    for payload in (b"", b"payload"):
        assert twin.process(0, b"\x07" + payload) == [(1, added + b"\x07" + payload)]
