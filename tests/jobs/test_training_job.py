"""Jobs of training steps: bubbles of pipelines, bytes by kind, groups."""

from dataclasses import replace

import numpy as np
import pytest

from tests.refusals import refused
from weft.jobs.accelerators import ACCELERATORS
from weft.jobs.compute_times import ComputeTimes
from weft.jobs.compute_variation import ComputeVariation
from weft.jobs.formulas.flops import step_flops
from weft.jobs.formulas.memory import rank_memory
from weft.jobs.formulas.messages import boundary_bytes, unit_bytes
from weft.jobs.models import MODELS, Experts, Transformer
from weft.jobs.parallelism import Parallelism
from weft.jobs.pipeline_schedules import PIPELINE_SCHEDULES, Pass, most_held
from weft.jobs.traffic_bytes import TRAINING_TRAFFIC, sent_bytes
from weft.jobs.training_job import called_algorithms, pipeline_job, training_job
from weft.jobs.training_plan import PlanError, Precisions, TrainingPlan
from weft.traffic.jobs.breakdown import breakdowns
from weft.traffic.jobs.checks import check_job
from weft.traffic.jobs.ideal import ideal_times
from weft.traffic.jobs.operations import Kind

LAYERS = 48
SMALL = Transformer(layers=LAYERS, hidden=512, heads=8, kv_heads=4, feed_forward=1024, vocabulary=1000, sequence=256)
MIXED = SMALL.model_copy(update={"experts": Experts(count=16, top_k=4, feed_forward=256, shared=1, dense_layers=4)})


def plan_of(model: Transformer = SMALL, micro_batches: int = 8, **parallel) -> TrainingPlan:
    options = {"recomputation": parallel.pop("recomputation", "none")}
    return TrainingPlan(model, Parallelism(**parallel), micro_batches, 2, ACCELERATORS["A100"], **options)


def end_ps(plan: TrainingPlan) -> int:
    return max(each.end_ps for each in ideal_times(pipeline_job(plan)))


@pytest.fixture
def equal_stages(monkeypatch):
    """Stages take the same time: neither the output nor the optimizer takes any."""
    monkeypatch.setattr(ComputeTimes, "output", lambda self: 0)
    monkeypatch.setattr(ComputeTimes, "optimizer", lambda self, stage: 0)


def passes_ps(plan: TrainingPlan) -> tuple[int, int, int]:
    """Return the times of a stage's passes for a micro-batch: forward, gradients of inputs, of weights."""
    times, layers = ComputeTimes(plan), plan.model.layers // plan.parallel.pipeline
    other = times.feed_forward(0)
    return (
        layers * (times.attention_forward(0) + other),
        layers * (times.attention_inputs(0) + other),
        layers * (times.attention_weights(0) + other),
    )


@pytest.mark.usefixtures("equal_stages")
@pytest.mark.parametrize(("schedule", "parts"), [("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("interleaved", 3)])
@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 2), (2, 4), (4, 4), (4, 16), (8, 8)])
def test_bubble_of_schedules(schedule, parts, stages, micro_batches):
    """(p - 1)/m of the ideal time, with v parts (p - 1)/(m·v) (Narayanan et al. 2021, section 2.2)."""
    plan = plan_of(micro_batches=micro_batches, pipeline=stages, schedule=schedule, virtual_stages=parts)
    ideal_ps = micro_batches * sum(passes_ps(plan))
    bubble_ps = end_ps(plan) - ideal_ps
    assert bubble_ps * micro_batches * parts == (stages - 1) * ideal_ps


@pytest.mark.usefixtures("equal_stages")
@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 2), (2, 3), (4, 4), (4, 12), (6, 24)])
def test_bubble_of_the_zero_bubble_schedule(stages, micro_batches):
    """ZB-H1: (p - 1)(F + B - W), with as many activations as 1F1B's first stage (Qi et al. 2023, table 2)."""
    plan = plan_of(micro_batches=micro_batches, pipeline=stages, schedule="zero-bubble")
    forward, inputs, weights = passes_ps(plan)
    assert end_ps(plan) - micro_batches * (forward + inputs + weights) == (stages - 1) * (forward + inputs - weights)
    assert {most_held(steps) for steps in plan.stage_steps} == {min(stages, micro_batches)}


@pytest.mark.parametrize("name", PIPELINE_SCHEDULES)
def test_every_schedule_runs_each_pass_once(name):
    kind = PIPELINE_SCHEDULES[name]
    parts = 3 if kind.has_parts else 1
    expected = len(Pass) if kind.splits_backward else len(Pass) - 1
    for stage in range(4):
        steps = kind.steps(stage, 4, 8, parts)
        assert len(set(steps)) == len(steps) == 8 * parts * expected
        assert {step.part for step in steps} == set(range(parts))


def test_activations_in_flight():
    """GPipe holds all micro-batches, 1F1B as many as stages follow (Narayanan et al. 2021, section 2.2.1)."""
    held = {
        name: [most_held(PIPELINE_SCHEDULES[name].steps(stage, 4, 16, 1)) for stage in range(4)]
        for name in ("gpipe", "1f1b")
    }
    assert held == {"gpipe": [16] * 4, "1f1b": [4, 3, 2, 1]}


SHAPES = [
    {"tensor": 2},
    {"tensor": 4, "sequence": True, "pipeline": 2, "data": 2},
    {"tensor": 2, "pipeline": 4, "schedule": "interleaved", "virtual_stages": 2, "zero": 1, "data": 2},
    {"pipeline": 2, "schedule": "zero-bubble", "data": 4},
    {"data": 4, "zero": 3},
    {"data": 4, "zero": 2, "context": 2},
    {"data": 2, "zero": 2, "pipeline": 2, "schedule": "zero-bubble"},
    {"data": 2, "zero": 3, "pipeline": 4, "schedule": "interleaved", "virtual_stages": 2, "recomputation": "full"},
    {"tensor": 2, "context": 2, "pipeline": 2, "recomputation": "full"},
]
MIXED_SHAPES = [
    {"data": 4, "expert": 4},
    {"data": 4, "expert": 2, "zero": 1, "pipeline": 2},
    {"tensor": 2, "sequence": True, "data": 2, "context": 2, "expert": 4, "pipeline": 2, "schedule": "gpipe"},
]


@pytest.mark.parametrize(
    ("model", "shape"), [*((SMALL, each) for each in SHAPES), *((MIXED, each) for each in MIXED_SHAPES)]
)
def test_jobs_come_to_their_end_in_the_ideal_time(model, shape):
    """All ranks together take as long as one rank of each stage."""
    plan = plan_of(model, **shape)
    job = training_job(plan)
    assert len(job.parts) == plan.parallel.rank_count
    assert len({id(part.operations) for part in job.parts}) == plan.parallel.pipeline
    check_job(job)
    assert max(each.end_ps for each in ideal_times(job)) == end_ps(plan)


def test_ranks_are_numbered_as_megatron_numbers_them():
    """Narayanan et al. 2021; Megatron-LM's order tp-cp-ep-dp-pp."""
    parallel = Parallelism(tensor=2, context=2, data=4, pipeline=3, expert=4)
    assert parallel.rank_count == 48
    assert parallel.tensor_group(21) == (20, 21)
    assert parallel.context_group(21) == (21, 23)
    assert parallel.data_group(21) == (17, 19, 21, 23, 25, 27, 29, 31)
    assert parallel.expert_group(21) == (17, 19, 21, 23)
    assert parallel.expert_data_group(21) == (21, 29)
    assert [parallel.stage_peer(21, stage) for stage in range(3)] == [5, 21, 37]
    assert all(parallel.rank_at(parallel.place(rank)) == rank for rank in range(48))


def test_groups_of_a_job_are_complete():
    job = training_job(plan_of(MIXED, tensor=2, sequence=True, context=2, data=4, expert=4, pipeline=2))
    for part in job.parts:
        for number in part.groups:
            assert all(number in job.parts[rank].groups for rank in job.groups[number].ranks)
    assert len(set(job.groups)) == len(job.groups)


def test_uneven_layers_leave_the_ends_fewer():
    """Grattafiori et al. 2024: 126 layers in 16 stages, one fewer in the first and in the last."""
    parallel = Parallelism(pipeline=16)
    counts = [len(parallel.layers_of(126, stage)) for stage in range(16)]
    assert counts == [7, *[8] * 14, 7]
    interleaved = Parallelism(pipeline=4, virtual_stages=2)
    order = [each for part in range(2) for stage in range(4) for each in interleaved.layers_of(13, stage, part)]
    assert order == list(range(13))


BOUNDARY = 2 * 256 * 512 * 2
"""b·s·h elements of bf16."""


def test_bytes_of_tensor_and_pipeline_parallelism():
    """Narayanan et al. 2021, section 3.2: b·s·h elements a boundary; 8·b·s·h·(t - 1)/t a layer and micro-batch."""
    plan = plan_of(tensor=4, pipeline=3)
    job = training_job(plan)
    middle = sent_bytes(job, 4)
    assert middle["pipeline"] == 2 * 8 * BOUNDARY
    layers = LAYERS // 3
    assert middle["tensor"] == 8 * layers * 4 * 2 * BOUNDARY * 3 // 4
    # One further all-reduce behind the embedding, one in front of the gradients of the output.
    each = 8 * 2 * BOUNDARY * 3 // 4
    assert sent_bytes(job, 0)["tensor"] == middle["tensor"] + each == sent_bytes(job, 8)["tensor"]
    assert sent_bytes(job, 0)["pipeline"] == 8 * BOUNDARY


def test_bytes_with_sequence_parallelism():
    """As many bytes as all-reduces, and an all-gather more for each part (Korthikanti et al. 2022, section 4.2.2)."""
    middle = sent_bytes(training_job(plan_of(tensor=4, sequence=True, pipeline=3)), 4)
    assert middle["pipeline"] == 2 * 8 * BOUNDARY // 4
    pairs, again = 4, 2
    assert middle["tensor"] == 8 * (LAYERS // 3) * (2 * pairs + again) * BOUNDARY * 3 // 4


@pytest.mark.parametrize(
    ("zero", "transfers", "precision"),
    [(0, 2, (4, 4)), (1, 2, (4, 2)), (2, 2, (4, 2)), (3, 3, (4, 2))],
)
def test_bytes_of_data_parallelism(zero, transfers, precision):
    """Gradients are reduced and results gathered; ZeRO-3 gathers weights twice (Rajbhandari et al. 2020, section 7)."""
    plan = plan_of(micro_batches=1, data=4, zero=zero)
    gradients, weights = (each * 3 / 4 * _parameters(plan) for each in precision)
    expected = gradients + (transfers - 1) * weights
    # Sizes are rounded up to whole elements for every rank.
    assert sent_bytes(training_job(plan), 0)["data"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("zero", "reductions", "gathers"), [(1, 1, 1), (2, 8, 1), (3, 8, 2 * 8)])
@pytest.mark.parametrize("schedule", ["1f1b", "zero-bubble"])
def test_bytes_of_sharded_stages(schedule, zero, reductions, gathers):
    """Sharded gradients are reduced after each of 8 micro-batches, sharded weights gathered before both its passes."""
    plan = plan_of(data=4, pipeline=3, zero=zero, schedule=schedule)
    layer = unit_bytes(plan, 0, "gradients")[0], unit_bytes(plan, 0, "weights")[0]
    expected = (reductions * layer[0] + gathers * layer[1]) * (LAYERS // 3) * 3 / 4
    # The middle stage has layers only. Sizes are rounded up to whole elements for every rank.
    assert sent_bytes(training_job(plan), 4)["data"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("zero", "shares"), [(0, 1), (1, 1), (2, 4), (3, 4)])
def test_the_ends_of_a_pipeline_sum_the_embedding_that_they_hold(zero, shares):
    """GPT's first and last stage sum the embedding's gradients: of a shard where these are sharded, and after that."""
    model = SMALL.model_copy(update={"family": "gpt"})
    plan = plan_of(model, micro_batches=4, data=4, pipeline=2, zero=zero)
    operations = training_job(plan).parts[0].operations
    boundary = 4 * boundary_bytes(plan)
    whole = plan.model.vocabulary * plan.model.hidden * plan.precisions.bytes_of("gradients")
    assert sent_bytes(training_job(plan), 0)["pipeline"] == pytest.approx(boundary + whole / shares, rel=1e-5)
    names = np.array(operations.categories)[operations.category]
    (summed,) = [row for row in operations.of_kind(Kind.COLLECTIVE) if names[row] == "pipeline"]
    reduced = max(row for row in operations.of_kind(Kind.COLLECTIVE)[:-1] if names[row] == "data" and row < summed)
    assert (reduced in operations.predecessors(summed)) == (zero >= 2)


def _parameters(plan: TrainingPlan) -> int:
    memory = rank_memory(TrainingPlan(plan.model, accelerator=plan.accelerator), 0)
    return memory.weights // 2


def test_bytes_of_expert_parallelism():
    """Two all-to-alls a layer each way, tokens × top-k × h elements; FP8 there and BF16 back, as DeepSeek-V3."""
    model = MODELS["DeepSeek-V3"].model_copy(update={"layers": 8})
    plan = TrainingPlan(
        model, Parallelism(data=8, expert=8), 2, 1, precisions=Precisions(dispatch="fp8", activations="bf16")
    )
    layers, elements = 5, 4096 * 8 * 7168
    assert sent_bytes(training_job(plan), 3)["expert"] == 2 * 2 * layers * elements * (1 + 2) * 7 // 8


def test_bytes_of_context_parallelism():
    """Keys and values are gathered forward and backward, their gradients reduced: whole sequences of 4 heads of 64."""
    plan = plan_of(context=2)
    gathered = 2 * 256 * 2 * 4 * 64 * 2
    assert sent_bytes(training_job(plan), 0)["context"] == 8 * LAYERS * 3 * gathered // 2


def test_computation_of_a_step_is_its_operations():
    plan = plan_of(data=2, pipeline=2, recomputation="selective")
    job = training_job(plan)
    compute_ps = 0
    for part in job.parts:
        operations = part.operations
        rows = operations.of_kind(Kind.COMPUTE)
        names = np.array(operations.categories)[operations.category[rows]]
        compute_ps += int(operations.duration_ps[rows][names != "optimizer"].sum())
    reached = plan.accelerator.flops_per_s("bf16")
    assert compute_ps / 1e12 == pytest.approx(step_flops(plan) / reached, rel=1e-6)


def test_stragglers_and_jitter():
    plan = plan_of(data=4)
    plain, late = end_ps(plan), training_job(plan, ComputeVariation(stragglers={2: 1.5}))
    times = [each.end_ps for each in ideal_times(late)]
    # The straggler holds back the rest until gradients are reduced; its own optimizer ends last.
    assert max(times) == times[2] == pytest.approx(1.5 * plain, rel=1e-6)

    def durations(seed: int) -> list[list[int]]:
        job = training_job(plan, ComputeVariation(jitter=0.1, seed=seed))
        return [part.operations.duration_ps.tolist() for part in job.parts]

    assert durations(1) == durations(1) != durations(2)
    assert durations(1)[0] != durations(1)[1]
    expected = training_job(plan).parts[0].operations.duration_ps
    factors = np.array(durations(1))[:, expected > 0] / expected[expected > 0]
    assert np.std(np.log(factors)) == pytest.approx(0.1, rel=0.2)
    with refused(PlanError, valid="0 to 3", problem="rank 4"):
        training_job(plan, ComputeVariation(stragglers={4: 2}))


@pytest.mark.parametrize(
    ("model", "changes", "key", "message"),
    [
        (SMALL, {"tensor": 3}, "parallel.tensor", {"problem": "3 does not divide the model's"}),
        (SMALL, {"tensor": 8}, "parallel.tensor", {"problem": "kv_heads"}),
        (SMALL, {"context": 3}, "parallel.context", {"problem": "sequence, 256 (nearest: 2 or 4)"}),
        (SMALL, {"pipeline": 49}, "parallel.pipeline", {"valid": "up to 48", "problem": "49 stages of 1 parts for 48"}),
        (SMALL, {"expert": 2, "data": 2}, "parallel.expert", {"valid": "1", "problem": "without experts"}),
        (MIXED, {"expert": 3, "data": 3}, "parallel.expert", {"problem": "count, 16 (nearest: 2 or 4)"}),
        (MIXED, {"expert": 4, "data": 6}, "parallel.expert", {"problem": "product of context and data, 6"}),
        (MIXED, {"tensor": 2}, "parallel.sequence", {"valid": "true"}),
        (SMALL, {"virtual_stages": 2}, "parallel.schedule", {"problem": "valid: 1, or schedule"}),
        (
            SMALL,
            {"pipeline": 3, "virtual_stages": 2, "schedule": "interleaved"},
            "parallel.schedule",
            {"problem": "8 with 3 stages of an"},
        ),
    ],
)  # fmt: skip
def test_plans_that_do_not_fit_together(model, changes, key, message):
    with refused(PlanError, **message) as problem:
        plan_of(model, **changes)
    assert problem.value.key == key


def test_a_precision_that_the_accelerator_lacks():
    with refused(PlanError, valid="bf16, fp16, tf32, fp32", problem="fp8, which the accelerator lacks"):
        TrainingPlan(SMALL, accelerator=ACCELERATORS["A100"], precisions=Precisions(compute="fp8"))


@pytest.mark.parametrize("model", [SMALL, MIXED], ids=["dense", "experts"])
def test_without_communication_ranks_compute_or_have_bubbles(model):
    plan = plan_of(model, pipeline=4, data=2, expert=1)
    job = training_job(plan)
    times = ideal_times(job)
    for found, part in zip(breakdowns(job, times), job.parts, strict=True):
        assert found.compute_ps.total() == part.operations.duration_ps.sum()
        assert found.exposed_ps.total() == 0
        assert found.total_ps == end_ps(plan)
    # What is no bubble of the pipeline is a wait for the replica, or for the stage with the output: none here.
    assert {found.stall_ps for found in breakdowns(job, times)} == {0}


def test_a_straggler_stalls_the_rest():
    plan = plan_of(data=4)
    job = training_job(plan, ComputeVariation(stragglers={2: 1.5}))
    found = breakdowns(job, ideal_times(job))
    assert found[2].stall_ps == 0 == found[2].bubble_ps
    assert found[0].stall_ps > 0.4 * found[0].compute_ps.total()
    assert len({each.total_ps for each in found}) == 1


@pytest.mark.parametrize(
    "parallel",
    [
        {"data": 4, "tensor": 2, "context": 2},
        {"data": 4, "tensor": 2, "sequence": True, "zero": 3},
        {"data": 2, "pipeline": 4, "zero": 1},
        {"data": 4, "expert": 2, "tensor": 2, "sequence": True, "model": MIXED},
        {"data": 1, "context": 1, "tensor": 4},
    ],
)
def test_algorithms_are_checked_for_the_collectives_that_groups_call(parallel):
    plan = plan_of(**parallel)
    named = {kind: "in-network" for kind in TRAINING_TRAFFIC if kind != "expert"}
    named["expert"] = "direct"
    job = training_job(replace(plan, algorithms=named))
    called = set()
    for part in job.parts:
        categories = part.operations.categories
        for row in part.operations.of_kind(Kind.COLLECTIVE):
            group, call = part.operations.calls[part.operations.target[row]]
            category, made = categories[part.operations.category[row]], job.calls[call]
            assert made.algorithm == named[category]
            called.add((category, made.collective, job.groups[part.groups[group]].ranks))
    checked = called_algorithms(replace(plan, algorithms=named))
    assert called == {(*key, group) for key, groups in checked.items() for group in groups}
