"""Chakra: a job written and read back is the same; files of other writers; what is wrong is named."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.jobs.traces.random_jobs import differences, random_job
from weft.jobs.traces import ReadOptions, Roofline, TraceError, read_trace, write_trace
from weft.jobs.traces.chakra.framing import framed, unframed
from weft.jobs.traces.chakra.messages import Attribute, CollectiveType, GlobalMetadata, Node, NodeType
from weft.traffic.jobs import CollectiveCall, Group, Job, Kind, OperationsBuilder, RankPart

IN_TMP = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def trace(tmp_path):
    """Writes files of nodes, one a rank, as other tools do; returns their prefix."""

    def write(*ranks, groups=None) -> Path:
        for rank, nodes in enumerate(ranks):
            metadata = framed(GlobalMetadata(version="0.0.4").SerializeToString())
            (tmp_path / f"x.{rank}.et").write_bytes(metadata + b"".join(nodes))
        if groups is not None:
            (tmp_path / "x.json").write_text(groups if isinstance(groups, str) else json.dumps(groups))
        return tmp_path / "x"

    return write


def node(number: int, kind: NodeType, after=(), micros=0, control=(), **attributes) -> bytes:
    """A node; attributes are int64, or (type, value)."""
    made = Node(
        id=number,
        type=int(kind),
        data_deps=after,
        ctrl_deps=control,
        duration_micros=micros,
        name=f"n{number}",
    )
    for name, value in attributes.items():
        kind_of_value, content = value if isinstance(value, tuple) else ("int64", value)
        made.attr.append(Attribute(name=name, **{f"{kind_of_value}_val": content}))
    return framed(made.SerializeToString())


def collective(number: int, kind: CollectiveType, size: int, **more) -> bytes:
    return node(number, NodeType.COLLECTIVE, comm_type=int(kind), comm_size=size, **more)


def refusal(path: Path, options: ReadOptions | None = None) -> str:
    with pytest.raises(TraceError) as error:
        read_trace(path, "chakra", options)
    return str(error.value).replace(f"{path.parent}/", "")


@IN_TMP
@given(seed=st.integers(0, 2**32))
def test_a_job_that_is_written_and_read_is_the_same(tmp_path, seed):
    job = random_job(seed)
    for old in tmp_path.iterdir():
        old.unlink()
    write_trace(job, tmp_path / "job", "chakra")
    again = read_trace(tmp_path / "job")
    assert differences(job, again.job) == []
    assert again.notes == []


def test_equal_programs_are_one_object_again(tmp_path):
    builder = OperationsBuilder()
    builder.collective(0, 0, after=[builder.receive(1, 8, after_start=[builder.send(0, 8)])])
    operations = builder.build()
    parts = tuple(RankPart(operations, ((rank + 1) % 9, (rank - 1) % 9), (0,)) for rank in range(9))
    job = Job("ring", parts, (Group("all", tuple(range(9))),), (CollectiveCall("allreduce", 36),))
    write_trace(job, tmp_path / "ring", "chakra")
    again = read_trace(tmp_path / "ring.3.et").job
    assert differences(job, again) == []
    assert len({id(part.operations) for part in again.parts}) == 1


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (CollectiveType.ALL_GATHER, CollectiveCall("allgather", 4 << 20)),
        (CollectiveType.ALL_REDUCE, CollectiveCall("allreduce", 1 << 20)),
        (CollectiveType.ALL_TO_ALL, CollectiveCall("alltoall", 1 << 20)),
        (CollectiveType.REDUCE_SCATTER, CollectiveCall("reducescatter", 1 << 20)),
        (CollectiveType.REDUCE_SCATTER_BLOCK, CollectiveCall("reducescatter", 1 << 20)),
        (CollectiveType.BARRIER, CollectiveCall("allreduce", 4)),
    ],
)
@pytest.mark.parametrize("integer", ["int64", "uint64", "sint32", "fixed32"])
def test_collectives_are_of_a_ranks_input_in_any_type_of_integer(trace, kind, call, integer):
    size = (integer, 1 << 20)
    job = read_trace(trace(*([collective(rank, kind, size)] for rank in range(4)))).job
    assert job.calls == (call,)
    assert [group.ranks for group in job.groups] == [(0, 1, 2, 3)]


def pytorch(number: int, kind: NodeType, *, on_cpu: bool = True, **more) -> bytes:
    """A node as Chakra's converter makes them of PyTorch's traces; `control` is its caller."""
    recorded = {"op_schema": ("string", ""), "rf_id": 3} if on_cpu else {}
    return node(number, kind, is_cpu_op=("bool", on_cpu), **recorded, **more)


def test_the_processors_part_of_pytorchs_communication_is_a_computation(trace):
    """In the sample of Chakra's repository, `c10d::allreduce_` is a collective without type and size."""
    part = [
        pytorch(216, NodeType.COLLECTIVE, micros=85, control=[3]),
        pytorch(217, NodeType.SEND, micros=9, after=[216], control=[218]),
        pytorch(218, NodeType.COMPUTE, micros=7, after=[217], control=[218]),
        pytorch(
            219,
            NodeType.COLLECTIVE,
            on_cpu=False,
            after=[216, 218],
            control=[3],
            micros=28,
            comm_type=0,
            comm_size=64,
        ),
    ]
    found = read_trace(trace(part, part))
    operations = found.job.parts[0].operations
    assert operations.kind.tolist() == [Kind.COMPUTE] * 3 + [Kind.COLLECTIVE]
    assert operations.duration_ps.tolist()[:3] == [85 * 10**6, 9 * 10**6, 7 * 10**6]
    assert operations.stream.tolist()[:3] == [1, 1, 1]
    assert found.job.calls == (CollectiveCall("allreduce", 64),)
    assert any("PyTorch's callers, left out: 8" in each for each in found.notes)
    assert any("taken as computations of the processor: 4" in each for each in found.notes)
    # Without the kernels nothing would be left to send.
    assert "none has a type and a size" in refusal(trace(part[:3], part[:3]))


def test_a_control_dependency_on_no_node_is_refused_but_for_pytorchs_callers(trace):
    part = [node(0, NodeType.COMPUTE, control=[9])]
    assert "node 0 depends on node 9, which does not exist" in refusal(trace(part))


def test_a_collective_on_the_processor_with_type_and_size_runs(trace):
    part = [collective(0, CollectiveType.ALL_REDUCE, 64, is_cpu_op=("bool", True))]
    assert read_trace(trace(part, part)).job.calls == (CollectiveCall("allreduce", 64),)


def test_sizes_are_rounded_up_to_elements_of_each_rank(trace):
    path = trace(*([collective(0, CollectiveType.ALL_TO_ALL, 13)] for _ in range(3)))
    assert read_trace(path).job.calls[0].size_bytes == 24


def test_an_empty_collective_and_one_of_one_rank_take_no_time(trace):
    empty = collective(0, CollectiveType.ALL_REDUCE, 0)
    alone = collective(1, CollectiveType.ALL_REDUCE, 64, pg_name=("string", "7"))
    job = read_trace(trace([empty, alone], [empty], groups={"7": [0]})).job
    assert job.parts[0].operations.kind.tolist() == [Kind.COMPUTE] * 2
    assert job.parts[0].operations.duration_ps.tolist() == [0, 0]


def test_process_groups_stand_beside(trace):
    part = [collective(0, CollectiveType.ALL_REDUCE, 64, pg_name=("string", "12"))]
    job = read_trace(trace(part, [], part, groups={"12": [2, 0]})).job
    assert job.groups == (Group("12", (2, 0)),)


def recorded(groups: str) -> bytes:
    """The node in which PyTorch records process groups: a list in Python's words of one text of JSON."""
    made = Node(id=1, type=int(NodeType.METADATA), name="## process_group:init ##")
    made.inputs.values = groups
    return framed(made.SerializeToString())


def test_process_groups_are_recorded_by_pytorch_too(trace):
    groups = """['[{"pg_name": "7", "ranks": [1, 0], "x": 1}, {"pg_name": "8", "ranks": []}]']"""
    part = [recorded(groups), collective(2, CollectiveType.ALL_REDUCE, 64, pg_name=("string", "7"))]
    job = read_trace(trace(part, part)).job
    assert job.groups == (Group("7", (1, 0)), Group("8", (0, 1)))
    assert "x.1.et: node 1: process group '7' has other ranks" in refusal(
        trace(part, [recorded(groups.replace("1, 0", "0, 1")), *part[1:]])
    )
    assert "x.0.et: node 1: no list of process groups" in refusal(trace([recorded("['[{}]']")], part))
    assert "process group '7' has rank 5 (valid: 0 to 1)" in refusal(
        trace([recorded(groups.replace("1, 0", "5"))], part)
    )


def test_dependencies_of_both_kinds_are_waited_for_whatever_their_order(trace):
    path = trace(
        [
            node(9, NodeType.COMPUTE, after=[4], control=[5]),
            node(4, NodeType.COMPUTE),
            node(5, NodeType.COMPUTE),
        ]
    )
    operations = read_trace(path).job.parts[0].operations
    assert [operations.predecessors(each).tolist() for each in range(3)] == [[1, 2], [], []]


def test_computations_take_their_time_or_that_of_the_roofline(trace):
    roofline = Roofline(flops_per_s=1e12, memory_bytes_per_s=1e9)
    path = trace(
        [
            node(0, NodeType.COMPUTE, micros=3),
            node(1, NodeType.COMPUTE, micros=3, num_ops=10**9, tensor_size=("uint64", 10)),
            node(2, NodeType.COMPUTE, micros=3, num_ops=10, tensor_size=5000),
            node(3, NodeType.COMPUTE, micros=3, num_ops=10**9, is_cpu_op=("bool", True)),
            node(4, NodeType.MEMORY_LOAD, tensor_size=2000),
            node(5, NodeType.METADATA, micros=50),
        ]
    )
    operations = read_trace(path, options=ReadOptions(roofline=roofline)).job.parts[0].operations
    assert operations.duration_ps.tolist() == [3_000_000, 10**9, 5_000_000, 3_000_000, 2_000_000, 0]
    assert operations.stream.tolist() == [0, 0, 0, 1, 2, -1]
    assert refusal(path) == ("x.0.et: node 4: 0 operations on 2000 B and no duration, so an accelerator must be given")


@pytest.mark.parametrize("flops_per_s", [1.0, 1e-300])
def test_a_computation_of_years_is_refused(trace, flops_per_s):
    path = trace([node(0, NodeType.COMPUTE, num_ops=1 << 62, tensor_size=1)])
    message = refusal(path, ReadOptions(roofline=Roofline(flops_per_s, 1e9)))
    assert message.startswith("x.0.et: node 0: a duration of ")


def test_messages_match_by_rank_and_tag(trace):
    path = trace(
        [node(0, NodeType.SEND, comm_size=100, comm_dst=("int32", 1), comm_tag=("uint32", 6))],
        [node(1, NodeType.RECEIVE, comm_size=100, comm_src=("int32", 0), comm_tag=6, comm_type=6)],
    )
    job = read_trace(path).job
    assert (job.parts[0].operations.tag[0], job.parts[0].peers, job.parts[1].peers) == (6, (1,), (0,))


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("MAX_TRACE_OPERATIONS", "x.1.et: 6 operations up to here (valid: up to 4 in a trace)"),
        ("MAX_TRACE_DEPENDENCIES", "x.0.et: node 2: 6 dependencies up to here (valid: up to 4 in a trace)"),
    ],
)
def test_what_is_too_large_is_refused_where_it_becomes_so(trace, monkeypatch, limit, said):
    part = [node(0, NodeType.COMPUTE), node(1, NodeType.COMPUTE), node(2, NodeType.COMPUTE, after=[0, 1] * 3)]
    path = trace(part, part)
    monkeypatch.setattr(f"weft.jobs.traces.assembling.{limit}", 4)
    assert refusal(path) == said


def test_other_attributes_are_counted(trace):
    path = trace([node(0, NodeType.COMPUTE, rf_id=4, seq=1), node(1, NodeType.COMPUTE, rf_id=5)])
    assert read_trace(path).notes == ["attributes that nothing reads: rf_id (2), seq (1)"]


COMPUTE = node(0, NodeType.COMPUTE)
SEND = node(3, NodeType.SEND, comm_size=8, comm_dst=1)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node(3, NodeType.SEND, comm_sise=8, comm_dst=1)], "attribute 'comm_size' is missing (there"),
        ([node(3, NodeType.SEND, comm_size=8, comm_dst=0)], "rank 0 and rank 0 exchange a message (valid: another"),
        ([node(3, NodeType.SEND, comm_size=8, comm_dst=2)], "rank 0 and rank 2 exchange a message (valid: another"),
        ([node(3, NodeType.SEND, comm_size=8, comm_dst=1, comm_src=1)], "rank 1 sends (valid in this file: 0)"),
        ([node(3, NodeType.RECEIVE, comm_size=8, comm_dst=1, comm_src=1)], "rank 1 receives (valid in this file: 0)"),
        ([node(3, NodeType.SEND, comm_size=-8, comm_dst=1)], "attribute 'comm_size' is -8 (valid: 0 or more)"),
        ([node(3, NodeType.SEND, comm_size=1 << 60, comm_dst=1)], "a message of 1152921504606846976 B"),
        ([node(3, NodeType.SEND, comm_size=("string", "8"), comm_dst=1)], "attribute 'comm_size' is string (valid: an"),
        ([node(3, NodeType.COMPUTE, is_cpu_op=("string", "no"))], "attribute 'is_cpu_op' is string (valid: a bool)"),
        ([node(3, NodeType.COMPUTE, micros=1 << 63)], "a duration of 9223372036854775808 µs"),
        ([node(3, NodeType.COMPUTE, weft_stream=5000)], "stream 4999 (valid: -1 to 4095)"),
        ([framed(Node(id=3, type=77).SerializeToString())], "type 77 (valid: INVALID 0, METADATA 1"),
        ([collective(3, CollectiveType.SCATTER, 8)], "comm_type SCATTER cannot be run (valid: ALL_REDUCE 0, "),
        ([node(3, NodeType.COLLECTIVE, comm_type=55, comm_size=8)], "comm_type 55 cannot be run"),
        ([collective(3, CollectiveType.ALL_REDUCE, 8, pg_name=("string", "4"))], "no process group '4' (valid: '5')"),
        ([collective(3, CollectiveType.ALL_REDUCE, 8, pg_name=("string", "5"))], "rank 0 is not in process group '5'"),
        ([node(3, NodeType.COMPUTE, after=[8])], " 3 depends on node 8, which does not exist"),
        ([node(3, NodeType.COMPUTE), node(3, NodeType.COMPUTE)], " 3 occurs twice (valid: each number once)"),
    ],
)  # fmt: skip
def test_nodes_that_cannot_be_are_named(trace, nodes, said):
    message = refusal(trace(nodes, [COMPUTE], groups={"5": [1]}))
    assert message.startswith("x.0.et: node 3")
    assert said in message


def test_what_keeps_a_job_from_its_end_is_named_by_file_and_node(trace):
    assert refusal(trace([SEND], [COMPUTE])) == (
        "x: the job cannot finish\n"
        "rank 0, x.0.et: node 3 (send of 8 B to rank 1, tag 0): no operation of rank 1 receives it"
    )
    message = refusal(trace([node(3, NodeType.COMPUTE, after=[4]), node(4, NodeType.COMPUTE, after=[3])], [COMPUTE]))
    assert (
        "x.0.et: node 3 (compute), which waits for rank 0, x.0.et: node 4 (compute), which waits for the first"
        in message
    )


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ("{", "x.json: is not valid JSON"),
        ("[" * 100_000, "x.json: is not valid JSON"),
        ([1], "x.json: is no JSON object of names and lists of ranks"),
        ({"1": 4}, "x.json: process group '1' is no list of ranks"),
        ({"1": [0, 9]}, "x.json: process group '1' has rank 9 (valid: 0 to 0)"),
        ({"1": [0, 0]}, "x.json: group '1' of ranks [0, 0] (valid: one or more, each once)"),
    ],
)
def test_process_groups_that_cannot_be_are_named(trace, groups, said):
    assert refusal(trace([COMPUTE], groups=groups)).startswith(said)


def test_missing_ranks_are_named(trace, tmp_path):
    path = trace([COMPUTE], [COMPUTE], [COMPUTE], [COMPUTE])
    (tmp_path / "x.1.et").unlink()
    assert refusal(path) == "x: files of ranks 1 are missing; there is one of rank 3"
    (tmp_path / "x.9999999999.et").write_bytes(b"")
    assert "and 9999999976 more are missing" in refusal(path)
    assert refusal(tmp_path / "y") == f"y: no files y.RANK.et in {tmp_path}"


def test_a_folder_may_have_one_trace(trace, tmp_path):
    path = trace([COMPUTE])
    assert read_trace(path.parent).job.name == "x"
    (tmp_path / "y.0.et").write_bytes(b"")
    assert "several traces (valid: one of x, y)" in refusal(path.parent)


def test_a_file_that_is_cut_off_is_refused_wherever(trace, tmp_path):
    path = trace([COMPUTE, SEND], [COMPUTE])
    whole = (tmp_path / "x.0.et").read_bytes()
    ends = {0}
    for message in unframed(whole, "x"):
        ends.add(max(ends) + len(framed(bytes(message))))
    for length in range(len(whole)):
        (tmp_path / "x.0.et").write_bytes(whole[:length])
        if length not in ends:
            assert refusal(path).startswith("x.0.et: ")
    (tmp_path / "x.0.et").write_bytes(b"")
    assert refusal(path) == "x.0.et: the file is empty (valid: GlobalMetadata, then nodes)"


@IN_TMP
@given(data=st.data(), seed=st.integers(0, 100))
def test_changed_bytes_are_read_or_refused(tmp_path, data, seed):
    write_trace(random_job(seed), tmp_path / "job", "chakra")
    file = tmp_path / "job.0.et"
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    with contextlib.suppress(TraceError):
        read_trace(tmp_path / "job")
    for old in tmp_path.iterdir():
        old.unlink()


def own_job(**changed) -> str:
    """What Weft writes of a job with a call, with other values for some keys of the call."""
    call = {"collective": "allreduce", "size_bytes": 64} | changed
    job = {"name": "j", "group_names": [], "calls": [call], "traffic_classes": {}}
    return json.dumps({"peers": [], "groups": [], "job": job})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "the whole: must be an object, is '[]'"),
        ("{", "is no JSON: EOF while parsing"),
        ('{"peers": [true], "groups": []}', "peers[0]: must be a whole number, is 'True'"),
        ('{"peers": [], "groups": [], "x": 1}', "x: is not a key that this version of Weft writes"),
        ('{"peers": [], "groups": [], "compute_scale": 0}', "compute_scale: '0' is out of range (valid: above 0.0)"),
        ('{"peers": [], "groups": [], "version": 2}', "version: '2' is not valid; valid: 1"),
        ('{"groups": []}', "peers: is missing"),
        (own_job(dtype="float8"), "job.calls[0].dtype: 'float8' is not valid; valid: 'float32', "),
        (own_job(operation="sun"), "job.calls: no operation 'sun'; "),
        (own_job(size_bytes=-1), "job.calls[0].size_bytes: '-1' is out of range (valid: 0 or more)"),
        ('{"peers": [0, 0], "groups": []}', ""),
        ('{"peers": [], "groups": [3]}', ""),
    ],
)  # fmt: skip
def test_what_weft_adds_is_checked_too(tmp_path, text, said):
    metadata = GlobalMetadata(version="1.0.0", attr=[Attribute(name="weft", string_val=text)])
    for rank in range(2):
        call = collective(0, CollectiveType.ALL_REDUCE, 64)
        (tmp_path / f"x.{rank}.et").write_bytes(framed(metadata.SerializeToString()) + call)
    assert refusal(tmp_path / "x").startswith(f"x.0.et: attribute 'weft': {said}" if said else "x")
