"""bench_same_flows.py: Weft and other simulators on the same flows, with stand-ins and, where they are, the real ones.

WEFT_NS3_HPCC, WEFT_HTSIM and WEFT_ASTRA_SIM name the real programs (docs/peers.md says what builds them).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import bench_same_flows as bench
import numpy as np
import pytest
from peers import PEERS, MissingPeerError, PeerRun, Spent

from tests.benchmarks.peer_programs import stand_in
from weft.paths import ROOT
from weft.traffic.patterns import Flow

SIZE = bench.Size(bench.QUICK_US, bench.QUICK_BYTES, bench.QUICK_HOSTS)


def run(variables: dict[str, str], *arguments: str, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in variables_of_peers()}
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "bench_same_flows.py", "--quick", *arguments],
        env={**environment, **variables, "PATH": path},
        capture_output=True,
        text=True,
    )


def variables_of_peers() -> list[str]:
    return [peer.variable for peer in PEERS.values()]


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", list(bench.CASES))
def test_every_case_fits_its_simulator(name: str) -> None:
    case = bench.CASES[name]
    work = case.work(SIZE)
    PEERS[case.peer].check(work)
    assert work.title == name


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PEERS))
def test_both_run_and_are_compared(name: str, tmp_path: Path) -> None:
    program = stand_in(tmp_path, name)
    found = figures(run({PEERS[name].variable: str(program)}, "--json", "--turns", "2", path="/usr/bin:/bin"))
    cases = [case for case, each in bench.CASES.items() if each.peer == name]
    assert [(row["case"], row["simulator"]) for row in found["runs"]] == [
        (case, simulator) for case in cases for simulator in ("Weft", PEERS[name].title)
    ]
    assert [row["case"] for row in found["agreement"]] == cases
    for case, theirs in zip(cases, found["runs"][1::2], strict=True):
        work = bench.CASES[case].work(SIZE)
        assert theirs["flows"] == len(work.flows)
        took_us = [10 + flow.size_bytes * 8 // 100 / 1000 for flow in work.flows]
        ends_us = [flow.start_ps / 1e6 + each for flow, each in zip(work.flows, took_us, strict=True)]
        assert theirs["end_us"] == pytest.approx(max(ends_us), rel=1e-5)
        slowdowns = [each * 1e6 / ideal for each, ideal in zip(took_us, work.ideal_ps.tolist(), strict=True)]
        assert theirs["mean"] == pytest.approx(sum(slowdowns) / len(slowdowns), rel=1e-4)
        by_size = [row for row in found["by_size"] if (row["case"], row["simulator"]) == (case, PEERS[name].title)]
        assert sum(row["flows"] for row in by_size) == len(slowdowns)
        assert max(row["largest"] for row in by_size) == pytest.approx(max(slowdowns), rel=1e-4)
        weighted = sum(row["mean"] * row["flows"] for row in by_size) / len(slowdowns)
        assert weighted == pytest.approx(theirs["mean"], rel=1e-9)


def test_slowdowns_are_those_of_the_sizes_that_they_are_said_to_be_of(tmp_path: Path) -> None:
    sizes = (1, 9_999, 10_000, 2_000_000)
    flows = tuple(Flow(0, 1 + place, size) for place, size in enumerate(sizes))
    work = replace(bench.CASES["websearch-nscc"].work(SIZE), flows=flows)
    took_ps = work.ideal_ps * np.array([2, 4, 5, 7])
    run = PeerRun(Spent(1.0, 1), int(took_ps.max()), took_ps)
    rows = list(bench.size_rows("case", "simulator", work, [run]))
    assert [(row.sizes, row.flows, row.mean, row.largest) for row in rows] == [
        ("0 to 10,000 B", 2, 3, 4),
        ("10,000 to 100,000 B", 1, 5, 5),
        ("from 1,000,000 B", 1, 7, 7),
    ]


def test_one_flow_per_pair_leaves_out_those_that_would_share_a_queue_pair() -> None:
    case = bench.CASES["websearch-nscc"]
    size = bench.Size(5000, bench.QUICK_BYTES, bench.QUICK_HOSTS)
    every, first = case.work(size).flows, bench.one_per_pair(case).work(size).flows
    # As docs/peers.md says; those of 100 kB to 1 MB have the tail.
    assert (len(every), len(first)) == (1430, 1375)
    assert [sum(1e5 <= flow.size_bytes < 1e6 for flow in flows) for flows in (every, first)] == [213, 201]
    pairs = [(flow.source, flow.destination) for flow in first]
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) == {(flow.source, flow.destination) for flow in every}
    assert all(flow in every for flow in first)
    starts = {(flow.source, flow.destination): flow.start_ps for flow in reversed(every)}
    assert all(starts[pair] == flow.start_ps for pair, flow in zip(pairs, first, strict=True))


@pytest.mark.slow
def test_further_hash_seeds_have_rows(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "ns3-hpcc")
    options = ["--json", "--cases", "websearch-hpcc", "--hash-seeds", "1", "2"]
    found = figures(run({"WEFT_NS3_HPCC": str(program)}, *options, path="/usr/bin:/bin"))
    assert [row["simulator"] for row in found["runs"]] == ["Weft", "ns-3 (HPCC)", "Weft, hash seed 2"]
    assert [row["simulator"] for row in found["agreement"]] == ["ns-3 (HPCC)", "Weft, hash seed 2"]


@pytest.mark.slow
def test_a_table_is_printed(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "astra-sim")
    done = run({"WEFT_ASTRA_SIM": str(program)}, "--peers", "astra-sim")
    assert done.returncode == 0, done.stderr
    assert "one-each" in done.stdout


def test_without_programs_it_says_which_variables_name_them(tmp_path: Path) -> None:
    done = run({}, path=str(tmp_path))
    assert done.returncode == 3
    for peer in PEERS.values():
        assert peer.variable in done.stderr
        assert "github.com/" in peer.source
        assert peer.source in done.stderr
    done = run({"WEFT_NS3_HPCC": str(tmp_path)}, "--peers", "ns3-hpcc")
    assert done.returncode == 3
    assert f"WEFT_NS3_HPCC={tmp_path} is no executable" in done.stderr


def test_a_case_without_a_simulator_is_refused(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "astra-sim")
    done = run({"WEFT_ASTRA_SIM": str(program)}, "--peers", "astra-sim", "--cases", "websearch-hpcc")
    assert done.returncode == 2


def test_the_clone_stands_for_the_program_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "simulation" / "build" / "scratch"
    folder.mkdir(parents=True)
    program = stand_in(tmp_path, "ns3-hpcc").rename(folder / "third")
    monkeypatch.setenv("WEFT_NS3_HPCC", str(tmp_path))
    assert PEERS["ns3-hpcc"].program() == program
    assert PEERS["ns3-hpcc"].environment(program) == {"LD_LIBRARY_PATH": str(folder.parent)}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(bench.CASES))
def test_real_simulators_agree_with_weft(name: str, tmp_path: Path) -> None:
    case = bench.CASES[name]
    try:
        PEERS[case.peer].program()
    except MissingPeerError as error:
        pytest.skip(str(error))
    tables = bench.compare(case, SIZE, 1, tmp_path)
    (_, theirs), (agreed,) = tables.runs, tables.agreement
    assert theirs.processor_s > 0
    # Of few flows on an idle fabric; ASTRA-sim stores whole messages and forwards them.
    assert 0.5 < agreed.median_ratio < 1.1
    assert agreed.pearson > 0.9
