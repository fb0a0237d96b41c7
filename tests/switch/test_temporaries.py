"""What is not cleared for each packet: temporaries, which are not in its state, and large headers."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from json_builder import (
    Json,
    action,
    call,
    conditional,
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
    valid,
    wrapped,
)
from native_twin import Twin

from weft.switch.bmv2json import load_program
from weft.switch.lowering.layout import BLOCK_ALIGNMENT, LARGE_HEADER_BYTES, Temporary, state_layout
from weft.switch.lowering.temporaries import Temporaries, temporaries

NONE: list[Json] = []
FIELDS = ("p", "q", "r", "t")
LARGE = [(f"word{i}", 64) for i in range(LARGE_HEADER_BYTES // 8 + 1)]


def scalar(name: str) -> Json:
    return field("scalars", name)


def assign(name: str, value: Json) -> Json:
    return call("assign", scalar(name), wrapped(value))


def graph(nodes: list[Json], first: str | None) -> Json:
    return {
        "init_table": first,
        "tables": [node for node in nodes if "key" in node],
        "conditionals": [node for node in nodes if "expression" in node],
    }


def document(nodes: list[Json], bodies: list[list[Json]], first: str | None, egress: list[Json] = NONE) -> Json:
    """A program whose ingress has these nodes; action `number` has body `number`. The last word of the packet leaves
    as the port, so that every field can be made visible. Egress begins with its first node.
    """
    actions = [action(f"a{number}", number, [], *body) for number, body in enumerate(bodies)]
    states = [
        state("start", 0, [extract("small")], [field("small", "kind")],
              [transition(1, "large", width=1), transition(None, None)]),
        state("large", 1, [extract("large")], [], [transition(None, None)]),
    ]  # fmt: skip
    return program(
        {"small": [("kind", 8), ("x", 8)], "large": LARGE},
        [(name, 16) for name in FIELDS],
        states,
        actions,
        graph(nodes, first),
        graph(egress, egress[0]["name"] if egress else None),
    )


def fixed_table(name: str, number: int, act: int, following: str | None) -> Json:
    entry = {"action_id": act, "action_const": True, "action_data": [], "action_entry_const": True}
    return table(name, number, [], [{"name": f"a{act}", "id": act}], following, default_entry=entry)


def analysed(nodes: list[Json], bodies: list[list[Json]], egress: list[Json] = NONE) -> Temporaries:
    return temporaries(load_program(json.dumps(document(nodes, bodies, "n0", egress)).encode()))


def kinds(nodes: list[Json], bodies: list[list[Json]], egress: list[Json] = NONE) -> dict[str, Temporary]:
    found = analysed(nodes, bodies, egress).kinds
    return {name: kind for (header, name), kind in found.items() if header == "scalars"}


def zeroed(
    nodes: list[Json], bodies: list[list[Json]], egress: list[Json] = NONE, pipeline: str = "ingress"
) -> set[str]:
    return {name for _, name in analysed(nodes, bodies, egress).zeroed[pipeline]}


def test_written_before_it_is_read() -> None:
    bodies = [[assign("p", const(1)), call("assign", std("egress_spec"), scalar("p"))]]
    assert "p" in kinds([fixed_table("n0", 0, 0, None)], bodies)
    assert not zeroed([fixed_table("n0", 0, 0, None)], bodies)


def test_read_before_it_is_written() -> None:
    bodies = [[call("assign", std("egress_spec"), scalar("p")), assign("p", const(1))]]
    assert "p" in kinds([fixed_table("n0", 0, 0, None)], bodies)
    assert zeroed([fixed_table("n0", 0, 0, None)], bodies) == {"p"}


def test_what_egress_reads_of_ingress_lasts() -> None:
    bodies = [[assign("p", const(1))], [call("assign", std("egress_spec"), scalar("p"))]]
    ingress, egress = [fixed_table("n0", 0, 0, None)], [fixed_table("m0", 1, 1, None)]
    assert "p" not in kinds(ingress, bodies, egress)


def test_what_egress_alone_mentions_is_zero() -> None:
    bodies = [[assign("q", const(1))], [call("assign", std("egress_spec"), scalar("p"))]]
    ingress, egress = [fixed_table("n0", 0, 0, None)], [fixed_table("m0", 1, 1, None)]
    assert "p" in kinds(ingress, bodies, egress)
    assert zeroed(ingress, bodies, egress, "egress") == {"p"}
    assert not zeroed(ingress, bodies, egress, "ingress")


def test_what_an_ingress_may_write_lasts_where_egress_reads_it() -> None:
    """The write is jumped over at times."""
    jump = call("_jump_if_zero", wrapped(field("small", "x")), const(2))
    bodies = [[jump, assign("p", const(1))], [call("assign", std("egress_spec"), scalar("p"))]]
    ingress, egress = [fixed_table("n0", 0, 0, None)], [fixed_table("m0", 1, 1, None)]
    assert "p" not in kinds(ingress, bodies, egress)


def test_written_on_one_way_only() -> None:
    nodes = [
        conditional("n0", 0, op("==", field("small", "x"), const(1)), "n1", "n2"),
        fixed_table("n1", 0, 0, "n2"),
        fixed_table("n2", 1, 1, None),
    ]
    bodies = [
        [assign("p", const(1)), assign("q", const(2))],
        [call("assign", std("egress_spec"), scalar("p"))],
    ]
    assert zeroed(nodes, bodies) == {"p"}
    assert "q" in kinds(nodes, bodies)


def test_jumped_over() -> None:
    jump = call("_jump_if_zero", wrapped(field("small", "x")), const(2))
    bodies = [[jump, assign("p", const(1)), call("assign", std("egress_spec"), scalar("p"))]]
    assert zeroed([fixed_table("n0", 0, 0, None)], bodies) == {"p"}


def test_a_table_may_find_nothing_to_execute() -> None:
    """So what all its actions write is not written for certain."""
    actions = [{"name": "a0", "id": 0}]
    nodes = [
        table("n0", 0, [], actions, "n1", default_entry=...),
        fixed_table("n1", 1, 1, None),
    ]
    bodies = [[assign("p", const(1))], [call("assign", std("egress_spec"), scalar("p"))]]
    assert zeroed(nodes, bodies) == {"p"}


def test_what_an_action_of_two_tables_mentions_is_shared() -> None:
    twice = [assign("p", const(1)), call("assign", std("egress_spec"), scalar("p"))]
    once = [assign("q", const(1)), call("assign", std("egress_spec"), scalar("q"))]
    nodes = [fixed_table("n0", 0, 0, "n1"), fixed_table("n1", 1, 1, "n2"), fixed_table("n2", 2, 0, None)]
    found = kinds(nodes, [twice, once])
    assert found["p"] is Temporary.SHARED
    assert found["q"] is Temporary.PRIVATE


def test_temporaries_are_not_in_the_state() -> None:
    bodies = [[assign(name, const(1)) for name in FIELDS]]
    loaded = load_program(json.dumps(document([fixed_table("n0", 0, 0, None)], bodies, "n0")).encode())
    with_them, without = state_layout(loaded, 0, {}), state_layout(loaded, 0, temporaries(loaded).kinds)
    assert without.metadata_bytes == with_them.metadata_bytes - with_them.blocks["scalars"].size_bytes
    assert sum(without.temporaries_bytes.values()) == with_them.blocks["scalars"].size_bytes


def test_no_more_temporaries_than_a_stack_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.switch.lowering.temporaries.MOST_TEMPORARIES_BYTES", 2 * BLOCK_ALIGNMENT)
    bodies = [[assign(name, const(1)) for name in FIELDS]]
    assert kinds([fixed_table("n0", 0, 0, None)], bodies).keys() == {"p", "q"}


def test_what_is_used_as_a_whole_lasts() -> None:
    bodies = [[assign("p", const(1)), call("assign_header", named("header", "scalars"), named("header", "scalars"))]]
    assert not kinds([fixed_table("n0", 0, 0, None)], bodies)


def test_intrinsic_metadata_lasts() -> None:
    bodies = [[call("assign", std("egress_spec"), const(1))]]
    loaded = load_program(json.dumps(document([fixed_table("n0", 0, 0, None)], bodies, "n0")).encode())
    assert not {header for header, _ in temporaries(loaded).kinds} & {"standard_metadata"}


def test_large_headers_lie_behind_what_is_cleared() -> None:
    loaded = load_program(json.dumps(document([], [], None)).encode())
    layout = state_layout(loaded, 0, temporaries(loaded).kinds)
    assert layout.is_large("large")
    assert not layout.is_large("small")
    assert layout.offsets["small"] + layout.blocks["small"].size_bytes <= layout.cleared_bytes
    assert layout.cleared_bytes <= layout.offsets["large"]


def test_large_headers_are_in_parts_no_larger_than_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_program(json.dumps(document([], [], None)).encode())
    monkeypatch.setattr("weft.switch.lowering.layout.LARGE_HEADER_BYTES", 0)
    layout = state_layout(loaded, 0, temporaries(loaded).kinds)
    large = [name for name in layout.blocks if layout.is_large(name)]
    assert len(large) > 1
    largest = max(layout.blocks[name].size_bytes for name in large)
    assert max(layout.large_parts_bytes) <= max(largest, layout.cleared_bytes)
    ends = {}
    for name in large:
        part, offset = divmod(layout.offsets[name], layout.large_apart_bytes)
        assert offset == ends.get(part, 0)
        ends[part] = offset + layout.blocks[name].size_bytes
    assert [ends[part] for part in sorted(ends)] == layout.large_parts_bytes
    assert min(ends) == 1


VALUES = st.one_of(
    st.sampled_from([scalar(name) for name in FIELDS]),
    st.sampled_from([field("small", "x"), field("large", "word0"), field("large", LARGE[-1][0])]),
    st.integers(1, 7).map(const),
)
CALLS = st.one_of(
    st.builds(lambda name, value: assign(name, value), st.sampled_from(FIELDS), VALUES),
    st.builds(
        lambda left, right: call("assign", std("egress_spec"), wrapped(op("&", op("+", left, right), const(0xFF)))),
        VALUES, VALUES,
    ),
    st.builds(lambda value: call("assign", field("large", "word0"), wrapped(value)), VALUES),
    st.builds(lambda value: call("assign", field("small", "x"), wrapped(value)), VALUES),
    st.sampled_from([call(name, named("header", "large")) for name in ("add_header", "remove_header")]),
    st.builds(lambda value: call("_jump_if_zero", wrapped(value), const(1)), VALUES),
    st.just(call("exit")),
)  # fmt: skip
BODY = st.lists(CALLS, max_size=5)


def _within(body: list[Json]) -> list[Json]:
    """With jumps that lead forward, by up to two calls."""
    made = []
    for index, each in enumerate(body):
        if each["op"] == "_jump_if_zero":
            target = const(min(len(body), index + 2))
            each = call("_jump_if_zero", each["parameters"][0], target)
        made.append(each)
    return made


def _nodes(draw: st.DrawFn, prefix: str, bodies: list[list[Json]], first_table: int) -> list[Json]:
    """Tables with one action, perhaps that of another one, and conditionals, each leading forward."""
    count = draw(st.integers(1, 5))
    nodes: list[Json] = []
    for number in range(count):
        later = st.sampled_from([*(f"{prefix}{i}" for i in range(number + 1, count)), None])
        name = f"{prefix}{number}"
        if draw(st.booleans()):
            condition = draw(
                st.one_of(
                    st.builds(lambda left, right: op("==", left, right), VALUES, VALUES),
                    st.just(valid("large")),
                )
            )
            nodes.append(conditional(name, number, condition, draw(later), draw(later)))
        else:
            act = draw(st.integers(0, len(bodies)))
            nodes.append(fixed_table(name, first_table + number, act, draw(later)))
            if act == len(bodies):
                bodies.append(_within(draw(BODY)))
    return nodes


@st.composite
def pipelines(draw: st.DrawFn) -> Json:
    """A program of ingress and egress, which may share actions."""
    bodies: list[list[Json]] = []
    ingress = _nodes(draw, "n", bodies, 0)
    egress = _nodes(draw, "m", bodies, len(ingress))
    return document(ingress, bodies, "n0", egress)


PACKETS = st.builds(lambda kind, rest: bytes([kind]) + rest, st.integers(0, 1), st.binary(min_size=1, max_size=90))


# Every example is compiled, so shrinking one would take minutes.
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(pipelines(), st.lists(PACKETS, min_size=4, max_size=8))
def test_no_packet_sees_what_the_one_before_left(made: Json, packets: list[bytes]) -> None:
    twin = Twin(made)
    for packet in packets:
        twin.process(1, packet)
