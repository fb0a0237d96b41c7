"""Connection matrices of htsim: what is read and refused, and what a run of triggers does.

WEFT_HTSIM_CLONE names a local clone of ultraethernet/uet-htsim, whose matrices are read.
"""

import os
from pathlib import Path

import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.jobs.traces import TraceError, read_trace
from weft.paths import ROOT
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.traffic.jobs import Kind
from weft.traffic.patterns import Flow

EXAMPLE = ROOT / "examples" / "traces" / "triggers.cm"
CLONE = Path(os.environ.get("WEFT_HTSIM_CLONE", "")) / "htsim" / "sim" / "datacenter" / "connection_matrices"
TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)


@pytest.fixture
def matrix(tmp_path):
    def write(*lines: str, **header: int) -> Path:
        counted = {
            "Nodes": 4,
            "Connections": sum("->" in line for line in lines),
            "Triggers": sum(line.startswith("trigger") for line in lines),
            **header,
        }
        text = "\n".join([*(f"{name} {count}" for name, count in counted.items()), *lines])
        (tmp_path / "x.cm").write_text(text)
        return tmp_path / "x.cm"

    return write


def sends(job):
    """Return rank, peer, bytes and name of each send of a job."""
    found = []
    for rank, part in enumerate(job.parts):
        operations = part.operations
        for row in operations.of_kind(Kind.SEND).tolist():
            peer = part.peers[operations.target[row]]
            found.append((rank, peer, int(operations.size_bytes[row]), operations.names[operations.name[row]]))
    return found


def run(path):
    """Run a matrix; return when each named flow started and was received, in picoseconds."""
    job = read_trace(path, "htsim").job
    with Fabric(TOPOLOGY, clock="virtual", seed=1) as fabric:
        ran = fabric.run_job(job)
    started, received = {}, {}
    for part, times in zip(job.parts, ran.times, strict=True):
        operations = part.operations
        for kind, found, column in (
            (Kind.SEND, started, times.started_ps),
            (Kind.RECEIVE, received, times.finished_ps),
        ):
            for row in operations.of_kind(kind).tolist():
                found[operations.names[operations.name[row]]] = int(column[row])
    return started, received


def test_connections_without_triggers_are_flows(matrix):
    path = matrix("0->3 id 1 start 0 size 2000000", "1->2 start 40.6 size 250 prio 7", "# done", "", Failures=0)
    trace = read_trace(path)
    assert trace.flows == (Flow(0, 3, 2_000_000), Flow(1, 2, 250, 0, 41))
    assert trace.notes == ["priorities, left out: 1"]


def test_messages_of_a_connection_share_its_id(matrix):
    path = matrix("0->1 id 1 msg start 0 size 4086", "0->1 id 1 msg 7 start 5 size 77")
    assert read_trace(path).flows == (Flow(0, 1, 4086), Flow(0, 1, 77, 0, 5))


def test_triggers_order_the_connections_of_the_example():
    started, received = run(EXAMPLE)
    assert [(rank, peer, size) for rank, peer, size, _ in sends(read_trace(EXAMPLE).job) if size] == [
        (0, 1, 65536),
        (0, 2, 32768),
        (2, 0, 16384),
        (3, 0, 8192),
    ]
    assert started["flow 1"] == 0
    assert started["flow 4"] == 5_000_000
    # Sent and acknowledged is after received.
    assert started["flow 2"] > received["flow 1"]
    assert started["flow 3"] >= max(received["flow 1"], received["flow 2"])


def test_the_next_connection_starts_when_the_one_before_is_acknowledged(matrix):
    path = matrix(
        "0->2 id 1 start 1000 size 20000 send_done_trigger 1",
        "0->3 id 2 trigger 1 size 20000 send_done_trigger 2",
        "0->1 id 3 trigger 2 size 20000",
        "trigger id 1 oneshot",
        "trigger id 2 oneshot",
    )
    job = read_trace(path).job
    assert job.parts[0].operations.predecessors(3).tolist() == [2]
    started, received = run(path)
    assert list(started) == ["flow 1", "flow 2", "flow 3"]
    assert 1000 == started["flow 1"] < received["flow 1"] < started["flow 2"] < received["flow 2"] < started["flow 3"]


def test_a_trigger_of_another_host_takes_a_message(matrix):
    path = matrix(
        "0->1 id 1 start 0 size 20000 send_done_trigger 9",
        "2->1 id 2 start 0 size 60000 send_done_trigger 9",
        "3->1 id 3 trigger 9 size 5000",
        "0->3 id 4 trigger 9 size 5000",
        "trigger id 9 barrier count 2",
    )
    trace = read_trace(path)
    assert trace.notes == ["messages of 0 bytes that tell other hosts of triggers, which htsim does in no time: 2"]
    started, received = run(path)
    assert min(started["flow 3"], started["flow 4"]) > max(received["flow 1"], received["flow 2"])


def test_a_multishot_trigger_starts_its_connections_one_by_one(matrix):
    path = matrix(
        "0->1 id 1 start 0 size 20000 send_done_trigger 5",
        "0->2 id 2 trigger 5 size 20000 send_done_trigger 5",
        "0->3 id 3 trigger 5 size 20000",
        "trigger id 5 multishot",
    )
    started, received = run(path)
    assert received["flow 1"] < started["flow 2"] < received["flow 2"] < started["flow 3"]


def test_scenarios_run_matrices(matrix):
    path = matrix("0->3 id 1 start 0 size 20000", "1->3 id 2 start 2000000 size 30000")
    chosen = parse_scenario(
        {
            "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
            "clock": "virtual",
            "traffic": [{"flow_list": str(path)}, {"trace": str(EXAMPLE)}, {"trace": str(path), "format": "htsim"}],
        }
    )
    run_scenario(chosen)


ONE = "0->1 id 1 start 0 size 9 send_done_trigger 1"
NEXT = "0->2 id 2 trigger 1 size 9"


@pytest.mark.parametrize(
    ("lines", "place", "said"),
    [
        (["0->0 start 0 size 9"], "line 4", "node 0 sends to itself (valid: another node)"),
        (["0->4 start 0 size 9"], "line 4: SRC->DST", "'4' (valid: 0 to 3)"),
        (["0->1 start 0"], "line 4", "has no size (valid: size B, 1 to 2147483648)"),
        (["0->1 start 0 size 0"], "line 4: size", "'0' (valid: 1 to 2147483648)"),
        (["0->1 start -1 size 9"], "line 4: start", "'-1' is no time in picoseconds"),
        (["0->1 start 1e3 size 9"], "line 4: start", "'1e3' is no time in picoseconds"),
        (["0->1 start 1000000000000001 size 9"], "line 4: start", "a start at 1000 s (valid: 0 to 1000s)"),
        (["0->1 size 9"], "line 4", "has neither of start and trigger (valid: one of the two)"),
        (["0->1 start 0 trigger 1 size 9"], "line 4", "has both of start and trigger"),
        (["0->1 start 0 size 9 size 9"], "line 4", "size occurs twice"),
        (["0->1 start 0 size 9 color 1"], "line 4", "unknown key 'color' of a connection (valid: id, start, size"),
        (["0->1 id 1 start 0 size 9", "0->1 id 1 start 0 size 9"], "line 5", "id 1 occurs twice"),
        (["0->1 start 0 size 9", "Nodes 9"], "line 5", "Nodes occurs twice"),
        (["hello"], "line 4", "'hello' begins no line of a connection matrix (valid: Nodes, "),
        (
            ["failure switch_type AGG switch_id 0 link_id 1"],
            "line 4",
            "a failed link (valid: none; `events` of a scenario",
        ),
        (["trigger id 1"], "line 4", "an incomplete trigger (valid: trigger id I oneshot, "),
        (["trigger id 1 barrier"], "line 4", "an incomplete trigger"),
        (["trigger id 1 barrier 2"], "line 4", "'2' in a trigger (valid: id I, and one of"),
        (["trigger id 1 oneshot", "trigger id 1 oneshot"], "line 5", "trigger 1 occurs twice"),
        ([ONE, NEXT], "line 4", "there is no trigger 1 (valid: none is listed)"),
        ([ONE, "trigger id 1 oneshot"], "line 5", "trigger 1 of kind oneshot starts no connection"),
        ([NEXT, "trigger id 1 oneshot"], "line 5", "trigger 1 of kind oneshot is fired by 0 connections (valid: 1)"),
        (
            [ONE, NEXT, "trigger id 1 barrier count 2"],
            "line 6",
            "trigger 1 of kind barrier is fired by 1 connections (valid: 2)",
        ),
        (
            [ONE, ONE.replace("id 1", "id 3"), NEXT, "trigger id 1 multishot"],
            "line 7",
            "trigger 1 of kind multishot is fired by 2 connections, of which only a run would show the order",
        ),
        (
            [ONE, NEXT, NEXT.replace("id 2", "id 3"), "trigger id 1 multishot"],
            "line 7",
            "trigger 1 of kind multishot never starts the connection of line 6",
        ),
    ],
)
def test_matrices_that_cannot_be_run_are_refused_by_line(matrix, lines, place, said):
    path = matrix(*lines)
    with pytest.raises(TraceError) as error:
        read_trace(path, "htsim")
    assert f"x.cm, {place}: {said}" in str(error.value)


def test_connections_that_wait_for_each_other_are_refused(matrix):
    path = matrix(
        "0->1 id 1 trigger 1 size 9 send_done_trigger 2",
        "0->2 id 2 trigger 2 size 9 send_done_trigger 1",
        "trigger id 1 oneshot",
        "trigger id 2 oneshot",
    )
    with pytest.raises(TraceError, match=r"operations of one rank wait for each other: rank 0, .*x.cm, line 4 \(send"):
        read_trace(path)


def test_counts_are_those_of_the_header(matrix):
    with refused(TraceError, place="x.cm", valid="2, as the header says", problem="1 connections"):
        read_trace(matrix("0->1 start 0 size 9", Connections=2))
    with refused(TraceError, place="x.cm, line 5", valid="1 connections, as the header says"):
        read_trace(matrix("0->1 start 0 size 9", "0->2 start 0 size 9", Connections=1))
    with refused(TraceError, place="x.cm, line 1: Nodes", valid="1 to 65536"):
        read_trace(matrix("0->1 start 0 size 9", Nodes=99_999_999), "htsim")
    with refused(TraceError, place="triggers.cm, line 5", valid="none in a list of flows; `trace` runs triggers"):
        read_trace(EXAMPLE, "htsim_flows")


@pytest.mark.skipif(
    not os.environ.get("WEFT_HTSIM_CLONE"), reason="WEFT_HTSIM_CLONE names no clone of ultraethernet/uet-htsim"
)
@pytest.mark.parametrize(
    ("name", "flows", "operations"),
    [
        ("alltoall_serial_16n.cm", 0, 480),
        ("foo2.cm", 0, 24),
        ("perm_8192n_8192c_2MB.cm", 8192, 0),
        ("incast_3-1_overlapped.tm", 3, 0),
        ("test_cr_1f10m10p.cm", 10, 0),
        ("outcast_incast.cm", 21, 0),
    ],
)
def test_public_matrices_are_read(name, flows, operations):
    trace = read_trace(CLONE / name)
    assert len(trace.flows) == flows
    assert (trace.job.operation_count if trace.job else 0) == operations


@pytest.mark.skipif(
    not os.environ.get("WEFT_HTSIM_CLONE"), reason="WEFT_HTSIM_CLONE names no clone of ultraethernet/uet-htsim"
)
def test_a_public_matrix_whose_counts_are_wrong_is_refused_as_by_htsim():
    with refused(TraceError, place="a2a.cm", valid="3600, as the header says", problem="240 connections"):
        read_trace(CLONE / "a2a.cm")
