"""What is known of a training step before it is run, and whether it fits."""

import pytest

from tests.refusals import refused
from weft.jobs.accelerators import ACCELERATORS
from weft.jobs.fitting import check_memory, sufficient_changes
from weft.jobs.formulas.flops import step_flops
from weft.jobs.models import MODELS
from weft.jobs.parallelism import Parallelism
from weft.jobs.plan_summary import largest_memory, summary_of
from weft.jobs.training_job import training_job
from weft.jobs.training_plan import PlanError, TrainingPlan


def test_the_ideal_step_of_a_70b_model():
    """With equal stages, m micro-batches keep p stages busy m/(m + p - 1) of the time, at half the peak."""
    parallel = Parallelism(tensor=8, sequence=True, pipeline=8, data=16)
    plan = TrainingPlan(MODELS["70B"], parallel, 32, 1, ACCELERATORS["H100"])
    summary = summary_of(plan, training_job(plan))
    assert summary.ranks == 1024
    assert summary.tokens == 16 * 32 * 8192
    assert summary.model_flops == pytest.approx(6 * 70.6e9 * summary.tokens, rel=0.15)
    # 80 layers, 64 heads of 128, sequences of 8192: forward and backward 3 x 2 x 2·s·a·d a token and layer, or half.
    assert summary.all_scores_flops - summary.model_flops == 3 * 80 * 2 * 8192 * 64 * 128 * summary.tokens
    recomputed = summary.model_flops / step_flops(plan)
    # The output's stage takes longer than the others, the optimizer and the bubble are part of the step, too.
    assert summary.ideal_utilisation == pytest.approx(0.5 * recomputed * 32 / 39, rel=0.08)
    assert summary.ideal_utilisation < 0.5 * recomputed * 32 / 39
    assert sum(summary.memory_bytes.values()) == largest_memory(plan)[1].total
    assert set(summary.sent_bytes) == {"tensor", "pipeline", "data"}
    assert summary.tokens_per_s(10**12) == summary.tokens


def test_what_does_not_fit_is_refused_with_what_would():
    plan = TrainingPlan(MODELS["7B"], Parallelism(data=8), 1, 1, ACCELERATORS["A100"])
    with refused(PlanError, problem="a rank of stage 0 needs") as problem:
        check_memory(plan)
    assert problem.value.key == "accelerator"
    assert "parallel.zero: 1; parallel.tensor: 2 with data: 4; parallel.pipeline: 2 with data: 4" in str(problem.value)
    for change in sufficient_changes(plan):
        assert change in str(problem.value)


def test_what_nothing_makes_fit():
    plan = TrainingPlan(MODELS["405B"], accelerator=ACCELERATORS["V100"], precisions=_FP16)
    with refused(PlanError, problem="no change of one key suffices"):
        check_memory(plan)


def test_what_fits_passes():
    check_memory(TrainingPlan(MODELS["7B"], Parallelism(data=8, zero=3), 1, 1, ACCELERATORS["A100"]))


_FP16 = TrainingPlan(MODELS["7B"]).precisions.model_copy(update={"compute": "fp16"})
