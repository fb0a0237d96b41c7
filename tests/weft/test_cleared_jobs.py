"""Jobs with collectives whose messages receivers clear: training steps and traces, results, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import refused
from weft import BadInputError, ClearToSend, Fabric, topologies
from weft.jobs.plain_jobs import collectives_job
from weft.jobs.traces import write_trace
from weft.jobs.traces.errors import TraceError
from weft.results.job_traces import JOB_TRACES
from weft.results.limits import Evidence, limits_of
from weft.results.parameter_servers import PARAMETER_SERVERS
from weft.results.results_file import read_results
from weft.results.run_result import RunResult
from weft.results.training_jobs import TRAINING_JOBS
from weft.results.training_runs import TRAINING_RUNS
from weft.results.training_steps import TRAINING_STEPS
from weft.run.clear_to_send import cleared_job
from weft.run.jobs import PlacedJob
from weft.run.runner import run_scenario
from weft.scenario import TransportSection, parse_scenario
from weft.scenario.sections import FidelitySection
from weft.traffic.jobs import CollectiveCall, Job

HOSTS = {"planes": 2, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}
TIGHT = {"window": 1, "chunk": "4KiB"}
STEP = {
    "model": {"layers": 2, "hidden": 64, "heads": 4, "feed_forward": 256, "sequence": 64, "vocabulary": 512},
    "parallel": {"data": 4},
}


def run(item: dict[str, Any], **more: Any) -> RunResult:
    return run_scenario(
        parse_scenario({"clock": "virtual", "fabric": HOSTS, "traffic": [item], **more}, units_required=True)
    )


def calls_of(sizes: list[int], *, algorithm: str = "") -> Job:
    names = ("allreduce", "alltoall", "reducescatter", "allgather")
    return collectives_job("calls", [CollectiveCall(name, size, algorithm) for size in sizes for name in names], 4)


@pytest.mark.parametrize("settings", [ClearToSend(1, 256), ClearToSend(3, 1000), ClearToSend(8, 128 * 1024)], ids=str)
@pytest.mark.parametrize("protocol", ["rc", "mrc", "uet"])
def test_results_of_a_jobs_collectives_are_right(settings: ClearToSend, protocol: str) -> None:
    """One after the other and several at once, over the same connections."""
    job = cleared_job(calls_of([4096, 20_000, 65_536]), settings)
    fabric = topologies.leaf_spine(**HOSTS)
    transport = TransportSection(protocol=protocol)
    with Fabric(fabric, clock="virtual", transport=transport, int_telemetry=False) as made:
        alone, *together = (
            *made.run_jobs([PlacedJob(job, data="random")]),
            *made.run_jobs([PlacedJob(job, data="random"), PlacedJob(job, (3, 2, 1, 0), data="random")]),
        )
    for ran in (alone, *together):
        assert ran.verdict is not None
        assert (ran.verdict.wrong, ran.verdict.identical) == (0, True)
    assert alone.clear_to_send is not None
    assert alone.clear_to_send.messages > 0
    assert (alone.clear_to_send.window, alone.clear_to_send.chunk_bytes) == (settings.window, settings.chunk)


def test_a_training_step_waits_for_clearances_and_says_so(tmp_path: Path) -> None:
    [plain] = run(STEP).of(TRAINING_JOBS)
    result = run(STEP | {"clear_to_send": TIGHT})
    [found] = result.of(TRAINING_JOBS)
    assert "clear_to_send" not in plain.as_dict()
    assert found.clear_to_send is not None
    assert 0 < found.clear_to_send.held_messages <= found.clear_to_send.messages
    assert 0 < found.clear_to_send.mean_wait_ps < found.step_ps
    assert plain.step_ps < found.step_ps
    file = tmp_path / "results.json"
    file.write_text(json.dumps(result.as_dict()))
    assert read_results(file).of(TRAINING_JOBS) == [found]
    assert json.loads(file.read_text())["training_jobs"][0]["clear_to_send"]["window"] == 1
    evidence = Evidence(result, topologies.leaf_spine(**HOSTS), result.observations.tables)
    assert "window 1" in {each.kind: each for each in limits_of(evidence)}["clearance"].sentence


def written(folder: Path, job: Job) -> Path:
    for file in write_trace(job, folder / "job", "chakra"):
        assert file.exists()
    return folder / "job"


def test_a_trace_waits_for_clearances_and_stays_as_it_is(tmp_path: Path) -> None:
    trace = written(tmp_path, calls_of([65_536]))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    [plain] = run({"trace": str(trace)}).of(JOB_TRACES)
    [found] = run({"trace": str(trace), "clear_to_send": TIGHT}).of(JOB_TRACES)
    assert plain.clear_to_send is None
    assert found.clear_to_send is not None
    assert found.clear_to_send.held_messages > 0
    assert plain.time_ps < found.time_ps
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_clearances_of_a_job_are_sent_again_when_lost() -> None:
    [found] = run(STEP | {"clear_to_send": TIGHT}, faults={"loss": 0.01}).of(TRAINING_JOBS)
    assert found.retransmissions > 0
    assert found.clear_to_send is not None


def test_a_job_with_clearances_is_not_repeated_without_packets() -> None:
    job = cleared_job(collectives_job("calls", [CollectiveCall("allreduce", 65_536)] * 12, 4), ClearToSend(2, 4096))
    with Fabric(topologies.leaf_spine(**HOSTS), clock="virtual", fidelity=FidelitySection(fast_forward=0.02)) as fabric:
        fabric.run_jobs([PlacedJob(job)])
        [counted] = fabric.summary().fast_forward
    assert counted.repeated == 0
    assert any("receivers clear its messages" in reason for reason in counted.reasons)


def test_a_collective_in_the_network_is_not_cleared() -> None:
    job = cleared_job(calls_of([4096], algorithm="in-network"), ClearToSend(2, 4096))
    with (
        Fabric(topologies.leaf_spine(**HOSTS), clock="virtual") as fabric,
        refused(BadInputError, problem="in-network sends aggregation packets"),
    ):
        fabric.run_jobs([PlacedJob(job)])


@pytest.mark.parametrize(
    ("more", "place", "problem"),
    [
        ({"clear_to_send": {"window": 0}}, "traffic[0].clear_to_send.window", "1 to 1024"),
        ({"clear_to_send": {"slots": 8}}, "traffic[0].clear_to_send.slots", "window"),
        (
            {"clear_to_send": {}, "algorithms": {"data": "in-network"}},
            "traffic[0].clear_to_send",
            "aggregation packets",
        ),
    ],
)
def test_what_cannot_be_cleared_is_refused(more: dict[str, Any], place: str, problem: str) -> None:
    with pytest.raises(BadInputError) as caught:
        run(STEP | more)
    assert place in str(caught.value)
    assert problem in str(caught.value)


def goal(folder: Path, sent: str, received: str) -> str:
    file = folder / "x.goal"
    file.write_text(f"num_ranks 2\nrank 0 {{\n{sent}\n}}\nrank 1 {{\n{received}\n}}\n")
    return str(file)


def test_a_trace_without_messages_has_nothing_to_clear(tmp_path: Path) -> None:
    trace = goal(tmp_path, "l1: calc 100", "l1: calc 100")
    with refused(
        BadInputError,
        place="scenario: traffic[0].clear_to_send",
        valid="leave it out",
        problem="the trace has no messages to clear",
    ):
        run({"trace": trace, "clear_to_send": {}})


@pytest.mark.parametrize("sizes", [[100], [0], [100_000], [50_000, 1, 70_000, 4096, 0]], ids=str)
@pytest.mark.parametrize("protocol", ["rc", "mrc", "uet"])
def test_messages_of_a_trace_are_cleared_chunk_by_chunk(protocol: str, sizes: list[int], tmp_path: Path) -> None:
    sends = "\n".join(f"l{number}: send {size}b to 1 tag {number}" for number, size in enumerate(sizes, 1))
    receives = "\n".join(f"l{number}: recv {size}b from 0 tag {number}" for number, size in enumerate(sizes, 1))
    trace = goal(tmp_path, sends, receives)
    planes = {"fabric": HOSTS | {"planes": 1}, "int": False, "transport": {"protocol": protocol}}
    [plain] = run({"trace": trace}, **planes).of(JOB_TRACES)
    [found] = run({"trace": trace, "clear_to_send": TIGHT}, **planes).of(JOB_TRACES)
    assert plain.clear_to_send is None
    assert found.clear_to_send is not None
    # A message of nothing is cleared, too.
    assert found.clear_to_send.messages == sum(max(1, -(-size // 4096)) for size in sizes)
    assert found.clear_to_send.held_messages > 0
    assert found.time_ps > plain.time_ps


GRADIENTS = {"gradients": "64KiB", "forward": "1us", "backward": "2us", "count": 3}
DATA_PARALLEL = {"training_step": "data-parallel", "layers": [GRADIENTS], "bucket": "64KiB"}


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "hierarchical"])
@pytest.mark.parametrize("data", ["random", "lengths"])
def test_buckets_of_a_training_step_wait_for_clearances(data: str, algorithm: str) -> None:
    item = DATA_PARALLEL | {"algorithms": [algorithm], "data": data}
    hosts = {"fabric": HOSTS | ({"ranks_per_host": 2} if algorithm == "hierarchical" else {})}
    [plain] = run(item, **hosts).of(TRAINING_STEPS)
    result = run(item | {"clear_to_send": TIGHT}, **hosts)
    [found] = result.of(TRAINING_STEPS)
    assert "clear_to_send" not in plain.as_dict()
    assert found.ok
    assert found.verified == (data == "random")
    assert found.clear_to_send is not None
    assert 0 < found.clear_to_send.held_messages <= found.clear_to_send.messages
    assert found.step_ps > plain.step_ps
    evidence = Evidence(result, topologies.leaf_spine(**HOSTS), result.observations.tables)
    assert "window 1" in {each.kind: each for each in limits_of(evidence)}["clearance"].sentence


def test_clearances_of_a_training_step_are_sent_again_when_lost() -> None:
    item = DATA_PARALLEL | {"algorithms": ["ring"], "clear_to_send": TIGHT}
    [found] = run(item, faults={"loss": 0.01}).of(TRAINING_STEPS)
    assert found.retransmissions > 0
    assert found.ok


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({}, "with clear_to_send there must be one or more"),
        ({"algorithms": ["auto"]}, "auto measures algorithms without it"),
        ({"algorithms": ["ring", "in-network"]}, "in-network sends aggregation packets"),
    ],
)
def test_a_training_step_that_cannot_be_cleared_is_refused(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInputError) as caught:
        run(DATA_PARALLEL | {"clear_to_send": {}} | more)
    assert problem in str(caught.value)


def test_a_training_run_waits_for_clearances_and_learns_the_same() -> None:
    item = {"training_run": "digits", "mlp": {"hidden": 8, "batch": 8}, "steps": 3, "algorithms": ["ring"]}
    [plain] = run(item).of(TRAINING_RUNS)
    [found] = run(item | {"clear_to_send": TIGHT}).of(TRAINING_RUNS)
    assert "clear_to_send" not in plain.as_dict()
    assert found.clear_to_send is not None
    assert 0 < found.clear_to_send.held_messages <= found.clear_to_send.messages
    assert 0 < found.clear_to_send.waiting_share < 1
    assert found.losses == plain.losses
    assert found.mean_step_ps > plain.mean_step_ps
    with pytest.raises(BadInputError, match="with clear_to_send there must be one or more"):
        run({**item, "algorithms": None, "clear_to_send": TIGHT})


SERVERS = {"parameter_server": 1, "workers": 3, "parameters": "256KiB", "compute": "5us", "steps": 3}


@pytest.mark.parametrize("mode", ["synchronous", "asynchronous", "all-reduce"])
def test_gradients_and_weights_wait_for_clearances(mode: str, tmp_path: Path) -> None:
    item = SERVERS | {"mode": mode}
    [plain] = run(item).of(PARAMETER_SERVERS)
    result = run(item | {"clear_to_send": TIGHT})
    [found] = result.of(PARAMETER_SERVERS)
    assert "clear_to_send" not in plain.as_dict()
    assert found.clear_to_send is not None
    assert found.clear_to_send.held_messages > 0
    assert found.time_ps > plain.time_ps
    if mode != "all-reduce":
        # Each worker sends as much as it receives in each step, over two planes.
        assert found.clear_to_send.messages == 2 * 3 * 3 * (256 // 4)
    file = tmp_path / "results.json"
    file.write_text(json.dumps(result.as_dict()))
    [read] = read_results(file).of(PARAMETER_SERVERS)
    assert read.clear_to_send == found.clear_to_send


def test_clearances_keep_the_queue_at_a_server_short() -> None:
    """All workers push to one server at once; with a window of a packet a worker, it queues less."""
    fabric = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 9, "host_rate": "100Gb/s"}
    item = SERVERS | {"workers": 8, "steps": 1}
    transport = {"congestion_control": "fixed-window"}
    depths = []
    for more in ({}, {"clear_to_send": TIGHT}):
        result = run(item | more, fabric=fabric, transport=transport)
        depths.append(result.planes[0].largest_queue_bytes)
    assert depths[1] < depths[0] / 4


def test_clearances_of_a_server_are_sent_again_when_lost() -> None:
    [found] = run(SERVERS | {"clear_to_send": TIGHT}, faults={"loss": 0.01}).of(PARAMETER_SERVERS)
    assert found.retransmissions > 0
    assert found.clear_to_send is not None


def test_cleared_messages_go_on_when_a_plane_is_lost_and_comes_back() -> None:
    events = [{"at": "50us", "plane": 1, "state": "down"}, {"at": "400us", "plane": 1, "state": "up"}]
    item = SERVERS | {"parameters": "4MiB", "clear_to_send": {"window": 2, "chunk": "16KiB"}}
    result = run(item, fabric=HOSTS | {"planes": 3, "host_rate": "100Gb/s"}, events=events)
    [found] = result.of(PARAMETER_SERVERS)
    assert {each.state for each in result.link_events} == {"down", "up"}
    assert found.clear_to_send is not None
    assert found.clear_to_send.held_messages > 0


def test_a_job_of_servers_with_clearances_is_not_repeated_without_packets() -> None:
    result = run(SERVERS | {"steps": 20, "clear_to_send": TIGHT}, fidelity={"fast_forward": 0.02})
    [counted] = result.fast_forward
    assert counted.repeated == 0
    assert any("receivers clear its messages" in reason for reason in counted.reasons)


def test_an_item_with_clearances_is_not_written_as_a_trace() -> None:
    scenario = parse_scenario(
        {"clock": "virtual", "fabric": HOSTS, "traffic": [STEP | {"clear_to_send": {}}]}, units_required=True
    )
    with refused(
        BadInputError, place="model", valid="an item without it", problem="clear_to_send has no place in a trace"
    ):
        scenario.traffic[0].as_job(topologies.leaf_spine(**HOSTS), 1)  # type: ignore[attr-defined]


def test_a_job_says_nothing_of_clearances_to_a_file(tmp_path: Path) -> None:
    job = cleared_job(calls_of([4096]), ClearToSend(1, 256))
    with refused(TraceError, valid="a job without it", problem="call 0: Chakra has no clear_to_send"):
        write_trace(job, tmp_path / "job", "chakra")


@pytest.mark.parametrize("item", [DATA_PARALLEL | {"algorithms": ["ring"]}, SERVERS], ids=["training_step", "servers"])
def test_more_items_with_clearances_are_not_written_as_traces(item: dict[str, Any]) -> None:
    tree = {"clock": "virtual", "fabric": HOSTS, "traffic": [item | {"clear_to_send": {}}]}
    scenario = parse_scenario(tree, units_required=True)
    with pytest.raises(BadInputError, match="clear_to_send has no place in a trace"):
        scenario.traffic[0].as_job(topologies.leaf_spine(**HOSTS), 1)  # type: ignore[attr-defined]


def test_ranks_of_one_host_are_not_cleared() -> None:
    fabric = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2, "ranks_per_host": 4}
    [found] = run(STEP | {"clear_to_send": TIGHT}, fabric=fabric).of(TRAINING_JOBS)
    assert found.clear_to_send is not None
    assert (found.clear_to_send.messages, found.clear_to_send.waiting_share) == (0, 0.0)
