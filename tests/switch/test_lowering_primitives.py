"""Random actions: assignments, headers, stacks, unions, registers, hashes and jumps, native against the oracle."""

from __future__ import annotations

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

ITEM = [("x", 4), ("y", 12), ("z", 16)]
ITEM_NAMES = ("x", "y", "z")
STACK = [f"s{i}" for i in range(3)]
UNION = ["u0", "u1"]
HEADERS = ["a", "b", *STACK, *UNION]
HASHES = (
    "crc16",
    "crc32",
    "csum16",
    "xor16",
    "identity",
    "crcCCITT",
    "xor32",
    "crc8_custom",
    "crc64_custom",
    "xxh64",
)
FIELDS = [field(header, name) for header in HEADERS for name in ITEM_NAMES]
FIELDS += [field("scalars", name) for name in ("m", "n", "w")]


def _access(index: Json, position: int) -> Json:
    header = op("dereference_header_stack", named("header_stack", "s"), index)
    return op("access_field", header, position)  # type: ignore[arg-type]


VALUES = st.one_of(
    st.sampled_from(FIELDS),
    st.integers(0, 70000).map(const),
    st.builds(lambda f, c: op("&", op("+", f, const(c)), const(0xFFFF)), st.sampled_from(FIELDS), st.integers(0, 9)),
    st.sampled_from([op("last_stack_index", None, named("header_stack", "s")), std("packet_length")]),
    st.builds(lambda f, i: _access(op("&", f, const(3)), i), st.sampled_from(FIELDS), st.integers(0, 2)),
    st.sampled_from(HEADERS).map(lambda name: op("b2d", None, op("d2b", None, field(name, "$valid$")))),
    st.just(op("b2d", None, op("==", named("header", "a"), named("header", "b")))),
)  # fmt: skip
LVALUES = st.one_of(
    st.sampled_from([field("a", "x"), field("a", "y"), field("b", "z"), field("scalars", "n")]),
    st.sampled_from([field("scalars", "m"), field("scalars", "w")]),
)
HEADER_NAMES = st.sampled_from([named("header", name) for name in HEADERS])
INDEX = st.builds(lambda f: wrapped(op("&", f, const(7))), st.sampled_from(FIELDS))
CALLS = st.one_of(
    st.builds(lambda t, v: call("assign", t, wrapped(v)), LVALUES, VALUES),
    st.builds(lambda h: call("add_header", h), HEADER_NAMES),
    st.builds(lambda h: call("remove_header", h), HEADER_NAMES),
    st.builds(lambda h, g: call("assign_header", h, g), HEADER_NAMES, HEADER_NAMES),
    st.builds(lambda kind, n: call(kind, named("header_stack", "s"), const(n)), st.sampled_from(("push", "pop")),
              st.integers(1, 4)),
    st.builds(lambda t, i: call("register_read", t, named("register_array", "r"), i), LVALUES, INDEX),
    st.builds(lambda i, v: call("register_write", named("register_array", "r"), i, wrapped(v)), INDEX, VALUES),
    st.builds(lambda i: call("count", named("counter_array", "c"), i), INDEX),
    st.builds(
        lambda t, h, n: call("modify_field_with_hash_based_offset", t, const(3), named("calculation", h), const(n)),
        LVALUES, st.sampled_from(HASHES), st.sampled_from([0, 1, 7, 256, 1 << 32]),
    ),
    st.builds(lambda v: call("truncate", wrapped(op("|", v, const(20)))), st.sampled_from(FIELDS)),
)  # fmt: skip
BODIES = st.lists(CALLS, min_size=1, max_size=12)


def document(body: list[Json], skipped: int) -> Json:
    """A program that parses by the first byte, runs `body` (its first calls only if m is not 0), and deparses all."""
    guarded = min(skipped, len(body))
    jump = call("_jump_if_zero", wrapped(op("&", field("a", "y"), const(1))), const(2 + guarded))
    run = action("run", 1, [], call("assign", std("egress_spec"), const(1)), jump, *body)
    entry = {"action_id": 1, "action_const": True, "action_data": [], "action_entry_const": True}
    tables = [table("t", 1, [], [run], None, default_entry=entry)]
    kinds = [(1, "more"), (2, "union"), (3, "stack")]
    states = [
        state("start", 0, [extract("a")], [field("a", "x")],
              [*(transition(value, name, width=1) for value, name in kinds), transition(None, None)]),
        state("more", 1, [extract("b"), extract("u0")], [], [transition(None, "stack")]),
        state("union", 2, [extract("u1")], [], [transition(None, None)]),
        state("stack", 3, [extract("s", "stack"), extract("s", "stack")], [], [transition(None, None)]),
    ]  # fmt: skip
    made = program(
        dict.fromkeys(HEADERS, ITEM),
        [("m", 1), ("n", 9), ("w", 70)],
        states,
        [run],
        {"init_table": "t", "tables": tables},
        register_arrays=[{"name": "r", "id": 0, "size": 5, "bitwidth": 19}],
        counter_arrays=[{"name": "c", "id": 0, "is_direct": False, "size": 6}],
        calculations=[{"name": name, "id": i, "algo": name, "input": _hash_input(i)} for i, name in enumerate(HASHES)],
    )  # fmt: skip
    ids = {header["name"]: header["id"] for header in made["headers"]}
    for header in made["headers"]:
        if header["name"] in HEADERS:
            header["header_type"] = "a_t"
    made["header_stacks"] = [{"name": "s", "id": 0, "header_type": "a_t", "header_ids": [ids[name] for name in STACK]}]
    made["header_union_types"] = [{"name": "u_t", "id": 0, "headers": [["one", "a_t"], ["two", "a_t"]]}]
    made["header_unions"] = [{"name": "u", "id": 0, "union_type": "u_t", "header_ids": [ids[name] for name in UNION]}]
    return made


def _hash_input(number: int) -> list[Json]:
    """Whole bytes for even numbers; for odd ones, parts of bytes of headers that may be missing."""
    items: list[Any] = [field("a", "z"), field("b", "x"), field("b", "y"), field("u0", "z")]
    items += [{"type": "hexstr", "value": "0xabc", "bitwidth": 12}, field("scalars", "n")]
    if number % 2:
        items += [field("b", "y"), field("u1", "x"), field("scalars", "w")]
    return items


PACKETS = st.builds(
    lambda x, y, rest: bytes([x << 4 | y >> 8, y & 0xFF]) + rest,
    st.integers(0, 3),
    st.integers(0, 0xFFF),
    st.binary(min_size=2, max_size=36),
)


# Every example is compiled, so shrinking one would take minutes.
@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(BODIES, st.integers(0, 12), st.lists(PACKETS, min_size=4, max_size=8))
def test_random_actions(body: list[Json], skipped: int, packets: list[bytes]) -> None:
    twin = Twin(document(body, skipped))
    for packet in packets:
        twin.process(1, packet)
    assert twin.native.register_read_all("r") == twin.oracle.register_read_all("r")
    assert twin.native.counter_read_all("c") == twin.oracle.counter_read_all("c")


def test_member_of_a_union_assigned_to_its_sibling() -> None:
    body = [call("assign_header", named("header", "u0"), named("header", "u1"))]
    Twin(document(body, 0)).process(1, b"\x20\x00\x00\x00\x01\x02\x03\x04")


def test_removed_header_keeps_its_fields() -> None:
    body = [
        call("remove_header", named("header", "a")),
        call("assign", std("egress_spec"), field("a", "z")),
    ]
    twin = Twin(document(body, 0))
    ((port, _),) = twin.process(1, b"\x00\x01\x00\x07rest")
    assert port == 7
    # Too short for the header: nothing is left of the packet before.
    ((port, _),) = twin.process(1, b"\x00\x01\x00")
    assert port == 0


def test_action_that_ends_in_a_conditional_jump_to_its_end() -> None:
    body = [call("_jump_if_zero", wrapped(field("a", "z")), const(3))]
    for packet in (b"\x00\x01\x00\x07rest", b"\x00\x01\x00\x00rest"):
        Twin(document(body, 0)).process(1, packet)
