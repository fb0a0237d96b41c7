"""bench_peers.py and bench_uet.py: both programs get the same flows; missing flows and programs are errors.

A stand-in takes the place of the simulator, which is not part of Weft (peer_programs.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import bench_peers as bench
import bench_uet
import pytest
from peers.adapters.htsim_uec import KIND as HTSIM
from peers.adapters.htsim_uec import connection_matrix

from tests.benchmarks.peer_programs import stand_in
from weft.paths import ROOT


def run(
    executable: Path | None, *arguments: str, path: str = os.environ["PATH"], script: str = "bench_peers.py"
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path}
    environment.pop(HTSIM.variable, None)
    if executable is not None:
        environment[HTSIM.variable] = str(executable)
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks" / script, "--quick", *arguments],
        env=environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("case", bench.CASES.values(), ids=list(bench.CASES))
def test_both_get_the_same_flows(case: bench.Case) -> None:
    pairs = case.pairs()
    work = case.work()
    listed = [tuple(map(int, row.split(",")[:3])) for row in work.flow_csv().splitlines()[1:]]
    assert listed == [(*pair, case.size_bytes) for pair in pairs]
    nodes, connections, *rows = connection_matrix(work).splitlines()
    assert (nodes, connections) == (f"Nodes {case.hosts}", f"Connections {len(pairs)}")
    assert [tuple(map(int, row.split()[0].split("->"))) for row in rows] == list(pairs)
    assert all(source != destination for source, destination in pairs)


def test_the_patterns_are_those_that_they_are_called() -> None:
    permutation, everyone, incast = (bench.Case(name, 4, 1, 1) for name in ("permutation", "all-to-all", "incast"))
    assert sorted(source for source, _ in permutation.pairs()) == list(range(16))
    assert sorted(destination for _, destination in permutation.pairs()) == list(range(16))
    assert len(set(everyone.pairs())) == 16 * 15
    assert incast.pairs() == [(source, 0) for source in range(1, 16)]


@pytest.mark.slow
def test_both_run_and_are_compared(tmp_path: Path) -> None:
    done = run(stand_in(tmp_path), "--turns", "1", "--cases", "incast", "all-to-all", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert [figure["name"].split(",")[0] for figure in figures[::4]] == ["incast", "all-to-all"]
    ours, theirs, _, emulated = figures[:4]
    assert theirs["ratio"] == pytest.approx(theirs["value"] / ours["value"])
    assert emulated["value"] == 10 + 20_000 * 8 / 1e5, "a flow of the stand-in"


def test_a_flow_that_does_not_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HTSIM.variable, str(stand_in(tmp_path, leaves_out=1)))
    with pytest.raises(RuntimeError, match="14 of 15 flows of the simulator ended"):
        HTSIM.run(bench.Case("incast", 4, 1000, 2).work(), tmp_path)


def test_a_simulator_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HTSIM.variable, "/bin/false")
    with pytest.raises(RuntimeError, match="exit code 1"):
        HTSIM.run(bench.Case("incast", 4, 1000, 2).work(), tmp_path)


def test_without_the_simulator_it_says_how_to_get_it(tmp_path: Path) -> None:
    done = run(None, path=str(tmp_path))
    assert done.returncode == 3
    assert "htsim_uec is not on PATH, nor in WEFT_HTSIM (github.com/ultraethernet/uet-htsim" in done.stderr
    done = run(tmp_path / "missing")
    assert done.returncode == 3
    assert f"WEFT_HTSIM={tmp_path / 'missing'} is no executable" in done.stderr


@pytest.mark.slow
def test_uet_runs_with_the_queues_and_marks_of_the_simulator(tmp_path: Path) -> None:
    done = run(stand_in(tmp_path), "--cases", "single flow", "16-to-1", "--json", script="bench_uet.py")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert [figure["name"].split(",")[0] for figure in figures[::4]] == ["single flow", "incast"]
    ours, theirs, *_ = figures
    assert theirs["value"] == 10 + 20_000 * 8 / 1e5
    assert ours["ratio"] == pytest.approx(max(ours["value"] / theirs["value"], theirs["value"] / ours["value"]))


def test_uet_needs_what_the_simulator_says_of_its_queues() -> None:
    sections, queue = bench_uet.hosts("Tier 0 QueueSize Down 9 bytes\nSetting ECN to parameters low 2 high 7 x\n")
    assert queue == "9B"
    assert sections["ecn"] == {"kmin": "2B", "kmax": "7B", "pmax": 1}
    with pytest.raises(RuntimeError, match="not printed its queues"):
        bench_uet.hosts("")
