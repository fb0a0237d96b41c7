"""The gate that counts (bench_gate.py): reading counts, comparing them with the table, and the committed table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import bench_gate as bench
import callgrind
import gate_table
import gate_workloads
import pytest
from gate_table import ENGINE_COUNTS, PYTHON_COUNTS, Measured, Table, TableError

from weft.paths import ROOT

PROFILE = """\
version: 1
creator: callgrind-3.19.0
positions: line
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw

ob=(1) /weft/engine/_core.so
fl=(1) engine/links/transmit_port.cpp
fn=(1) weft::TransmitPort::send
10 100 20 10 3 2 1 1 1 1
+2 50
cob=(2) /lib/libc.so.6
cfi=(2) ./string/memmove.S
cfn=(2) memcpy
calls=7 0
* 30 10 10
fi=(3) /usr/include/c++/12/bits/unique_ptr.h
* 5
fe=(1)
12 4

ob=(2)
fl=(2)
fn=(2)
1 30 10 10

ob=(3) ???
fl=(4) ???
fn=(3) 0x0000000005001000
0 11

totals: 200 30 20 3 2 1 1 1 1
"""
VERSIONS = {ENGINE_COUNTS: {"compiler": "gcc 12.2.0"}, PYTHON_COUNTS: {"python": "3.11.2"}}
RUN = Measured(
    ENGINE_COUNTS,
    {callgrind.INSTRUCTIONS: 2000.0, bench.MEMORY: 500.0},
    {"engine/links": 1500.0, "P4 program": 500.0},
)
TABLE = Table("first", VERSIONS, {"permutation": RUN})


def measured(**factors: float) -> dict[str, Measured]:
    counts = {
        callgrind.INSTRUCTIONS: 2000.0 * factors.get("instructions", 1),
        bench.MEMORY: 500.0 * factors.get("memory", 1),
    }
    return {"permutation": replace(RUN, counts=counts)}


def test_events_and_folders_of_a_profile() -> None:
    profile = callgrind.read_profile(PROFILE)
    assert profile.counts == {
        "instructions": 200,
        "first-level instruction misses": 3,
        "first-level data misses": 3,
        "last-level misses": 3,
    }
    assert profile.folders == {"engine/links": 154, "standard library": 5, "other": 30, "P4 program": 11}


def test_events_left_out_at_the_end_are_zero() -> None:
    text = PROFILE.replace("totals: 200 30 20 3 2 1 1 1 1", "totals: 200")
    assert callgrind.read_profile(text).counts["last-level misses"] == 0


@pytest.mark.parametrize("missing", ["events: ", "totals: "])
def test_a_file_without_counts_is_refused(missing: str) -> None:
    with pytest.raises(ValueError, match="no output of callgrind"):
        callgrind.read_profile(PROFILE.replace(missing, "x"))


def test_lines_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ValueError, match="lines have 200 instructions, its total 201"):
        callgrind.read_profile(PROFILE.replace("totals: 200", "totals: 201"))


def test_instructions_of_cachegrind() -> None:
    assert callgrind.read_instructions("events: Ir\nfl=x\nsummary: 301412942\n") == 301412942
    with pytest.raises(ValueError, match="no output of cachegrind"):
        callgrind.read_instructions("events: Ir\n")


def test_counts_are_per_packet_hop() -> None:
    found = bench.measured_of(callgrind.read_profile(PROFILE), {"packet_hops": 4, "memory_bytes": 1000})
    assert found.kind == ENGINE_COUNTS
    assert found.counts["instructions"] == 50
    assert found.counts[bench.MEMORY] == 250
    assert found.folders["engine/links"] == 38.5


def test_set_up_has_its_instructions_only() -> None:
    found = bench.measured_of(callgrind.read_profile(PROFILE), {})
    assert found == Measured(PYTHON_COUNTS, {"instructions": 200})


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, "same"), (1.019, "same"), (1.03, "worse"), (0.99, "same"), (0.97, "better")]
)
@pytest.mark.parametrize("name", ["instructions", "memory"])
def test_more_than_two_per_cent_is_a_difference(name: str, factor: float, verdict: str) -> None:
    now = measured(**{name: factor})
    rows = gate_table.compare(TABLE, now, TABLE.differences(VERSIONS))
    others = {"instructions", "memory"} - {name}
    assert len(others) == 1
    assert sorted(row.verdict for row in rows) == sorted([verdict, "same"])
    assert bool(bench.verdict(TABLE, now, rows)) == (verdict != "same")


@pytest.mark.parametrize(("times", "verdict"), [(0.9, "same"), (1.1, "worse"), (-1.1, "better")])
@pytest.mark.parametrize("count", [callgrind.INSTRUCTION_MISSES, callgrind.DATA_MISSES])
def test_first_level_misses_have_tolerances_of_their_own(count: str, times: float, verdict: str) -> None:
    tolerance = gate_table.TOLERANCES[count]
    assert tolerance > gate_table.TOLERANCE
    assert gate_table.Row("permutation", count, 1 + times * tolerance, 1.0, True).verdict == verdict


def test_a_regression_names_the_folders_that_grew() -> None:
    now = {"permutation": replace(measured(instructions=1.03)["permutation"], folders={"engine/links": 1560.0})}
    rows = gate_table.compare(TABLE, now, {})
    assert bench.verdict(TABLE, now, rows) == [
        "permutation: instructions grew by 3.0%",
        "  engine/links: +60.0 a packet-hop",
    ]


def test_a_count_that_was_zero_is_worse() -> None:
    table = replace(TABLE, runs={"a": Measured(ENGINE_COUNTS, {"misses": 0.0})})
    (row,) = gate_table.compare(table, {"a": Measured(ENGINE_COUNTS, {"misses": 1.0})}, {})
    assert row.verdict == "worse"


def test_another_compiler_is_named_and_compares_nothing_of_its_kind() -> None:
    here = {**VERSIONS, ENGINE_COUNTS: {"compiler": "gcc 13.2.0"}}
    differences = TABLE.differences(here)
    assert differences == {ENGINE_COUNTS: ["compiler gcc 13.2.0 (table: gcc 12.2.0)"], PYTHON_COUNTS: []}
    now = measured(instructions=1.5)
    rows = gate_table.compare(TABLE, now, differences)
    assert {row.verdict for row in rows} == {"not compared"}
    assert bench.verdict(TABLE, now, rows) == []


def test_a_run_that_the_table_lacks_is_an_error() -> None:
    with pytest.raises(TableError, match=r"no run 'ring' \(it has: permutation\); --update adds it"):
        gate_table.compare(TABLE, {**measured(), "ring": RUN}, {})
    with pytest.raises(TableError, match="run 'permutation' is not counted any more"):
        gate_table.compare(TABLE, {}, {})
    with pytest.raises(TableError, match="no count of 'permutation' 'misses'"):
        gate_table.compare(TABLE, {"permutation": replace(RUN, counts={**RUN.counts, "misses": 1.0})}, {})


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"reason": "", "versions": {}, "runs": {"a": {}}}'])
def test_a_file_without_a_table_is_an_error(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(TableError, match=r"gate\.json: no table of counts .*--update writes one"):
        Table.read(path)


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    TABLE.write(tmp_path / "gate.json")
    assert Table.read(tmp_path / "gate.json") == TABLE


def test_the_largest_difference_of_two_counts() -> None:
    assert gate_table.largest_difference(measured(), measured(memory=1.25)) == 0.25


def test_the_committed_table_has_every_run_and_a_reason() -> None:
    table = Table.read(gate_table.TABLE)
    assert set(table.runs) == {*gate_workloads.WORKLOADS, gate_workloads.SET_UP, bench.HELP, bench.LAB}
    assert table.reason
    assert table.versions[ENGINE_COUNTS]["link-time optimisation"] == "on"
    for name in gate_workloads.WORKLOADS:
        assert set(table.runs[name].counts) == {*callgrind.EVENTS, bench.MEMORY}


def test_the_lab_has_one_size_of_its_first_traffic() -> None:
    assert bench.smallest_of_lab().count("64KiB") == 1
    assert "incast" not in bench.smallest_of_lab()


def test_without_valgrind_the_gate_says_so_and_passes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "bench_gate.py"],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "bench-gate: skipped: valgrind is not installed (apt install valgrind)\n"


@pytest.mark.slow
def test_workloads_run_without_valgrind() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "gate_workloads.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert set(lines) == {*gate_workloads.WORKLOADS, gate_workloads.SET_UP}
    for name in gate_workloads.WORKLOADS:
        assert lines[name]["packet_hops"] > 10_000
        assert lines[name]["calls"]
