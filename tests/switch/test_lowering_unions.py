"""Stacks of header unions: extracted, read in select, counted and popped; native against the oracle."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hypothesis import given, settings
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

from weft.compiler import compile_file
from weft.switch.bmv2json import load_program

SIZE = 2
STACK = named("header_union_stack", "unions")
BYTES = [("x", 8), ("y", 8)]
WORDS = [("p", 16), ("q", 16)]


def _extract(member: str) -> Json:
    return call("extract", {"type": "union_stack", "value": ["unions", member]})


def unions_document() -> Json:
    """first, then unions: member `bytes` while its x is 1, member `words` after a 2."""
    kinds = [transition(1, "bytes", width=1), transition(2, "words", width=1), transition(None, None)]
    run = action(
        "run",
        1,
        [],
        call("assign", std("egress_spec"), const(1)),
        call("assign", field("first", "x"), wrapped(op("size_stack", None, STACK))),
        call("pop", STACK, const(1)),
    )
    entry = {"action_id": 1, "action_const": True, "action_data": [], "action_entry_const": True}
    states = [
        state("start", 0, [extract("first")], [field("first", "x")], kinds),
        state(
            "bytes",
            1,
            [_extract("bytes")],
            [{"type": "union_stack_field", "value": ["unions", "bytes", "x"]}],
            kinds,
        ),
        state("words", 2, [_extract("words")], [], [transition(None, None)]),
    ]
    headers = {"first": BYTES}
    headers |= {f"bytes{i}": BYTES for i in range(SIZE)} | {f"words{i}": WORDS for i in range(SIZE)}
    order = ["first", *(f"{member}{i}" for i in range(SIZE) for member in ("bytes", "words"))]
    tables = [table("t", 1, [], [run], None, default_entry=entry)]
    document = program(headers, [("unused", 8)], states, [run], {"init_table": "t", "tables": tables}, deparsed=order)
    ids = {header["name"]: header["id"] for header in document["headers"]}
    for header in document["headers"]:
        if header["name"][-1].isdigit():
            header["header_type"] = f"{header['name'][:-1]}0_t"
    members = [["bytes", "bytes0_t"], ["words", "words0_t"]]
    document["header_union_types"] = [{"name": "u_t", "id": 0, "headers": members}]
    document["header_unions"] = [
        {"name": f"u{i}", "id": i, "union_type": "u_t", "header_ids": [ids[f"bytes{i}"], ids[f"words{i}"]]}
        for i in range(SIZE)
    ]
    document["header_union_stacks"] = [
        {"name": "unions", "id": 0, "union_type": "u_t", "header_union_ids": list(range(SIZE))}
    ]
    return document


@cache
def twin() -> Twin:
    return Twin(unions_document())


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([0, 1, 1, 2, 3]), max_size=14))
def test_union_stacks_on_any_bytes(values: list[int]) -> None:
    twin().process(1, bytes(values))


def test_popped_union_is_gone() -> None:
    ((_, data),) = twin().process(1, b"\x01\xaa" + b"\x02\xbb" + b"\x11\x22\x33\x44" + b"rest")
    assert data == b"\x02\xaa" + b"\x11\x22\x33\x44" + b"rest"


def test_a_union_of_a_stack_that_p4c_calls_a_header(tmp_path: Path) -> None:
    """P4c writes {"type": "header", "value": "us[0]"} where a union within a stack is asked for its validity.

    BMv2 refuses that.
    """
    cases = Path(__file__).parents[1] / "stf" / "cases"
    source = (cases / "unions_compared.p4").read_text(encoding="utf-8")
    condition = "if (headers.first == headers.second)"
    assert condition in source
    path = tmp_path / "unions.p4"
    path.write_text(source.replace(condition, "if (headers.first[0].isValid() && headers.first == headers.second)"))
    text = compile_file(path, include_paths=[cases]).json_text()
    ours = '{"type": "header_union", "value": "first[0]"}'
    assert ours in text
    theirs = text.replace(ours, ours.replace("header_union", "header"))
    assert load_program(theirs).pipelines == load_program(text).pipelines
