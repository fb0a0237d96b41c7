"""Statements that repeat lane by lane become loops: random ones, native against the oracle, and which are found."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
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

from weft.switch.bmv2json import load_program
from weft.switch.lowering.layout import header_block, metadata_block
from weft.switch.lowering.register_layout import register_layouts
from weft.switch.lowering.runs import Run, find_runs

LANES = 12
CELLS = 6
WIDTHS = (8, 16, 32, 64)
MASK = "mask"


def lane(number: int) -> Json:
    return field("h", f"lane{number}")


def other(number: int) -> Json:
    return field("h", f"other{number}")


def array(number: int) -> Json:
    return named("register_array", f"r{number}")


INDEX = field("h", "index")
STORED, MASKED = field("scalars", "stored"), field("scalars", MASK)


def values(width: int) -> st.SearchStrategy[Any]:
    """Functions from a lane's number to an expression of its fields."""
    limit = (1 << width) - 1
    leaves = st.sampled_from([lane, other, lambda _: STORED, lambda _: MASKED, lambda _: const(limit >> 1)])

    def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        operators = st.sampled_from(["+", "-", "&", "|", "^"])
        compared = st.sampled_from(["<", ">", "==", "!="])
        return st.one_of(
            st.builds(lambda o, a, b: lambda n: op("&", op(o, a(n), b(n)), const(limit)), operators, inner, inner),
            st.builds(lambda o, a, b: lambda n: op("?", a(n), b(n), cond=op(o, a(n), b(n))), compared, inner, inner),
            st.builds(lambda a: lambda n: op(">>", a(n), const(3)), inner),
        )

    return st.recursive(leaves, larger, max_leaves=4)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[int, list[Any]]:
    """A width, and a lane's statements, each a function of its number and of where its first call stands."""
    width = draw(st.sampled_from(WIDTHS))
    targets = st.sampled_from([lane, other, lambda _: STORED])
    body: list[Any] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["read", "assign", "write", "jump"]))
        target, value = draw(targets), draw(values(width))
        if kind == "read":
            body.append(lambda n, _, t=target: call("register_read", t(n), array(n), INDEX))
        elif kind == "write":
            body.append(lambda n, _, v=value: call("register_write", array(n), INDEX, wrapped(v(n))))
        elif kind == "assign":
            body.append(lambda n, _, t=target, v=value: call("assign", t(n), wrapped(v(n))))
        else:
            behind = len(body) + draw(st.integers(1, 5))
            body.append(
                lambda n, at, v=value, b=behind: call("_jump_if_zero", wrapped(op("&", v(n), const(1))), const(at + b))
            )
    # No jump leads beyond its lane.
    size = len(body)
    return width, [lambda n, at, m=made, p=position: _within(m(n, at), at + size) for position, made in enumerate(body)]


def _within(made: Json, end: int) -> Json:
    if made["op"] == "_jump_if_zero":
        made["parameters"][1] = const(min(int(made["parameters"][1]["value"], 16), end))
    return made


def document(width: int, body: list[Any], lanes: int = LANES) -> Json:
    """A program that runs `body` for each lane."""
    start = [call("assign", std("egress_spec"), const(1)), call("assign", MASKED, wrapped(lane(0)))]
    calls = list(start)
    for number in range(lanes):
        at = len(start) + number * len(body)
        calls += [made(number, at) for made in body]
    act = action("act", 0, [], *calls)
    entry = {"action_id": 0, "action_const": True, "action_data": [], "action_entry_const": True}
    fields = [("index", 8)]
    fields += [(f"{name}{n}", width) for name in ("lane", "other") for n in range(lanes)]
    return program(
        {"h": fields},
        [("stored", width), (MASK, width)],
        [state("start", 0, [extract("h")], [], [transition(None, None)])],
        [act],
        {"init_table": "t", "tables": [table("t", 0, [], [act], None, default_entry=entry)]},
        register_arrays=[{"name": f"r{n}", "id": n, "size": CELLS, "bitwidth": width} for n in range(lanes)],
    )


# Every example is compiled, so shrinking one would take minutes.
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(bodies(), st.data())
def test_random_lanes(body: tuple[int, list[Any]], data: Any) -> None:
    width, statements = body
    twin = Twin(document(width, statements))
    size_bytes = 1 + 2 * LANES * width // 8
    for _ in range(6):
        index = data.draw(st.sampled_from([0, 1, CELLS - 1, CELLS, 255]))
        twin.process(0, bytes([index]) + data.draw(st.binary(min_size=size_bytes, max_size=size_bytes)))
    for number in range(LANES):
        assert twin.native.register_read_all(f"r{number}") == twin.oracle.register_read_all(f"r{number}")


def runs_of(made: Json) -> list[Run]:
    loaded = load_program(json.dumps(made).encode())
    blocks = {
        name: metadata_block(header.type, {}) if header.metadata else header_block(header.type)
        for name, header in loaded.headers.items()
    }
    (act,) = (each for each in loaded.actions.values() if each.name == "act")
    return list(find_runs(act.primitives, blocks, register_layouts(loaded)[0]).values())


def add(number: int, _at: int) -> Json:
    return call("assign", lane(number), wrapped(op("&", op("+", lane(number), STORED), const(0xFFFFFFFF))))


def read(number: int, _at: int) -> Json:
    return call("register_read", STORED, array(number), INDEX)


def write(number: int, _at: int) -> Json:
    return call("register_write", array(number), INDEX, lane(number))


def test_lanes_are_one_run() -> None:
    (run,) = runs_of(document(32, [read, add, write]))
    assert (run.start, run.period, run.count) == (2, 3, LANES)
    assert sorted(run.strides.values()) == [4, 4]


def test_a_jump_within_each_lane_is_part_of_the_run() -> None:
    def skip(number: int, at: int) -> Json:
        return call("_jump_if_zero", wrapped(op("&", lane(number), const(1))), const(at + 3))

    (run,) = runs_of(document(32, [read, skip, write]))
    assert (run.period, run.count) == (3, LANES)
    assert run.body[1].arguments[-1].value == 3  # type: ignore[union-attr]


def test_a_jump_from_elsewhere_ends_the_run_where_it_leads() -> None:
    made = document(32, [read, add, write])
    calls = made["actions"][0]["primitives"]
    calls[1] = call("_jump_if_zero", wrapped(field("h", "index")), const(2 + 3 * 10 + 1))
    (run,) = runs_of(made)
    assert run.count == 10


def test_an_index_that_changes_makes_no_run() -> None:
    def step(_number: int, _at: int) -> Json:
        return call("assign", INDEX, wrapped(op("&", op("+", INDEX, const(1)), const(0xFF))))

    assert runs_of(document(32, [read, step, write])) == []


def test_few_lanes_and_fields_of_partial_bytes_make_no_run() -> None:
    assert runs_of(document(32, [read, add, write], lanes=7)) == []
    assert runs_of(document(12, [add], lanes=12)) == []


def test_lanes_that_are_out_of_order_make_no_run() -> None:
    made = document(32, [read, add, write])
    calls = made["actions"][0]["primitives"]
    calls[2:] = [each for n in range(LANES) for each in calls[2 + 3 * (n * 5 % LANES) :][:3]]
    assert runs_of(made) == []


def test_arrays_that_are_used_together_lie_side_by_side() -> None:
    layouts, size_bytes = register_layouts(load_program(json.dumps(document(32, [read, add, write])).encode()))
    assert [layouts[f"r{n}"].offset_bytes for n in range(LANES)] == [4 * n for n in range(LANES)]
    assert {layout.stride_bytes for layout in layouts.values()} == {64}
    assert size_bytes == 64 * (CELLS + 1)
