"""NCCL's own logs."""

import os
from pathlib import Path

import pytest

from weft import Fabric, topologies
from weft.jobs.traces import TraceError, read_trace
from weft.paths import ROOT
from weft.traffic.jobs import CollectiveCall, Kind

EXAMPLE = ROOT / "examples" / "traces" / "nccl.log"
PUBLIC = os.environ.get("WEFT_NCCL_LOG", "")


def init(process: int, rank: int, ranks: int, pointer: str = "0x1", identity: str = " commId 0xa") -> str:
    return (
        f"host:{process}:{process} [0] NCCL INFO ncclCommInitRank comm {pointer} rank {rank} nranks {ranks} cudaDev 0 "
        f"busId 1{identity} - Init COMPLETE\n"
    )


def call(process: int, what: str, count: int = 8, pointer: str = "0x1", ranks: int = 2, root: int = 0, number=0) -> str:
    return (
        f"host:{process}:{process} [0] NCCL INFO {what}: opCount {number:x} sendbuff 0x2 recvbuff 0x3 count {count} "
        f"datatype 7 op 0 root {root} comm {pointer} [nranks={ranks}] stream 0x9\n"
    )


PAIR = init(5, 0, 2) + init(6, 1, 2)


@pytest.fixture
def read(tmp_path):
    def of(*texts: str, name: str = ""):
        for number, text in enumerate(texts):
            (tmp_path / f"log{number}.txt").write_text(text)
        return read_trace(tmp_path if len(texts) > 1 else tmp_path / "log0.txt", name)

    return of


def test_calls_join_by_communicator_over_files(read):
    first = init(5, 0, 2) + call(5, "AllReduce") + call(5, "AllGather", number=1)
    second = (
        init(6, 1, 2, "0x77") + call(6, "AllReduce", pointer="0x77") + call(6, "AllGather", pointer="0x77", number=1)
    )
    trace = read(first, second)
    assert trace.job.calls == (CollectiveCall("allreduce", 32), CollectiveCall("allgather", 64))
    assert [group.ranks for group in trace.job.groups] == [(0, 1)]
    assert "without computation in between" in trace.notes[0]
    assert trace.locate(1, 1).endswith("log1.txt, line 3")
    operations = trace.job.parts[1].operations
    assert operations.predecessors(1).tolist() == [0]


def test_calls_of_one_count_start_together_and_copies_to_itself_are_left_out(read):
    text = PAIR + "".join(
        call(process, what, root=peer)
        for process, rank in ((5, 0), (6, 1))
        for peer in (0, 1)
        for what in ("Send", "Recv")
        if peer != rank or what == "Send"
    )
    operations = read(text).job.parts[0].operations
    assert operations.kind.tolist() == [Kind.SEND, Kind.RECEIVE]
    assert operations.predecessors(1).tolist() == []


def test_ranks_without_a_log_take_part(read):
    text = (
        init(5, 1, 4, identity=" commId 0xb")
        + call(5, "AllReduce", ranks=4)
        + call(5, "Send", ranks=4, root=3, number=1)
    )
    trace = read(text)
    kinds = [part.operations.kind.tolist() for part in trace.job.parts]
    assert kinds == [
        [Kind.COLLECTIVE],
        [Kind.COLLECTIVE, Kind.SEND],
        [Kind.COLLECTIVE],
        [Kind.COLLECTIVE, Kind.RECEIVE],
    ]
    assert "3 ranks without a record (0, 2, 3)" in trace.notes[1]


def test_logs_without_identities_are_joined_by_order(read):
    text = (
        init(5, 0, 2, identity="")
        + init(6, 1, 2, identity="")
        + call(5, "Broadcast", root=1)
        + call(6, "Broadcast", root=1)
    )
    assert read(text).job.calls == (CollectiveCall("broadcast", 32, root=1),)


def test_the_example_runs_and_starts_at_the_logged_times():
    trace = read_trace(EXAMPLE)
    assert [group.ranks for group in trace.job.groups] == [(0, 1, 2, 3), (0, 1), (2, 3)]
    with Fabric(topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2), clock="virtual") as fabric:
        ran = fabric.run_job(trace.job)
    # The last call is logged two seconds after the first one, and takes far less than a second.
    assert 2 * 10**12 < ran.duration_ps < 3 * 10**12


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PAIR, "log0.txt: no calls (valid: lines that NCCL_DEBUG_SUBSYS=INIT,COLL logs)"),
        (call(5, "AllReduce"), "line 1: communicator 0x1 of process 5 of host is not known (valid: after its line"),
        (PAIR + call(5, "AllReduce", ranks=3), "line 3: nranks=3 (valid: 2, as its communicator)"),
        (PAIR + call(5, "AllToAllv"), "line 3: 'AllToAllv' (valid: allreduce, "),
        (PAIR + call(5, "Reduce", root=2), "line 3: '2' (valid: 0 to 1)"),
        (PAIR + call(5, "AllReduce", 1 << 47), f"line 3: '{1 << 47}' (valid: 0 to {1 << 46})"),
        (PAIR + call(5, "AllReduce") + call(6, "AllReduce", 9), "line 4: allreduce of 9 float32, where "),
        (PAIR + call(5, "AllReduce")[:-30] + "\n", "line 3: unknown form of a call: 'AllReduce: opCount 0 "),
        (PAIR + init(7, 1, 2), "line 3: rank 1 of communicator 0xa of 2 ranks is process 7 of host, and was process 6"),
        (init(5, 2, 2), "line 1: rank 2 of 2 (valid: a rank of up to 65536)"),
        (
            PAIR + init(5, 1, 3, "0x2", " commId 0xc") + call(5, "AllReduce", pointer="0x2", ranks=3),
            "the ranks of communicator 0xc of 3 ranks are not known: lines of 1 of them (valid: logs of all its ranks)",
        ),
        (PAIR + "host:1:1 [0] NCCL INFO " + "x" * 9000, "9023 characters (valid: up to 8192)"),
    ],
)  # fmt: skip
def test_logs_that_cannot_be_read_are_refused_by_line(read, text, said):
    with pytest.raises(TraceError) as error:
        read(text, name="nccl_log")
    assert said in str(error.value)


@pytest.mark.skipif(not PUBLIC, reason="WEFT_NCCL_LOG names no log of NCCL")
def test_a_public_log_is_read():
    trace = read_trace(Path(PUBLIC), "nccl_log")
    assert trace.job is not None
    assert trace.job.operation_count
