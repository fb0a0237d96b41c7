"""Traces of PyTorch's profiler."""

import gzip
import json
import os
from pathlib import Path

import pytest

from weft import Fabric, topologies
from weft.jobs.traces import TraceError, assembling, read_trace
from weft.jobs.traces.calls import json_files
from weft.paths import ROOT
from weft.traffic.jobs import CollectiveCall, Kind

EXAMPLE = ROOT / "examples" / "traces" / "kineto"
PARAM = os.environ.get("WEFT_PARAM", "")
ANALYSIS = os.environ.get("WEFT_HOLISTIC_TRACE_ANALYSIS", "")


def event(name: str = "allreduce", ts: float = 100, dur: float = 10, category: str = "kernel", **changes):
    arguments = {
        "stream": 20,
        "Collective name": name,
        "In msg nelems": 8,
        "Out msg nelems": 8,
        "Group size": 2,
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Ranks": "[0, 1]",
        **{key.replace("_", " "): value for key, value in changes.items()},
    }
    title = "record_param_comms" if category == "cpu_op" else "ncclDevKernel"
    return {"ph": "X", "cat": category, "name": title, "ts": ts, "dur": dur, "args": arguments}


@pytest.fixture
def read(tmp_path):
    def of(*ranks, packed: bool = False, **info):
        for rank, events in enumerate(ranks):
            trace = {
                "schemaVersion": 1,
                "distributedInfo": {"rank": rank, "world_size": 2, **info},
                "traceEvents": events,
            }
            data = json.dumps(trace).encode()
            (tmp_path / f"trace{rank}.json").write_bytes(gzip.compress(data) if packed else data)
        return read_trace(tmp_path if len(ranks) > 1 else tmp_path / "trace0.json")

    return of


@pytest.mark.parametrize("packed", [False, True])
def test_the_time_between_communications_is_computed(read, packed):
    events = [
        event("broadcast", 150, 10.5),
        event(ts=100),
        event("_allgather_base", 105, 100, stream=24, Out_msg_nelems=16),
    ]
    trace = read(events, events, packed=packed)
    operations = trace.job.parts[0].operations
    # The all-gather begins while the all-reduce runs; the broadcast 40 µs after the all-reduce has ended.
    assert operations.kind.tolist() == [Kind.COLLECTIVE, Kind.COLLECTIVE, Kind.COMPUTE, Kind.COLLECTIVE]
    assert operations.duration_ps.tolist() == [0, 0, 40_000_000, 0]
    assert [operations.predecessors(each).tolist() for each in range(4)] == [[], [], [0], [0, 2]]
    assert trace.job.calls == (
        CollectiveCall("allreduce", 32),
        CollectiveCall("allgather", 64),
        CollectiveCall("broadcast", 32),
    )


def test_without_kernels_calls_start_when_they_were_issued(read):
    first = [event(ts=100, category="cpu_op"), event("wait", 101, category="cpu_op"), event(ts=300, category="cpu_op")]
    second = [event(ts=150, category="cpu_op"), event(ts=350, category="cpu_op")]
    trace = read(first, second)
    timers = [part.operations.duration_ps[part.operations.of_kind(Kind.TIMER)].tolist() for part in trace.job.parts]
    assert timers == [[200_000_000], [50_000_000, 250_000_000]]


def test_messages_name_ranks_of_the_job_or_places_in_the_group(read):
    ranks = {"Process_Group_Ranks": "[1, 0]"}
    for ends in ({"Dst_Rank": 1}, {"Rank": 0}):
        trace = read([event("send", **ranks, **ends)], [event("recv", Src_Rank=0, **ranks)])
        assert [part.peers for part in trace.job.parts] == [(1,), (0,)]
    assert read([event("broadcast", Rank=1)]).job.calls[0].root == 1


def test_all_to_alls_with_shares_are_messages(read):
    first = event("all_to_allv", In_split_size="[1, 3]", Out_split_size="[1, 1]", Out_msg_nelems=4)
    second = event("all_to_allv", In_split_size="[1, 0]", Out_split_size="[3, 0]", In_msg_nelems=2, Out_msg_nelems=6)
    trace = read([first], [second])
    assert [part.operations.size_bytes.tolist() for part in trace.job.parts] == [[24, 8], [8, 24]]


def test_groups_that_are_cut_off_are_found_elsewhere(read):
    cut = event(Process_Group_Ranks="[0, ...]")
    config = [{"pg_name": "0", "ranks": [1, 0]}]
    assert read([cut], pg_config=config).job.groups[0].ranks == (1, 0)
    strided = event(Process_Group_Ranks="[0, ...]", Global_rank_start=0, Global_rank_stride=3)
    assert read([strided]).job.groups[0].ranks == (0, 3)
    assert read([cut]).job.groups[0].ranks == (0, 1)
    with pytest.raises(TraceError, match="event 0: the ranks of process group '0' are not known"):
        read([cut], world_size=4)


def test_the_example_runs():
    with Fabric(topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2), clock="virtual") as fabric:
        ran = fabric.run_job(read_trace(EXAMPLE).job)
    # 155 µs after the first all-gather, 290 µs after the all-reduce.
    assert ran.duration_ps > 290_000_000


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "sort"}, "event 0: operation 'sort' (valid: allgather, "),
        ({"dtype": "Quarter"}, "event 0: type 'Quarter' (valid: "),
        ({"In_msg_nelems": 1 << 60}, f"event 0: In msg nelems is {1 << 60} (valid: 0 to "),
        ({"In_msg_nelems": "9" * 5000}, "In msg nelems is '999"),
        ({"Process_Group_Ranks": "[1, 2]"}, "event 0: rank 0 is not in process group '0'"),
        ({"Process_Group_Ranks": "[0, 99999]"}, "Process Group Ranks is 99999 (valid: 0 to 65535)"),
        ({"Process_Group_Ranks": "[0, 0]"}, "group '0' of ranks [0, 0]"),
        ({"ts": -1}, "event 0: ts is -1 (valid: 0 to 1e+17)"),
        ({"ts": "now"}, "event 0: ts is 'now' (valid: 0 to 1e+17)"),
        ({"stream": []}, "event 0: stream is [] (valid: 0 to "),
        ({"name": "send"}, "event 0: Rank is missing"),
        ({"name": "send", "Dst_Rank": 2}, "event 0: Dst Rank is 2 (valid: one of [0, 1])"),
        ({"name": "send", "Dst_Rank": 0}, "event 0: rank 0 exchanges a message with itself"),
        ({"name": "all_to_allv", "In_split_size": "[3, 0]"}, "event 0: 8 elements in 3 rows (valid: a multiple of"),
        ({"name": "all_to_allv", "In_split_size": "[8]"}, "event 0: 1 shares of a group of 2 (valid: 2)"),
        ({"name": "broadcast", "Rank": 7}, "event 0: rank 7 of a group of 2 (valid: 0 to 1)"),
    ],
)  # fmt: skip
def test_events_that_cannot_be_are_named(read, changes, said):
    with pytest.raises(TraceError) as error:
        read([event(**changes)])
    assert said in str(error.value)


def test_ranks_that_recorded_other_calls_are_refused_by_event(read):
    with pytest.raises(
        TraceError, match=r"trace1\.json: event 1: allreduce of 9 float32, where .*trace0\.json: event 1"
    ):
        read([event(), event(ts=200)], [event(), event(ts=200, In_msg_nelems=9)])


def test_compressed_files_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(json_files, "MAX_JSON_BYTES", 1000)
    (tmp_path / "0.json").write_bytes(gzip.compress(b'{"traceEvents": "' + b"x" * 2000))
    with pytest.raises(TraceError, match="has too much data when unpacked"):
        read_trace(tmp_path / "0.json", "kineto")
    (tmp_path / "0.json").write_bytes(gzip.compress(b'{"traceEvents": []}')[:-9])
    with pytest.raises(TraceError, match="is cut off"):
        read_trace(tmp_path / "0.json", "kineto")


@pytest.mark.skipif(not PARAM, reason="WEFT_PARAM names no clone of facebookresearch/param with its inputs unpacked")
def test_the_dlrm_traces_of_param_are_read():
    job = read_trace(Path(PARAM) / "et_replay" / "tests" / "inputs" / "dlrm_kineto", "kineto").job
    assert len(job.parts) == 8
    assert [len(part.operations.of_kind(Kind.COLLECTIVE)) for part in job.parts] == [8] * 8


@pytest.mark.skipif(not ANALYSIS, reason="WEFT_HOLISTIC_TRACE_ANALYSIS names no clone of HolisticTraceAnalysis")
def test_the_kernels_of_a_public_trace_are_read():
    trace = read_trace(Path(ANALYSIS) / "tests" / "data" / "nccl_parser_config" / "nccl_data.json.gz")
    assert len(trace.job.parts[0].operations.of_kind(Kind.COLLECTIVE)) == 21


def test_many_large_groups_are_refused_before_memory_is_full(read, monkeypatch):
    """Each event names another group of many ranks in a few bytes."""
    monkeypatch.setattr(assembling, "MAX_TRACE_OPERATIONS", 1_000_000)
    groups = [
        event("gather", Process_Group_Ranks="...", Global_rank_start=0, Global_rank_stride=1, Group_size=size)
        for size in range(60_000, 60_010)
    ]
    with pytest.raises(TraceError, match="operations up to here"):
        read(groups)
