"""Workloads of SimAI and AICB."""

import os
from pathlib import Path

import pytest

from weft import Fabric, topologies
from weft.jobs.traces import TraceError, read_trace
from weft.paths import ROOT
from weft.traffic.jobs import CollectiveCall, Kind

EXAMPLE = ROOT / "examples" / "traces" / "simai.txt"
SIMAI = os.environ.get("WEFT_SIMAI", "")
POLICY = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
HEAD = f"{POLICY} model_parallel_NPU_group: 2 ep: 2 pp: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0\n"
BOTH = HEAD.replace("tes: 0", "tes: 1 5").replace("ints: 0", "ints: 1 0")
LAYER = "a -1 10 ALLREDUCE 64 20 NONE 0 30 ALLREDUCE 256 5\n"


@pytest.fixture
def read(tmp_path):
    def of(text: str, name: str = ""):
        (tmp_path / "x.txt").write_text(text)
        return read_trace(tmp_path / "x.txt", name)

    return of


def test_a_step_is_forward_then_both_gradients(read):
    job = read(HEAD + "2\n" + LAYER + LAYER.replace("a", "b", 1)).job
    operations = job.parts[0].operations
    kinds = "".join("C" if kind == Kind.COLLECTIVE else "c" for kind in operations.kind.tolist())
    # Forward a, b; then of b and a: both gradients, the weights' collective, the update.
    assert kinds == "cCcC" + "ccCc" * 2
    durations = (operations.duration_ps // 1000).tolist()
    assert durations == [10, 0, 10, 0, 20, 30, 0, 5, 20, 30, 0, 5]
    followed = [operations.predecessors(each).tolist() for each in range(len(operations))]
    assert followed == [[], [0], [1], [2], [3], [4], [5], [6], [5], [8], [9, 6], [10]]
    assert job.calls == (CollectiveCall("allreduce", 64), CollectiveCall("allreduce", 256))


def test_groups_are_those_of_simai(read):
    types = ("ALLREDUCE", "ALLTOALL_EP", "ALLREDUCE", "ALLGATHER_DP_EP")
    rows = [
        f"a -1 1 {types[0]} 64 1 {types[1]} 64 1 {types[2]} 64 1\n",
        f"b -1 1 NONE 0 1 NONE 0 1 {types[3]} 64 1\n",
    ]
    job = read(HEAD + "2\n" + "".join(rows)).job
    groups = {group.name: group.ranks for group in job.groups}
    assert groups["tensor 1"] == (2, 3)
    assert groups["expert 0"] == (0, 2)
    assert groups["expert data 1"] == (1, 5)
    assert groups["data 1"] == (1, 3, 5, 7)
    assert len(groups) == 4 + 4 + 4 + 2
    assert {len({id(part.operations) for part in job.parts})} == {1}


def test_forward_passes_are_recomputed_from_checkpoints(read):
    head = HEAD.replace("checkpoints: 0 checkpoint_initiates: 0", "checkpoints: 1 0 checkpoint_initiates: 1 2")
    rows = "".join(f"l{number} -1 {number + 1} NONE 0 9 NONE 0 9 NONE 0 0\n" for number in range(3))
    operations = read(head + "3\n" + rows).job.parts[0].operations
    assert (operations.duration_ps // 1000).tolist() == [1, 2, 3, 1, 2, 9, 9, 9, 9, 9, 9]


def test_a_micro_benchmark_has_collectives_of_all_ranks(read):
    job = read("MICRO all_gpus: 4\n2\n" + "m -1 1 NONE 0 1 NONE 0 0 ALLTOALL 4096 1\n" * 2).job
    assert [group.ranks for group in job.groups] == [(0, 1, 2, 3)]
    assert job.parts[0].operations.kind.tolist() == [Kind.COLLECTIVE] * 2


def test_pipelines_are_said_not_to_be_read(read):
    assert read(HEAD.replace("pp: 1", "pp: 4") + "1\n" + LAYER).notes[0].startswith("pp: 4 is not read")


def test_the_example_takes_as_long_as_its_parts():
    job = read_trace(EXAMPLE).job
    with Fabric(topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2), clock="virtual") as fabric:
        ran = fabric.run_job(job)
    operations = job.parts[0].operations
    busy_ps = int(operations.duration_ps[operations.stream == 0].sum())
    assert busy_ps == 610_001_000
    assert ran.duration_ps > busy_ps


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.txt: 0 layers (valid: a header, and 1 layers)"),
        ("HYBRID_DLRM all_gpus: 1\n", "line 1: 'HYBRID_DLRM' (valid: HYBRID_TRANSFORMER_FWD_IN_BCKWD, "),
        ("MICRO\n1\n" + LAYER, "line 1: all_gpus is missing, so the number of ranks is not known"),
        (HEAD.replace(": 2 ep", ": 3 ep") + "1\n" + LAYER, "model_parallel_NPU_group: 3 of 8 ranks (valid: a divisor"),
        (HEAD.replace("ep: 2", "ep: 3") + "1\n" + LAYER, "line 1: ep: 3 of 4 ranks (valid: a divisor of 4)"),
        (HEAD.replace("gpus: 8", "gpus: 99999") + "1\n" + LAYER, "line 1: '99999' (valid: 1 to 65536)"),
        (HEAD + "x\n" + LAYER, "line 2: 'x' (valid: 1 to 1000000)"),
        (HEAD + "2\n" + LAYER, "x.txt: 1 layers (valid: a header, and 2 layers)"),
        (HEAD + "1\n" + LAYER * 2, "line 4: more than 1 layers (valid: 1, as line 2 says)"),
        (HEAD + "1\na -1 1\n", "line 3: 3 words (valid: 12: name dependency "),
        (HEAD + "1\n" + LAYER.replace("ALLREDUCE 64", "SORT 64"), "line 3: type 'SORT' (valid: NONE, or ALLREDUCE, "),
        (HEAD + "1\n" + LAYER.replace(" 10 ", " -1 "), "line 3: '-1' (valid: 0 to "),
        (HEAD + "1\n" + LAYER.replace("64", "9" * 30), "line 3: '9999999"),
        (BOTH + "1\n" + LAYER, "initiates has layer 5"),
        (HEAD.replace("tes: 0", "tes: 1 0") + "1\n" + LAYER, "initiates has layer 0 before any of checkpoints"),
        (HEAD.replace("ints: 0", "ints: 2 0") + "1\n" + LAYER, "checkpoints: 2 and 1 layers (valid: 2 layers)"),
    ],
)  # fmt: skip
def test_workloads_that_cannot_be_are_refused_by_line(read, text, said):
    with pytest.raises(TraceError) as error:
        read(text, "simai")
    assert said in str(error.value)


def test_recomputing_without_end_is_refused_before_it_is_built(read):
    layers = 20_000
    initiates = " ".join(map(str, range(layers)))
    head = HEAD.replace("ints: 0", "ints: 1 0").replace("tes: 0", f"tes: {layers} {initiates}")
    with pytest.raises(TraceError, match="operations up to here"):
        read(head + f"{layers}\n" + LAYER * layers)


@pytest.mark.skipif(not SIMAI, reason="WEFT_SIMAI names no clone of aliyun/SimAI")
def test_the_examples_of_simai_are_read(read):
    examples = Path(SIMAI) / "example"
    job = read_trace(examples / "microAllReduce.txt").job
    assert job.calls == (CollectiveCall("allreduce", 1 << 24), CollectiveCall("allreduce", 1 << 26))
    text = (examples / "workload_analytical.txt").read_text()
    with pytest.raises(TraceError, match="operations up to here"):
        read(text)
    job = read(text.replace("all_gpus: 9216", "all_gpus: 32")).job
    assert len(job.parts[0].operations.of_kind(Kind.COLLECTIVE)) == 3322
