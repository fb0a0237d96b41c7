"""Jobs from traces on a fabric: those that were written and read back, and those that scenarios name."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.jobs.traces.random_jobs import random_job
from tests.refusals import refused
from weft import Fabric, topologies
from weft.errors import BadInputError
from weft.jobs.traces import read_trace, write_trace
from weft.paths import ROOT
from weft.results.flows import FLOWS
from weft.results.job_traces import JOB_TRACES
from weft.run.runner import run_scenario
from weft.run.traffic_kinds.trace import TraceTraffic
from weft.scenario import load_scenario, parse_scenario
from weft.scenario.observe import ObserveSection
from weft.traffic.jobs import CollectiveCall

FABRIC = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}
RING = ROOT / "examples" / "traces" / "ring.goal"
CALLS = (
    CollectiveCall("allreduce", 4096),
    CollectiveCall("allgather", 960),
    CollectiveCall("broadcast", 64, root=1),
)


def test_a_job_that_is_written_as_chakra_and_read_runs_the_same(tmp_path):
    topology = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=3)
    with Fabric(topology, clock="virtual", seed=5) as fabric:
        for seed in range(12):
            job = replace(random_job(seed, CALLS), traffic_classes={})
            write_trace(job, tmp_path / f"job{seed}", "chakra")
            again = read_trace(tmp_path / f"job{seed}").job
            ours, theirs = fabric.run_job(job), fabric.run_job(again)
            assert ours.duration_ps == theirs.duration_ps
            for one, two in zip(ours.times, theirs.times, strict=True):
                assert np.array_equal(one.started_ps, two.started_ps)
                assert np.array_equal(one.finished_ps, two.finished_ps)


def files_of_run(job, directory):
    """Run a job as a trace is run; returns the files of the run by name but for times of this machine."""
    topology = topologies.leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=3)
    observe = ObserveSection(flows=True, timelines=True, queues="all")
    with Fabric(topology, clock="virtual", seed=5, observe=observe) as fabric:
        fabric.run_together([job_task(fabric, job)])
        fabric.summary().save(directory)
    files = {path.name: path.read_bytes() for path in directory.iterdir()}
    del files["wall_times.json"]
    return files


def job_task(fabric, job):
    item = TraceTraffic(trace=Path("job"))
    item.__dict__["_job"] = job  # in place of reading it
    return item._task(fabric)


@pytest.mark.parametrize("seed", [3, 8])
def test_a_job_that_is_written_as_chakra_and_read_has_the_same_results_byte_for_byte(tmp_path, seed):
    job = replace(random_job(seed, CALLS), traffic_classes={})
    write_trace(job, tmp_path / "job", "chakra")
    again = read_trace(tmp_path / "job").job
    ours, theirs = files_of_run(job, tmp_path / "ours"), files_of_run(again, tmp_path / "theirs")
    assert {"results.json", "trace-0-operations.csv", "flows.csv", "queues.csv"} <= ours.keys()
    assert ours == theirs
    (tmp_path / "second").mkdir()
    for file in write_trace(again, tmp_path / "second" / "job", "chakra"):
        assert file.read_bytes() == (tmp_path / file.name).read_bytes()


def test_the_example_runs():
    result = run_scenario(load_scenario(RING.with_suffix(".yaml")))
    alone, beside = result.of(JOB_TRACES)
    assert alone.time_ps < beside.time_ps
    assert result.of(FLOWS)[0].flows == 2


def test_a_scenario_names_a_trace(tmp_path):
    (tmp_path / "x.goal").write_text(RING.read_text())
    scenario = {
        "clock": "virtual",
        "fabric": FABRIC,
        "traffic": [
            {"trace": "x.goal"},
            {"trace": "x.goal", "ranks": [3, 0, 1], "send_overhead": "1us"},
            {"together": [{"trace": "x.goal"}, {"trace": "x.goal", "ranks": [3, 2, 1], "at": "5us"}]},
        ],
    }
    (tmp_path / "s.yaml").write_text(json.dumps(scenario))
    result = run_scenario(load_scenario(tmp_path / "s.yaml"))
    first, second, beside, other = result.of(JOB_TRACES)
    assert (first.name, first.operations, first.sent_bytes) == ("x", 30, 12_000_000)
    assert first.compute_ps == [40_000_000] * 3
    # A processor has four messages to send and four to receive.
    assert second.compute_ps == [48_000_000] * 3
    assert beside.time_ps > first.time_ps
    assert other.time_ps > first.time_ps
    for each in (first, second, beside, other):
        assert {sum(parts) for parts in zip(*each.parts_ps.values(), strict=True)} == {each.time_ps}


@pytest.mark.parametrize(
    ("item", "key", "said"),
    [
        ({"trace": "missing"}, "trace", "there is no such file"),
        ({"trace": str(RING), "format": "chakra"}, "trace", "no files ring.goal.RANK.et"),
        ({"trace": str(RING), "format": "flow_csv"}, "format", "no format 'flow_csv' of jobs; did you mean"),
        ({"trace": str(RING), "ranks": [0, 1]}, "ranks", "2 ranks, 2 distinct, for a job of 3 (valid: 3)"),
        ({"trace": str(RING), "ranks": [0, 1, 1]}, "ranks", "3 ranks, 2 distinct, for a job of 3 (valid: 3)"),
        ({"trace": str(RING), "ranks": [0, 1, 4]}, "ranks", "rank 4 (valid: 0 to 3)"),
        ({"trace": str(ROOT / "examples/traces/flows.csv")}, "trace", "has flows (valid: a job; flow_list runs flows)"),
        ({"trace": str(RING), "accelerator": "A100", "precision": "fp8"}, "precision", "fp8 (valid for this acc"),
        ({"trace": str(RING), "accelerator": "B"}, "accelerator", "no accelerator 'B'"),
    ],
)  # fmt: skip
def test_traces_that_a_fabric_cannot_run_are_refused(item, key, said):
    with pytest.raises(BadInputError) as error:
        parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": [item]})
    assert f"traffic[0].{key}" in str(error.value)
    assert said in str(error.value)


def test_a_trace_of_more_ranks_than_the_fabric_is_refused():
    fabric = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2}
    with refused(BadInputError, place="scenario: traffic[0].trace", problem="3 ranks (valid on this fabric"):
        parse_scenario({"clock": "virtual", "fabric": fabric, "traffic": [{"trace": str(RING)}]})
