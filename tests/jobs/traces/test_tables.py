"""Lists of flows, and logs of NCCL's calls."""

from pathlib import Path

import pytest

from tests.refusals import refused
from weft.jobs.traces import TRACE_FORMATS, TraceError, read_trace, write_trace
from weft.traffic.jobs import CollectiveCall, Group, Job, Kind
from weft.traffic.patterns import Flow


@pytest.fixture
def table(tmp_path):
    def write(text: str) -> Path:
        (tmp_path / "x.csv").write_text(text)
        return tmp_path / "x.csv"

    return write


def refusal(path: Path, format_name: str = "") -> str:
    with pytest.raises(TraceError) as error:
        read_trace(path, format_name)
    return str(error.value).replace(f"{path.parent}/", "")


def test_flows_are_read_from_csv(table):
    path = table("\ufeffsource, destination,size,start,queue_pairs\n0,1,1MiB,10us,4\r\n\n1,0,77,,\n")
    assert read_trace(path).flows == (Flow(0, 1, 1 << 20, 0, 10_000_000, 4), Flow(1, 0, 77))


def test_flows_are_read_from_the_lists_of_the_hpcc_simulator(table):
    path = table("2\n2 1 3 100 200000000 2\n 3 1 3 100 20 0.000001234567\n4 1 3 100 5 2\n")
    trace = read_trace(path)
    assert trace.flows == (Flow(2, 1, 200_000_000, 0, 2 * 10**12), Flow(3, 1, 20, 0, 1_234_567))
    assert trace.notes == ["1 lines after the 2 flows that line 1 says are left out"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("source,destination,size\n0,0,9", "x.csv, line 2: host 0 sends to itself (valid: another host)"),
        ("source,destination,size\n0,1", "x.csv, line 2: 2 cells (valid: 3, as line 1)"),
        ("source,destination,size\n0,1,0", "line 2: a flow of 0 B (valid: 1 to 2147483648)"),
        ("source,destination,size\n-1,1,5", "line 2: source: '-1' (valid: 0 to 1048575)"),
        ("source,destination,size\n,1,5", "line 2: source is empty"),
        ("source,destination,size\n0,1,5x", "line 2: size: '5x' is not a size"),
        ("source,destination,size,start\n0,1,5,9", "line 2: start: '9' is not a time"),
        ("source,destination,size,queue_pairs\n0,1,5,6", "line 2: 6 queue pairs (valid: 1 to 5, its bytes)"),
        ("source,destination,size,color\n0,1,5,6", "line 1: unknown column 'color' (valid: source, "),
        ("source,destination,size,size\n0,1,5,6", "line 1: two columns have the same name"),
        ('source,destination,size\n0,1,"' + "9" * 200_000, "field larger than field limit"),
        ("1\n0 1 3 100 5 x", "x.csv, line 2: 'x' is no time in seconds"),
        ("1\n0 1 3 100 5 1\n0 1", ""),
        (
            "2\n0 1 3 100 5 1\n0 1",
            "x.csv, line 3: 2 words (valid: source destination class port bytes start_s)",
        ),
        ("3\n0 1 3 100 5 1\n", "x.csv: 1 flows (valid: 3, as line 1 says)"),
        ("99999999\n0 1 3 100 5 1\n", "x.csv, line 1: '99999999' (valid: 0 to 4000000)"),
        ("1\n0 1 3 100 5000000000 1\n", "x.csv, line 2: a flow of 5000000000 B"),
        ("1\n0 1 3 100 5 1001\n", "x.csv, line 2: a start at 1001 s (valid: 0 to 1000s)"),
        (
            "source,destination,size,start\n0,1,5,0\n0,1,5,1000.5s",
            "x.csv, line 3: a start at 1000.5 s (valid: 0 to 1000s)",
        ),
    ],
)
def test_flows_that_cannot_be_are_named_by_line(table, text, said):
    if said:
        assert said in refusal(table(text))
    else:
        assert len(read_trace(table(text)).flows) == 1


LOG = "rank,operation,count,datatype,communicator,stream,group,root,start\n"


def test_calls_of_a_log_follow_each_other_on_their_streams(table):
    rows = "".join(
        f"{rank},AllReduce,100,ncclFloat16,world,a,,,\n"
        f"{rank},AllGather,100,7,world,b,,,3us\n"
        f"{rank},Broadcast,100,ncclInt8,world,a,,2,\n"
        for rank in range(3)
    )
    job = read_trace(table(LOG + rows)).job
    assert job.groups == (Group("world", (0, 1, 2)),)
    assert job.calls == (
        CollectiveCall("allreduce", 200),
        CollectiveCall("allgather", 1200),
        CollectiveCall("broadcast", 100, root=2),
    )
    operations = job.parts[1].operations
    assert operations.kind.tolist() == [Kind.COLLECTIVE, Kind.TIMER, Kind.COLLECTIVE, Kind.COLLECTIVE]
    assert [operations.predecessors(each).tolist() for each in range(4)] == [[], [], [1], [0]]


def test_calls_of_a_group_start_together_and_peers_are_of_the_communicator(table):
    rows = "".join(
        f"{rank},Recv,8,int8,pp,s,g1,{peer},\n{rank},Send,8,int8,pp,s,g1,{peer},\n{rank},AllReduce,8,int8,pp,s,,,\n"
        for rank, peer in ((0, 1), (1, 0))
    )
    job = read_trace(table(LOG + rows)).job
    operations = job.parts[0].operations
    assert [operations.predecessors(each).tolist() for each in range(3)] == [[], [], [0, 1]]
    assert "wait for each other" in refusal(table(LOG + rows.replace("g1", "")))


def test_an_empty_call_takes_no_time(table):
    job = read_trace(table(LOG + "0,AllToAll,0,int8,w,,,,\n1,alltoall,0,int8,w,,,,\n")).job
    assert job.parts[0].operations.kind.tolist() == [Kind.COMPUTE]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("", "x.csv: no calls"),
        ("1,AllReduce,1,int8,w,,,,", "x.csv: calls of ranks 0 are missing"),
        ("0,Gather,1,int8,w,,,,", "line 2: operation: 'Gather' (valid: allreduce, "),
        ("0,Reduce,1,int7,w,,,,", "line 2: datatype: 'int7' (valid: int8, "),
        ("0,Reduce,1,99,w,,,,", "line 2: datatype: '99' (valid: int8, "),
        ("0,Reduce,1,int8,,,,,", "line 2: communicator is empty"),
        ("0,Reduce,x,int8,w,,,,", "line 2: count: 'x' (valid: 0 to "),
        ("0,Reduce,1,int8,w,,,4,", "line 2: root: '4' (valid: 0 to 0)"),
        ("0,Send,1,int8,w,,,,", "line 2: root is empty"),
        ("0,Send,1,int8,w,,,0,", "line 2: rank 0 exchanges a message with itself"),
        ("0,Reduce,70368744177664,int64,w,,,,\n1,Reduce,1,int8,w,,,,", "line 2: reduce of 562949953421312 B (valid: "),
        (f"0,Reduce,1,int8,{'w' * 300},,,,", "x.csv: a group's name of 300 characters"),
        ("0,Reduce,4,int8,w,,,,\n1,Reduce,8,int8,w,,,,", "line 3: reduce of 8 int8, where "),
    ],
)  # fmt: skip
def test_calls_that_cannot_be_are_named_by_line(table, rows, said):
    assert said in refusal(table(LOG + rows))


def test_ranks_that_call_different_collectives_are_refused_by_line(table):
    """Sizes are rounded up to what divides among ranks, which must not make different calls alike."""
    for first, second in (
        ("10,bfloat16", "9,bfloat16"),
        ("1,float64", "2,float32"),
        ("8,float32", "8,int32"),
    ):
        rows = f"0,AllReduce,{first},w\n1,AllReduce,{second},w\n"
        said = refusal(table("rank,operation,count,datatype,communicator\n" + rows))
        assert f"line 3: allreduce of {second.replace(',', ' ')}, where " in said
        assert f"has allreduce of {first.replace(',', ' ')}" in said


def test_what_is_no_trace_is_refused(table, tmp_path):
    valid = f"(valid: a path of {', '.join(TRACE_FORMATS)}, or the format's name)"
    for path in (table("a,b\n"), table("")):
        assert refusal(path).endswith(f"no trace, or one of an unknown format {valid}")
    assert "there is no such file" in refusal(tmp_path / "missing")
    assert refusal(table(""), "pcap") == f"unknown format 'pcap' (valid: {', '.join(TRACE_FORMATS)})"


def test_lists_of_flows_are_not_written(tmp_path):
    with refused(TraceError, valid="chakra, goal", problem="a CSV list of flows is not"):
        write_trace(Job("x", ()), tmp_path / "x.csv", "flow_csv")
