"""Coverage of P4: what code counts is what traces show, and the formats in which it is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_twin import CPU_PORT
from router_program import router_document
from test_native_router import configure, ipv4_packet

from weft.compiler import compile_file
from weft.switch.bmv2json import Program, load_program
from weft.switch.coverage.counts import counts_of
from weft.switch.coverage.lcov import lcov_text
from weft.switch.coverage.model import ProgramCoverage, merged
from weft.switch.coverage.totals import never, totals
from weft.switch.native import NativeSwitch
from weft.switch.native.coverage import cover, coverage_of
from weft.switch.trace.events import Copied, CopyTrace, Event, Step
from weft.switch.trace.places import ActionChosen, Place, Selected, TableApplied, outcomes

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "debugging"


def flat(trace: CopyTrace) -> Iterator[Event]:
    for event in trace.events:
        yield event
        if isinstance(event, Copied):
            yield from flat(event.copy)


def of_traces(switch: NativeSwitch) -> Counter[tuple[Place, int]]:
    """How often each place had each outcome, by what was traced."""
    found: Counter[tuple[Place, int]] = Counter()
    for trace in switch.trace.take(unfinished=True):
        for event in flat(trace.root):
            if isinstance(event, Step):
                found[event.place, outcome_of(switch, event)] += 1
    return found


def outcome_of(switch: NativeSwitch, step: Step) -> int:
    """Which outcome of its place a step is, by what it reports."""
    assert switch.program is not None
    match step.place:
        case TableApplied():
            return int(step.match is not None)
        case Selected(state=name):
            states = {name: each for one in switch.program.parsers.values() for name, each in one.states.items()}
            # The value set is empty.
            fits = [bool(each.fits(step.values[0])) for each in states[name].transitions]
            return [*fits, True].index(True)
    return int(step.values[:1] == (1,)) if outcomes(step.place) > 1 else 0


@pytest.fixture(scope="module")
def router() -> Program:
    return load_program(router_document())


def loaded(program: Program) -> NativeSwitch:
    switch = NativeSwitch(name="covered", cpu_port=CPU_PORT)
    switch.load(program)
    return switch


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, 2, 3, 4, 5, 6, CPU_PORT]),
            st.builds(
                ipv4_packet,
                st.sampled_from([0x0B000001, 0x0C000001]),
                st.sampled_from([0x0A010203, 0x0A010204, 0x0A010205, 0x0A0000FF]),
                st.integers(0, 3),
                st.sampled_from([6, 17]),
            )
            | st.binary(max_size=40),
        ),
        max_size=20,
    )
)
def test_what_is_counted_is_what_traces_show(router: Program, packets: list[tuple[int, bytes]]) -> None:
    covered, traced = loaded(router), loaded(router)
    cover([covered])
    traced.trace.start()
    for switch in (covered, traced):
        configure(switch)
    for port, data in packets:
        assert covered.process(port, data) == traced.process(port, data)
    expected = of_traces(traced)
    for place, counted in counts_of(router).by_place().items():
        if not isinstance(place, ActionChosen):
            assert counted == tuple(expected[place, number] for number in range(outcomes(place))), place


def test_switches_of_a_program_count_together_and_entries_by_their_match(router: Program) -> None:
    switches = [loaded(router), loaded(router)]
    cover(switches)
    for switch in switches:
        configure(switch)
        switch.process(1, ipv4_packet(0x0C000001, 0x0A010203))
    (coverage,) = coverage_of(switches)
    routes = coverage.entries["routes"]
    assert sum(routes.values()) == 2
    assert len([hits for hits in routes.values() if hits]) == 1
    assert coverage.tables["routes"][1] == 2
    cover(switches)
    (again,) = coverage_of(switches)
    assert again.tables["routes"] == (0, 0), "counting begins at zero"


@pytest.fixture(scope="module")
def example() -> ProgramCoverage:
    """One packet through the example's router: forwarded, no UDP."""
    program = load_program(compile_file(EXAMPLES / "router.p4").json_text())
    switch = loaded(program)
    cover([switch])
    switch.process(1, bytes.fromhex("0200000001000200000000010800") + bytes([0x45]) + bytes(19))
    (coverage,) = coverage_of([switch])
    return coverage


def line_of(text: str) -> int:
    source = (EXAMPLES / "router.p4").read_text().splitlines()
    (number,) = [number for number, line in enumerate(source, 1) if text in line]
    return number


def test_lines_are_those_of_the_source(example: ProgramCoverage) -> None:
    (lines,) = example.lines.values()
    assert lines[line_of("received.count(")] == 1
    assert lines[line_of("mark_to_drop(standard_metadata)")] == 1
    assert lines[line_of("state parse_ipv4")] == 1
    assert lines[line_of("state parse_udp")] == 0
    assert lines[line_of("table routes")] == 0
    assert lines[line_of("hdr.ipv4.ttl = hdr.ipv4.ttl - 1")] == 0
    assert line_of("RouterEgress(inout") not in lines
    assert totals(example)["branches"] == (1, 4)
    assert ("action", "RouterIngress.forward") in never(example)
    assert example.name == "router.p4"


def read_lcov(text: str) -> dict[str, dict[str, list[list[str]]]]:
    """Parse a tracefile strictly: records by source file, fields by keyword."""
    files: dict[str, dict[str, list[list[str]]]] = {}
    record: dict[str, list[list[str]]] | None = None
    for line in text.splitlines():
        if line == "end_of_record":
            record = None
            continue
        keyword, colon, rest = line.partition(":")
        assert colon
        if keyword == "SF":
            assert record is None
            record = files[rest] = {}
        elif keyword == "TN":
            assert record is None
        else:
            assert record is not None
            record.setdefault(keyword, []).append(rest.split(",", 3 if keyword == "BRDA" else 1))
    assert record is None
    return files


def test_a_tracefile_says_the_same(example: ProgramCoverage) -> None:
    ((file, record),) = read_lcov(lcov_text([example])).items()
    assert Path(file).name == "router.p4"
    lines = {int(line): int(count) for line, count in record["DA"]}
    assert lines == example.lines[file]
    assert record["LF"] == [[str(len(lines))]]
    assert record["LH"] == [[str(sum(count > 0 for count in lines.values()))]]
    assert {name for _, name in record["FN"]} == {name for _, name in record["FNDA"]}
    taken = [fields[3] for fields in record["BRDA"]]
    assert record["BRF"] == [[str(len(taken))]]
    assert record["BRH"] == [[str(sum(count not in ("0", "-") for count in taken))]]
    assert taken.count("-") == 2, "a condition that was never evaluated"


def test_runs_add_up(example: ProgramCoverage) -> None:
    other = example.model_copy(update={"content_hash": "0" * 64})
    twice, apart = merged([example, other, example])
    assert apart == other
    (file,) = example.lines
    assert twice.lines[file] == {line: 2 * count for line, count in example.lines[file].items()}
    assert twice.tables["RouterIngress.routes"] == (0, 0)
    assert twice.states["start"] == 2
    assert [branch.true for branch in twice.branches.values()] == [2 * each.true for each in example.branches.values()]


WAYS = """
#include <core.p4>
#include <v1model.p4>
header tag_t { bit<8> kind; bit<8> value; bit<8> port; }
struct headers { tag_t first; tag_t second; }
struct metadata { }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    value_set<bit<8>>(4) kinds;
    state start {
        packet.extract(hdr.first);
        transition select(hdr.first.kind) {
            1: accept;
            2 .. 5: more;
            0x10 &&& 0xf0: more;
            kinds: more;
        }
    }
    state more {
        packet.extract(hdr.second);
        transition accept;
    }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    action to(bit<9> port) { standard_metadata.egress_spec = port; }
    action back() { standard_metadata.egress_spec = standard_metadata.ingress_port; }
    table chosen {
        key = { hdr.first.value: exact; }
        actions = { to; back; }
        const default_action = back();
        const entries = {
            7: to(3);
            8: back();
        }
    }
    table known {
        key = { hdr.first.port: exact; }
        actions = { NoAction; }
    }
    apply {
        switch (chosen.apply().action_run) {
            to: { hdr.first.port = 1; }
            back: { hdr.first.port = 2; }
        }
        if (known.apply().hit) { hdr.first.port = 9; }
        switch (hdr.first.value) {
            7: { hdr.first.kind = 70; }
            8: { hdr.first.kind = 80; }
            default: { hdr.first.kind = 90; }
        }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> ProgramCoverage:
    """Three packets: by a range of a select, by a mask, and one that no case matches."""
    source = tmp_path_factory.mktemp("ways") / "ways.p4"
    source.write_text(WAYS)
    switch = loaded(load_program(compile_file(source).json_text()))
    cover([switch])
    for packet in ("040700", "150700", "ff0000"):
        switch.process(1, bytes.fromhex(packet) + bytes(20))
    (coverage,) = coverage_of([switch])
    return coverage


def test_ways_on_are_counted_by_case(ways: ProgramCoverage) -> None:
    found = {
        name: {case.text: (case.line, case.count) for case in choice.cases} for name, choice in ways.choices.items()
    }
    at = {line.strip().rstrip(";"): number for number, line in enumerate(WAYS.splitlines(), 1)}
    assert found["select in start"] == {
        "1: accept": (at["1: accept"], 0),
        "2 .. 5: more": (at["2 .. 5: more"], 1),
        "0x10 &&& 0xf0: more": (at["0x10 &&& 0xf0: more"], 1),
        "kinds: more": (at["kinds: more"], 0),
        "no case matches": (at["state start {"], 1),
    }
    assert {text: count for text, (_, count) in found["switch (I.chosen.apply().action_run)"].items()} == {
        "I.to": 2,
        "I.back": 1,
    }
    assert {text: count for text, (_, count) in found["I.known.apply().hit"].items()} == {
        "false": 3,
        "true": 0,
    }
    assert found["entries of I.chosen"] == {
        "7": (at["7: to(3)"], 2),
        "8": (at["8: back()"], 0),
        "no entry matches": (at["table chosen {"], 1),
    }
    values = {branch.text.partition(":")[0]: (branch.true, branch.false) for branch in ways.branches.values()}
    assert values == {"7": (2, 1), "8": (0, 1)}


def test_a_tracefile_has_the_ways_on(ways: ProgramCoverage) -> None:
    ((_, record),) = read_lcov(lcov_text([ways])).items()
    lines = WAYS.splitlines()
    missed = [lines[int(line) - 1].strip() for line, _, _, taken in record["BRDA"] if taken == "0"]
    assert missed == [
        "1: accept;",
        "kinds: more;",
        "8: back();",
        "table known {",
        "8: { hdr.first.kind = 80; }",
    ]
    assert record["BRF"] == [[str(len(record["BRDA"]))]]
    assert totals(ways)["cases"] == (6, 9)
    assert (
        "case",
        f"select in start: 1: accept (line {lines.index('            1: accept;') + 1})",
    ) in never(ways)


def test_programs_that_share_a_file_may_have_other_cases_in_it(ways: ProgramCoverage) -> None:
    select = ways.choices["select in start"]
    more = select.cases[0].model_copy(update={"text": "0x88: tagged", "line": 90, "count": 5})
    choices = ways.choices | {"select in start": select.model_copy(update={"cases": [*select.cases[:-1], more]})}
    other = ways.model_copy(update={"content_hash": "0" * 64, "choices": choices})
    for pair in ([ways, other], [other, ways]):
        ((_, record),) = read_lcov(lcov_text(pair)).items()
        ((_, block, _, taken),) = (fields for fields in record["BRDA"] if fields[0] == "90")
        assert taken == "5"
        counts = [fields[3] for fields in record["BRDA"] if fields[1] == block]
        assert counts.count("2") == 2, "both have the range and the mask, each taken once in either"


def test_another_compilers_selects_have_no_lines(ways: ProgramCoverage) -> None:
    router = load_program(router_document())
    switch = loaded(router)
    cover([switch])
    switch.process(1, ipv4_packet(0x0C000001, 0x0A010203))
    (coverage,) = coverage_of([switch])
    found = {name: choice for name, choice in coverage.choices.items() if choice.kind == "select"}
    assert found
    assert all(case.line == 0 for choice in found.values() for case in choice.cases)
    assert sum(case.count for case in next(iter(found.values())).cases) == 1
    assert "BRDA" not in lcov_text([coverage])


def test_choices_add_up(ways: ProgramCoverage) -> None:
    (twice,) = merged([ways, ways])
    for name, choice in ways.choices.items():
        assert [case.count for case in twice.choices[name].cases] == [2 * case.count for case in choice.cases]


def test_choices_of_an_earlier_version_add_up_as_far_as_they_can(ways: ProgramCoverage) -> None:
    select = ways.choices["select in start"]
    fewer = select.model_copy(update={"cases": select.cases[2:]})
    earlier = ways.model_copy(update={"choices": {"select in start": fewer}})
    for pair in ([ways, earlier], [earlier, ways]):
        (both,) = merged(pair)
        counts = {case.text: case.count for case in both.choices["select in start"].cases}
        assert counts == {case.text: case.count * (1 + (case in fewer.cases)) for case in select.cases}
