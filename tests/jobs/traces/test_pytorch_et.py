"""PyTorch's execution traces, and PARAM's own traces of communications."""

import json
import os
from pathlib import Path

import pytest

from weft import Fabric, topologies
from weft.jobs.traces import TraceError, read_trace
from weft.jobs.traces.calls.communicators import Communicators
from weft.jobs.traces.formats import param_comms, pytorch_et
from weft.paths import ROOT
from weft.traffic.jobs import CollectiveCall, Kind

EXAMPLES = ROOT / "examples" / "traces"
PARAM = os.environ.get("WEFT_PARAM", "")


def node(name: str, request: object, number: int = 1, rank: int = 0, **attributes):
    """Return a node of schema 1.1."""
    held = {
        "collective_name": name,
        "dtype": "Float",
        "in_msg_nelems": 8,
        "out_msg_nelems": 8,
        "pg_name": "0",
        "pg_size": 2,
    }
    values = [request, ["0", ""], rank, name, [], []]
    return {
        "id": number,
        "name": "record_param_comms",
        "inputs": {"values": values if name in ("wait", "barrier") else [[], *values], "shapes": [], "types": []},
        "attrs": [{"name": key, "value": value} for key, value in {**held, **attributes}.items()],
    }


GROUPS = {"id": 0, "name": "## process_group:init ##", "inputs": {"values": ['[{"pg_name": "0", "ranks": [0, 1]}]']}}


@pytest.fixture
def read(tmp_path):
    def of(*ranks, format_name: str = "pytorch_et"):
        for rank, entries in enumerate(ranks):
            held = {"schema": "1.1.0", "nodes": [GROUPS, *entries]} if format_name == "pytorch_et" else entries
            (tmp_path / f"rank{rank}.json").write_text(json.dumps(held))
        return read_trace(tmp_path if len(ranks) > 1 else tmp_path / "rank0.json", format_name)

    return of


def test_calls_follow_their_group_and_the_waits(read):
    other = {"pg_name": "1", "pg_size": 2, "global_rank_start": 0, "global_rank_stride": 1}
    nodes = [
        node("allreduce", 1, 1),
        node("allgather", 2, 2, **other),
        node("allreduce", 3, 3, **other),
        node("wait", 1, 4, pg_name="", pg_size=1),
        node("broadcast", [4, False], 5, rank=1, **other),
        node("wait", [4, False], 6, pg_name="", pg_size=1),
        node("wait", 2, 7, pg_name="", pg_size=1),
        node("wait", 3, 8, pg_name="", pg_size=1),
        node("barrier", 5, 9),
        node("allreduce", 6, 10),
    ]
    trace = read(nodes, nodes)
    operations = trace.job.parts[0].operations
    followed = [operations.predecessors(each).tolist() for each in range(len(operations))]
    # The second and third overlap with the first one; the fourth follows their group and the wait.
    assert followed == [[], [], [1], [2, 0], [0, 3], [4]]
    assert CollectiveCall("broadcast", 32, root=1) in trace.job.calls
    assert trace.locate(0, 2).endswith("rank0.json: node 3")
    assert trace.job.groups[1].ranks == (0, 1)


def test_old_schemas_have_fields_in_a_list(read, tmp_path):
    for rank in range(2):
        shares = [[2, 1], [3, 4]][rank], [[2, 3], [1, 4]][rank]
        sizes = [sum(shares[0]) * 4, sum(shares[1]) * 4]
        nodes = [
            {
                "id": 7,
                "name": "record_param_comms",
                "inputs": [[1, 2, 0, sizes[0], 4, "cuda:0"], 9, 94594108284448, rank, "all_to_allv", *shares],
                "input_shapes": [[sizes[0]], []],
                "input_types": ["Tensor(c10::Half)", "Int"],
                "output_shapes": [[sizes[1]]],
            },
            {
                "id": 8,
                "name": "record_param_comms",
                "inputs": [[[1, 2, 0, 6, 4, "cuda:0"]], 10, 94594108284448, rank, "allreduce", [], []],
                "input_shapes": [[[2, 3], [5]]],
                "input_types": ["GenericList[Tensor(float),Tensor(float)]"],
            },
        ]
        (tmp_path / f"et_{rank}.json").write_text(json.dumps({"schema": "1.0.1", "nodes": nodes}))
    trace = read_trace(tmp_path)
    assert [part.operations.size_bytes.tolist() for part in trace.job.parts] == [[8, 24, 0], [24, 8, 0]]
    assert trace.job.calls == (CollectiveCall("allreduce", 44),)
    assert trace.notes[0] == "process groups are not recorded: taken as one of all files' ranks"


def test_gathers_are_messages(read):
    first, second = [node("gather", 1, rank=1, out_msg_nelems=0)], [node("gather", 1, rank=1, out_msg_nelems=16)]
    parts = read(first, second).job.parts
    assert [part.operations.kind.tolist() for part in parts] == [[Kind.SEND], [Kind.RECEIVE]]
    assert [part.operations.size_bytes.tolist() for part in parts] == [[32], [32]]


def test_a_file_of_any_name_may_stand_alone(tmp_path):
    (tmp_path / "trace.json").write_text(json.dumps({"schema": "1.1.0", "nodes": [GROUPS, node("allreduce", 1)]}))
    assert read_trace(tmp_path / "trace.json").notes[0] == "the file's name does not end in the rank: taken as 0"
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(TraceError, match=r"\.json: the rank is not known"):
        read_trace(tmp_path, "pytorch_et")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"collective_name": 3}, "node 1: no name of a collective"),
        ({"collective_name": "sort"}, "node 1: operation 'sort' (valid: "),
        ({"dtype": "Quarter"}, "node 1: type 'Quarter' (valid: "),
        ({"pg_name": "7"}, "node 1: the ranks of process group '7' are not known (valid: 2 in the node"),
        ({"pg_size": 3}, "node 1: the ranks of process group '0' are not known (valid: 3 in"),
        ({"in_msg_nelems": 1 << 50}, f"node 1: in_msg_nelems is {1 << 50} (valid: 0 to "),
        ({"in_split_size": "[1"}, "node 1: in_split_size is no list"),
        ({"pg_name": "7", "global_rank_start": 4, "global_rank_stride": 1}, "rank 0 is not in process group '7'"),
    ],
)
def test_nodes_that_cannot_be_are_named(read, changes, said):
    with pytest.raises(TraceError) as error:
        read([node("allreduce", 1, **changes)])
    assert said in str(error.value)


def test_a_request_must_have_a_number(read):
    with pytest.raises(TraceError, match="node 1: no number of a request"):
        read([node("allreduce", "first")])


def call(name: str, request: int, **changes):
    """Return an entry of PARAM's basic format."""
    return {
        "comms": name,
        "req": request,
        "in_msg_size": 8,
        "out_msg_size": 8,
        "dtype": "Float32",
        "world_size": 2,
        **changes,
    }


def test_traces_of_param_have_groups_waits_and_starts(read):
    entries = [
        {"comms": "init", "pg_id": 3, "global_ranks": [1, 0], "req": -1},
        call("all_gather_base", 1, startTime_ns=5, out_msg_size=16),
        {"comms": "wait", "req": 1},
        call("broadcast", 2, startTime_ns=9, pg_id=3, root=1),
    ]
    trace = read(entries, entries, format_name="param_comms")
    assert [group.ranks for group in trace.job.groups] == [(0, 1), (1, 0)]
    assert trace.job.calls == (CollectiveCall("allgather", 64), CollectiveCall("broadcast", 32))
    operations = trace.job.parts[0].operations
    assert operations.duration_ps.tolist() == [5000, 0, 9000, 0]
    assert sorted(operations.predecessors(3).tolist()) == [1, 2]


def test_computations_of_param_are_left_out(read):
    entries = [{"compute": "gemm", "count": 3}, call("send", 1, dst_rank=1, src_rank=0), call("all_reduce", 2)]
    trace = read(entries, format_name="param_comms")
    assert trace.notes[0] == "3 computations without a duration: left out"
    assert trace.notes[1].startswith("not all calls have a startTime_ns")
    assert [part.operations.kind.tolist() for part in trace.job.parts] == [
        [Kind.SEND, Kind.COLLECTIVE],
        [Kind.RECEIVE, Kind.COLLECTIVE],
    ]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "entry 0: neither comms nor compute"),
        ("comms", "entry 0: 'comms' is no object"),
        (call("all_reduce", 1, world_size=0), "entry 0: world_size is 0 (valid: 1 to 65536)"),
        (
            call("all_reduce", 1, world_size=None),
            "the ranks of process group None are not known (valid: world_size, or",
        ),
        (call("broadcast", 1, root=2), "entry 0: rank 2 (valid: one of [0, 1])"),
        (call("send", 1), "entry 0: dst_rank is missing"),
        (call("all_to_allv", 1, in_split=[8]), "entry 0: 1 shares of a group of 2 (valid: 2)"),
        (call("all_reduce", 1, startTime_ns=-1), "entry 0: startTime_ns is -1 (valid: 0 to "),
        ({"compute": "gemm", "count": -1}, "entry 0: count is -1 (valid: 1 to "),
    ],
)
def test_entries_of_param_that_cannot_be_are_named(read, entry, said):
    with pytest.raises(TraceError) as error:
        read([entry], format_name="param_comms")
    assert said in str(error.value)


def test_groups_of_the_first_ranks_share_their_list(tmp_path):
    groups = json.dumps([{"pg_name": str(group), "group_size": 65_536} for group in range(5)])
    nodes = [{"id": 1, "name": "## process_group:init ##", "inputs": {"values": [groups]}}]
    (tmp_path / "et").write_text(json.dumps({"schema": "1.1.0", "nodes": nodes}))
    entries = [{"comms": "init", "pg_id": group, "world_size": 65_536} for group in range(5)]
    (tmp_path / "comms").write_text(json.dumps(entries))
    readers = (
        pytorch_et._Reader(tmp_path / "et", 0, (0,), Communicators()),
        param_comms._Reader(tmp_path / "comms", 0, Communicators()),
    )
    for reader in readers:
        assert not reader.read()
        assert len(reader._groups) == 5
        assert len({id(ranks) for ranks in reader._groups.values()}) == 1


@pytest.mark.parametrize("name", ["pytorch_et", "param_comms"])
def test_the_examples_run(name):
    with Fabric(topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2), clock="virtual") as fabric:
        assert fabric.run_job(read_trace(EXAMPLES / name).job).duration_ps > 50_000_000


@pytest.mark.skipif(not PARAM, reason="WEFT_PARAM names no clone of facebookresearch/param with its inputs unpacked")
def test_the_inputs_of_et_replay_are_read():
    inputs = Path(PARAM) / "et_replay" / "tests" / "inputs"
    parts = read_trace(inputs / "dlrm_pytorch_et").job.parts
    assert len(parts) == 8
    assert [len(part.operations) for part in parts] == [4 * 7 * 2 + 4] * 8
    job = read_trace(inputs / "1.1.0-chakra.0.0.4" / "resnet_2gpu_et.json.gz").job
    assert [len(part.operations.of_kind(Kind.COLLECTIVE)) for part in job.parts] == [21, 21]
