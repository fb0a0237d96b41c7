"""Expressions: native code computes what the oracle computes with unlimited integers."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_builder import (
    Json,
    action,
    call,
    const,
    extract,
    field,
    op,
    program,
    state,
    std,
    table,
    transition,
    wrapped,
)
from native_twin import Twin

INPUTS = [("a", 8), ("b", 3), ("c", 13), ("d", 32), ("e", 48), ("f", 128), ("g", 1), ("h", 7)]
RESULT_WIDTHS = (8, 16, 19, 64, 13, 128, 8)
RESULTS = [(f"r{i}", width) for i, width in enumerate(RESULT_WIDTHS)]
INPUT_BYTES = sum(width for _, width in INPUTS) // 8
ARITHMETIC = ("+", "-", "*", "&", "|", "^", "/", "%")


def _leaf() -> st.SearchStrategy[Json]:
    fields = st.sampled_from([field("input", name) for name, _ in INPUTS])
    return st.one_of(fields, st.integers(0, 300).map(const))


def _extend(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    masked = st.builds(lambda x, w: op("&", x, const((1 << w) - 1)), inner, st.integers(1, 70))
    amount = st.builds(lambda x: op("&", x, const(0x3F)), inner)
    comparison = st.builds(op, st.sampled_from(("==", "!=", "<", "<=", ">", ">=")), inner, inner)
    condition = st.one_of(
        comparison,
        st.builds(lambda x, y: op("and", x, op("not", None, y)), comparison, comparison),
        st.builds(lambda x: op("d2b", None, x), inner),
    )
    casts = st.sampled_from(("two_comp_mod", "sat_cast", "usat_cast"))
    return st.one_of(
        st.builds(op, st.sampled_from(ARITHMETIC), inner, inner),
        st.builds(lambda x: op("~", None, x), inner),
        st.builds(op, st.sampled_from(("<<", ">>")), masked, amount),
        st.builds(lambda kind, x, w: op(kind, x, const(w)), casts, inner, st.integers(2, 40)),
        st.builds(lambda c, x, y: op("?", x, y, cond=c), condition, inner, inner),
        st.builds(lambda c: op("b2d", None, c), condition),
        masked,
    )


EXPRESSIONS = st.recursive(_leaf(), _extend, max_leaves=8)


def document(expressions: list[Json]) -> Json:
    """A program that assigns each expression to a field of the header `result`."""
    calls = [
        call("assign", field("result", name), wrapped(expression))
        for (name, _), expression in zip(RESULTS, expressions, strict=True)
    ]
    compute = action("compute", 1, [], call("assign", std("egress_spec"), const(1)), *calls)
    entry = {"action_id": 1, "action_const": True, "action_data": [], "action_entry_const": True}
    run = table("run", 1, [], [compute], None, default_entry=entry)
    states = [state("start", 0, [extract("input"), extract("result")], [], [transition(None, None)])]
    headers = {"input": INPUTS, "result": RESULTS}
    return program(headers, [("unused", 8)], states, [compute], {"init_table": "run", "tables": [run]})


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(EXPRESSIONS, min_size=len(RESULTS), max_size=len(RESULTS)),
    st.lists(st.binary(min_size=INPUT_BYTES, max_size=INPUT_BYTES), min_size=3, max_size=6),
)
def test_native_code_computes_what_the_oracle_computes(expressions: list[Json], inputs: list[bytes]) -> None:
    twin = Twin(document(expressions))
    result_bytes = sum(RESULT_WIDTHS) // 8
    for data in (bytes(INPUT_BYTES), b"\xff" * INPUT_BYTES, *inputs):
        assert len(twin.process(1, data + b"\xa5" * result_bytes + b"tail")) == 1


def test_shift_beyond_the_width_gives_zero() -> None:
    far = op("&", op("<<", field("input", "a"), field("input", "d")), const(0xFFFF))
    expressions = [far, far, op(">>", field("input", "f"), field("input", "d"))]
    twin = Twin(document(expressions + [const(0)] * (len(RESULTS) - len(expressions))))
    twin.process(1, b"\xff" * 60)


def test_division_by_zero_gives_zero() -> None:
    expressions = [op("/", field("input", "d"), const(0)), op("%", field("input", "d"), const(0))]
    twin = Twin(document(expressions + [const(5)] * (len(RESULTS) - len(expressions))))
    ((_, data),) = twin.process(1, b"\xff" * 80)
    assert data[INPUT_BYTES : INPUT_BYTES + 3] == b"\0\0\0"
