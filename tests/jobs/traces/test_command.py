"""`weft job-trace`, and flows that a scenario names by file."""

import json

import pytest
from click.testing import CliRunner

from tests.jobs.traces.random_jobs import differences, random_job
from weft.cli import weft
from weft.errors import BadInputError
from weft.jobs.traces import read_trace, write_trace
from weft.results.collectives import COLLECTIVES
from weft.results.flows import FLOWS
from weft.results.job_traces import JOB_TRACES
from weft.results.parameter_servers import PARAMETER_SERVERS
from weft.results.training_jobs import TRAINING_JOBS
from weft.results.training_steps import TRAINING_STEPS
from weft.run.runner import run_scenario
from weft.scenario import load_scenario, parse_scenario

FABRIC = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}
FLOWS_TEXT = "source,destination,size,start\n0,3,20000,0ns\n1,3,30000,2us\n"
GOAL = "num_ranks 2\nrank 0 {\na: calc 100\nb: send 1048576b to 1\nb requires a\n}\nrank 1 {\nrecv 1048576b from 0\n}\n"


def invoke(*arguments):
    return CliRunner().invoke(weft, ["job-trace", *map(str, arguments)], standalone_mode=False)


def test_show_says_what_a_trace_holds(tmp_path):
    (tmp_path / "x.goal").write_text(GOAL)
    assert invoke("show", tmp_path / "x.goal").output == (
        "2 ranks, 2 distinct programs, 0 groups\n"
        "operations: 1 compute, 1 send, 1 receive\n"
        "messages: 1 MiB; a rank computes for up to 100 ns\n"
    )
    held = json.loads(invoke("show", tmp_path / "x.goal", "--json", "--send-overhead", "1us").output)
    assert (held["operations"], held["most_computed_ps"]) == (
        {"compute": 3, "send": 1, "receive": 1},
        1_100_000,
    )


def test_show_says_what_flows_there_are(tmp_path):
    (tmp_path / "x.csv").write_text(FLOWS_TEXT)
    assert invoke("show", tmp_path / "x.csv").output == (
        "2 flows of 48.83 KiB in all, between 3 hosts (up to 3); the last starts at 2 µs\n"
    )


def test_convert_goes_there_and_back(tmp_path):
    job = random_job(7, ())
    write_trace(job, tmp_path / "job", "chakra")
    result = invoke("convert", tmp_path / "job", tmp_path / "again")
    assert result.output == (f"wrote {tmp_path}/again.0.et and {len(job.parts)} more\n")
    assert differences(job, read_trace(tmp_path / "again").job) == []
    assert invoke("convert", tmp_path / "again", tmp_path / "x.goal").output == f"wrote {tmp_path}/x.goal\n"
    assert len(read_trace(tmp_path / "x.goal").job.parts) == len(job.parts)


STEP = {
    "training_step": "data-parallel",
    "algorithms": ["ring"],
    "layers": [{"gradients": "256KiB", "forward": "10us", "backward": "20us", "count": 3}],
    "bucket": "300KiB",
    "optimizer": "5us",
    "data": "lengths",
}


MODEL = {
    "model": {
        "layers": 2, "hidden": 256, "heads": 4, "kv_heads": 4, "feed_forward": 512, "vocabulary": 1000, "sequence": 128,
    },
    "parallel": {"tensor": 2, "pipeline": 2},
    "micro_batches": 2,
}  # fmt: skip


PARAMETER_SERVER = {
    "parameter_server": 1,
    "workers": 3,
    "parameters": "64KiB",
    "mode": "asynchronous",
    "staleness": 1,
    "steps": 4,
    "compute": "5us",
    "jitter": 0.3,
}


@pytest.mark.parametrize(
    ("item", "kind", "time"),
    [
        (
            {"collective": "allreduce", "algorithms": ["ring"], "sizes": [262144], "data": "lengths"},
            COLLECTIVES,
            "time_ps",
        ),
        (STEP, TRAINING_STEPS, "step_ps"),
        (MODEL, TRAINING_JOBS, "step_ps"),
        (PARAMETER_SERVER, PARAMETER_SERVERS, "time_ps"),
    ],
)
def test_an_item_that_is_exported_takes_as_long_as_a_trace(tmp_path, item, kind, time):
    tree = {"clock": "virtual", "fabric": FABRIC, "traffic": [{"incast": "h0"}, item]}
    (tmp_path / "s.yaml").write_text(json.dumps(tree))
    assert "wrote" in invoke("export", tmp_path / "s.yaml", tmp_path / "job", "--item", 1).output
    tree["traffic"] = [item, {"trace": str(tmp_path / "job")}]
    result = run_scenario(parse_scenario(tree))
    (own,), (trace,) = result.of(kind), result.of(JOB_TRACES)
    assert trace.time_ps == getattr(own, time)


def test_what_is_no_job_is_not_exported(tmp_path):
    (tmp_path / "s.yaml").write_text(json.dumps({"clock": "virtual", "fabric": FABRIC, "traffic": [{"incast": "h0"}]}))
    for item, said in ((0, "traffic[0] is of kind incast, which is no job"), (1, "has 1 (valid: 0 to 0)")):
        result = invoke("export", tmp_path / "s.yaml", tmp_path / "job", "--item", item)
        assert isinstance(result.exception, BadInputError)
        assert said in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "{}/x.csv", "--format", "goal"), "is not a GOAL statement"),
        (("show", "{}/x.csv", "--accelerator", "H10"), "no accelerator 'H10'; did you mean 'H100'?"),
        (("show", "{}/x.csv", "--accelerator", "A100", "--precision", "fp8"), "precision 'fp8' (valid for this acc"),
        (("show", "{}/x.csv", "--precision", "bf99"), "--precision bf99: means nothing without --accelerator"),
        (("show", "{}/x.csv", "--eager", "0"), "eager: means nothing for a CSV list of flows (valid: none)"),
        (("show", "{}/x.csv", "--accelerator", "A100"), "accelerator: means nothing for a CSV list of flows"),
        (("show", "{}/x.goal", "--groups", "{}/g"), "groups: means nothing for GOAL (valid: eager, send overhead)"),
        (("show", "{}/x.goal", "--accelerator", "A100"), "accelerator: means nothing for GOAL"),
        (("show", "{}/x.csv", "--send-overhead", "1"), "'1' is not a time"),
        (("convert", "{}/x.csv", "{}/y"), "flows cannot be converted (valid: a trace of a job)"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path, arguments, said):
    (tmp_path / "x.csv").write_text(FLOWS_TEXT)
    (tmp_path / "x.goal").write_text(GOAL)
    result = invoke(*(each.format(tmp_path) for each in arguments))
    assert said in str(result.exception)


def test_a_scenario_names_flows_relative_to_its_file(tmp_path):
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "x.csv").write_text(FLOWS_TEXT)
    scenario = {
        "clock": "virtual",
        "fabric": FABRIC,
        "traffic": [{"flow_list": "flows/x.csv"}, {"together": [{"flow_list": "flows/x.csv", "at": "1us"}]}],
    }
    (tmp_path / "s.yaml").write_text(json.dumps(scenario))
    alone, beside = run_scenario(load_scenario(tmp_path / "s.yaml")).of(FLOWS)
    assert (alone.pattern, alone.flows, alone.bytes_delivered) == ("x", 2, 50_000)
    assert [alone.records[key].tolist() for key in ("source", "destination", "start_ps")] == [
        [0, 1],
        [3, 3],
        [0, 2_000_000],
    ]
    assert alone.time_ps == beside.time_ps


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "x.csv: there is no such file"),
        ("source,destination,size\n", "x.csv has no flows"),
        (GOAL, "x.csv: no trace, or one of an unknown format"),
        ("source,destination,size\n0,4,1", "flow 1 is of host 4 (valid: 0 to 3)"),
        ("source,destination,size,plane\n0,1,1,1", "flow 1 is on plane 1 (valid: 0 to 0)"),
        ("source,destination,size\n0,0,1", "line 2: host 0 sends to itself"),
    ],
)
def test_flows_that_a_fabric_cannot_have_are_refused(tmp_path, text, said):
    if text is not None:
        (tmp_path / "x.csv").write_text(text)
    tree = {"clock": "virtual", "fabric": FABRIC, "traffic": [{"flow_list": str(tmp_path / "x.csv")}]}
    with pytest.raises(BadInputError, match=r"traffic\[0\]\.flow_list") as error:
        parse_scenario(tree)
    assert said in str(error.value)
