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
from weft.switch.trace.places import Place, TableApplied, outcomes

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
                second = (
                    event.match is not None
                    if isinstance(event.place, TableApplied)
                    else event.values[:1] == (1,)
                )
                found[event.place, int(second) if outcomes(event.place) > 1 else 0] += 1
    return found


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
        assert counted == (expected[place, 0], expected[place, 1]), place


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
    assert [branch.true for branch in twice.branches.values()] == [
        2 * each.true for each in example.branches.values()
    ]
