"""Searches for packets in native code find what `Condition` finds in traces of the same packets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_twin import CPU_PORT, Twin
from router_program import router_document
from test_conditions import BASIC, STACKS, UNROUTED
from test_native_router import configure, ipv4_packet

from weft.compiler import compile_file
from weft.switch.bmv2json import Program, load_program
from weft.switch.debug.conditions import Condition
from weft.switch.debug.searches import MOST_PARTS, search_for
from weft.switch.native import NativeSwitch
from weft.switch.native import trace as native_trace
from weft.switch.native.trace import SearchResults
from weft.switch.trace.events import Step
from weft.switch.trace.places import TableApplied
from weft.switch.trace.values import key_text

MANY = 10**6


def compile_text(folder: Path, text: str) -> Program:
    path = folder / "program.p4"
    path.write_text(text)
    return load_program(compile_file(path).json_text())


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return compile_text(tmp_path_factory.mktemp("p4"), STACKS)


@pytest.fixture(scope="module")
def basic() -> Program:
    return load_program(compile_file(BASIC).json_text())


@pytest.fixture(scope="module")
def router() -> Twin:
    made = Twin(router_document())
    made.both(configure)
    return made


def searched(
    switch: NativeSwitch, text: str, packets: Iterable[tuple[int, bytes]], most: int = MANY
) -> tuple[SearchResults, list[int]]:
    """Return what a search finds, and the numbers of the packets that match by a trace of each."""
    program = switch.program
    assert program is not None
    condition = Condition(text, program)
    given = list(packets)
    switch.trace.search(search_for(condition, program), most, lambda: None)
    for port, data in given:
        switch.process(port, data)
    results = switch.trace.search_results(finish=True)
    switch.trace.stop()
    switch.trace.start()
    for port, data in given:
        switch.process(port, data)
    traces = switch.trace.take(unfinished=True)
    switch.trace.stop()
    return results, [number for number, trace in enumerate(traces, 1) if condition.holds(trace)]


def agrees(results: SearchResults, right: list[int], *, is_certain: bool) -> None:
    certain = {each.arrival for each in results.found if each.is_certain}
    perhaps = {each.arrival for each in results.found if not each.is_certain}
    assert certain <= set(right) <= certain | perhaps
    if is_certain:
        assert not perhaps


ROUTER_PARTS = [
    "drop",
    "drop program_egress",
    "port == 3",
    "out_port == 2",
    "out_port >= 4",
    "digest",
    "instance_type == 1",
    "instance_type != 0",
    "egress_rid == 2",
    "egress_spec == 511",
    "egress_spec == 0",
    "packet_length > 60",
    "parser_error == error.NoError",
    "ipv4.ttl == 63",
    "ipv4.ttl & 1 == 1",
    "ipv4.dstAddr == 10.1.2.0/24",
    "ipv4.protocol <= 6",
    "ipv4.ttl != 64",
    "udp",
    "ipv4.srcAddr == ipv4.dstAddr",
]
PARTS_OF_STACKS = [
    "first.value == 5",
    "first.value & 1 == 1",
    "first.value != 7",
    "tags[0].value == 7",
    "tags[1]",
    "other",
    "other.value < 9",
    "wide.length == 2",
    "wide.a == 0",
    "meta.seen == 5",
    "meta.never == 0",
    "meta.never != 0",
    "drop",
    "egress_spec == 2",
    "state wide",
]


def conditions(parts: list[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(parts),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join).map("({})".format),
            inner.map("not ({})".format),
        ),
        max_leaves=5,
    )


def names_of(program: Program, parts: list[str]) -> list[str]:
    """Return the parts that the program has the names for."""
    known = []
    for part in parts:
        try:
            Condition(part, program)
        except ValueError:
            continue
        known.append(part)
    assert len(known) > 12
    return known


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_search_in_a_router_with_clones_groups_and_recirculation(router: Twin, data: st.DataObject) -> None:
    switch = router.native
    assert switch.program is not None
    text = data.draw(conditions(names_of(switch.program, ROUTER_PARTS)))
    destinations = (0x0A010203, 0x0A010204, 0x0A010205, 0x0A0000FF)
    packets = [
        (port, ipv4_packet(0x0C000001, destination, ttl, protocol))
        for port, destination, ttl, protocol in data.draw(
            st.lists(
                st.tuples(
                    st.integers(0, 6),
                    st.sampled_from(destinations),
                    st.sampled_from([1, 2, 64]),
                    st.sampled_from([6, 17]),
                ),
                min_size=1,
                max_size=6,
            )
        )
    ]
    results, right = searched(switch, text, packets)
    assert results.looked_at == len(packets)
    agrees(results, right, is_certain=search_for(Condition(text, switch.program), switch.program).is_certain)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_search_in_a_program_with_stacks_and_moved_headers(stacks: Program, data: st.DataObject) -> None:
    switch = NativeSwitch(name="searched", cpu_port=CPU_PORT)
    switch.load(stacks)
    text = data.draw(conditions(names_of(stacks, PARTS_OF_STACKS)))
    packets = data.draw(st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=12)), min_size=1, max_size=6))
    results, right = searched(switch, text, [(1, bytes([first]) + rest) for first, rest in packets])
    agrees(results, right, is_certain=False)


@pytest.mark.parametrize(
    ("text", "needs_steps", "is_certain"),
    [
        ("drop", False, True),
        ("out_port == 1 and port != 3", False, True),
        ("packet_length == 42", False, True),
        ("ipv4.dst == 10.0.1.2", True, True),
        ("table ipv4_lpm miss", True, True),
        ('table ipv4_lpm entry "10.0.1.0/24"', True, True),
        ("parser_error == error.PacketTooShort", True, True),
        ("ipv4.ttl == ipv4.protocol", False, False),
    ],
)
def test_which_conditions_are_decided_by_records_alone(
    basic: Program, text: str, needs_steps: bool, is_certain: bool
) -> None:
    search = search_for(Condition(text, basic), basic)
    assert (search.needs_steps, search.is_certain) == (needs_steps, is_certain)


def test_an_entry_is_asked_for_by_its_name(router: Twin) -> None:
    switch = router.native
    assert switch.program is not None
    switch.trace.start()
    switch.process(1, ipv4_packet(0x0C000001, 0x0A010203, 64, 17))
    (trace,) = switch.trace.take()
    switch.trace.stop()
    steps = [event for event in trace.root.events if isinstance(event, Step) and event.match is not None]
    (step, *_) = [each for each in steps if isinstance(each.place, TableApplied)]
    table = switch.program.tables[step.place.table]
    widths = [key.field.width_bits for key in table.key]
    entry = key_text(step.match[0], widths, [key.name for key in table.key])
    packets = [(1, ipv4_packet(0x0C000001, to, 64, 17)) for to in (0x0A010203, 0x0AFF0203, 0x0A010203)]
    results, right = searched(switch, f'table {table.name} entry "{entry}"', packets)
    assert [each.arrival for each in results.found] == right
    assert 1 in right


def test_a_search_ends_when_it_has_found_enough(basic: Program) -> None:
    switch = NativeSwitch(name="searched", cpu_port=CPU_PORT)
    switch.load(basic)
    results, right = searched(switch, "drop", [(1, UNROUTED)] * 5, most=2)
    assert right == [1, 2, 3, 4, 5]
    assert [each.arrival for each in results.found] == [1, 2]
    assert (results.looked_at, results.is_over) == (2, True)


def test_packets_that_only_a_trace_decides_are_bounded(basic: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_trace, "MOST_PERHAPS", 3)
    switch = NativeSwitch(name="searched", cpu_port=CPU_PORT)
    switch.load(basic)
    results, right = searched(switch, "ipv4.ttl < ipv4.protocol", [(1, UNROUTED)] * 5)
    assert right == [1, 2, 3, 4, 5]
    assert [(each.arrival, each.is_certain) for each in results.found] == [(1, False), (2, False), (3, False)]
    assert results.not_kept == 2


def test_a_condition_of_many_parts_is_left_to_traces(basic: Program) -> None:
    switch = NativeSwitch(name="searched", cpu_port=CPU_PORT)
    switch.load(basic)
    results, right = searched(switch, " or ".join(["drop"] * (MOST_PARTS + 1)), [(1, UNROUTED)])
    assert right == [1]
    assert [each.is_certain for each in results.found] == [False]
