"""Closed forms of a training step against published figures."""

import pytest

from weft.jobs.accelerators import ACCELERATORS
from weft.jobs.formulas.flops import model_flops_per_token, output_flops, step_flops, training_time_s
from weft.jobs.formulas.inference import prefill_layer
from weft.jobs.formulas.memory import layer_activation_bytes, model_state, part_activation_bytes, rank_memory
from weft.jobs.formulas.parameters import active_parameters, model_parameters, rank_parameters
from weft.jobs.models import MODELS, Transformer
from weft.jobs.parallelism import Parallelism
from weft.jobs.training_plan import TrainingPlan

A100 = ACCELERATORS["A100"]
DAY_S = 86400


def gpt(layers: int, hidden: int, heads: int) -> Transformer:
    """Return a model of Megatron-LM's papers."""
    return Transformer(
        layers=layers,
        hidden=hidden,
        heads=heads,
        feed_forward=4 * hidden,
        vocabulary=51200,
        sequence=2048,
        family="gpt",
    )


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # Of the published weights.
        ("7B", 6_738_415_616),
        ("70B", 70_553_706_496),
        ("405B", 405_853_388_800),
        ("DeepSeek-V3", 671_026_419_200),
    ],
)
def test_models_have_their_published_parameters(name, parameters):
    assert model_parameters(MODELS[name]) == parameters


def test_gpt_3_and_deepseek_v3_have_about_the_parameters_of_their_reports():
    assert model_parameters(MODELS["GPT-3"]) == pytest.approx(174.6e9, rel=1e-3)
    # "37B activated for each token", section 2; without the embedding 36.6.
    assert active_parameters(MODELS["DeepSeek-V3"]) == pytest.approx(37e9, rel=0.02)


# Narayanan et al. 2021, table 1: layers, hidden size, heads, parameters in 10^9.
TABLE_1 = [
    (24, 2304, 24, 1.7),
    (30, 3072, 32, 3.6),
    (36, 4096, 32, 7.5),
    (40, 6144, 48, 18.4),
    (48, 8192, 64, 39.1),
    (60, 10240, 80, 76.1),
    (80, 12288, 96, 145.6),
    (96, 16384, 128, 310.1),
    (105, 20480, 128, 529.6),
    (128, 25600, 160, 1008.0),
]


@pytest.mark.parametrize(("layers", "hidden", "heads", "parameters"), TABLE_1)
def test_models_of_narayanan_table_1(layers, hidden, heads, parameters):
    model = gpt(layers, hidden, heads)
    assert round(model_parameters(model) / 1e9, 1) == parameters
    s, h, v = model.sequence, hidden, model.vocabulary
    equation_2 = 12 * layers * h**2 * (1 + 13 / (12 * h) + (v + s) / (12 * layers * h))
    assert model_parameters(model) == round(equation_2) + 2 * h, "equation 2 leaves out the last norm"
    plan = TrainingPlan(model, micro_batches=3, micro_batch=2, accelerator=A100, recomputation="full")
    equation_3 = 96 * 6 * s * layers * h**2 * (1 + s / (6 * h) + v / (16 * layers * h))
    assert step_flops(plan, causal=False) == pytest.approx(equation_3, rel=1e-12)


# Narayanan et al. 2021, table 2: the days that 300 x 10^9 tokens take, by accelerators and TFLOP/s of each.
@pytest.mark.parametrize(
    ("shape", "count", "each", "days"),
    [
        ((96, 12288, 96), 384, 153, 84),
        ((96, 12288, 96), 768, 149, 43),
        ((96, 12288, 96), 1536, 141, 23),
        ((105, 20480, 128), 560, 171, 156),
        ((105, 20480, 128), 1120, 167, 80),
        ((105, 20480, 128), 2240, 159, 42),
    ],
)
def test_days_of_narayanan_table_2(shape, count, each, days):
    plan = TrainingPlan(gpt(*shape), accelerator=A100, recomputation="full")
    seconds = 300e9 * step_flops(plan, causal=False) / plan.tokens / (count * each * 1e12)
    assert seconds / DAY_S == pytest.approx(days, rel=0.015)


def test_training_times_of_narayanan_section_5():
    assert round(training_time_s(450e9, 1.008e12, 3072, 163e12) / DAY_S) == 84
    assert round(training_time_s(300e9, 175e9, 1024, 140e12) / DAY_S) == 34


# Korthikanti et al. 2022, tables 3 and 5: shape, pipeline, parts, micro-batch, batch, seconds a step, utilisation by
# model and by hardware (%).
TABLE_5 = [
    ((48, 6144, 64), 1, 1, 4, 4, 1.10, 41.5, 43.7),
    ((96, 12288, 96), 8, 3, 1, 64, 13.75, 51.4, 52.8),
    ((105, 20480, 128), 35, 3, 1, 280, 37.83, 56.0, 57.0),
    ((128, 25600, 160), 64, 1, 1, 512, 71.49, 56.3, 57.0),
]


@pytest.mark.parametrize(
    ("shape", "stages", "parts", "micro_batch", "batch", "seconds", "model_share", "hardware_share"), TABLE_5
)
def test_utilisation_of_korthikanti_table_5(
    shape, stages, parts, micro_batch, batch, seconds, model_share, hardware_share
):
    parallel = Parallelism(
        tensor=8,
        sequence=True,
        pipeline=stages,
        virtual_stages=parts,
        schedule="interleaved" if parts > 1 else "1f1b",
    )
    plan = TrainingPlan(gpt(*shape), parallel, batch // micro_batch, micro_batch, A100)
    peak = seconds * parallel.rank_count * 312e12
    needed = plan.tokens * model_flops_per_token(plan.model, causal=False)
    # The first row's time has three digits.
    assert 100 * needed / peak == pytest.approx(model_share, rel=0.005)
    # Their equation for hardware adds 12·B·s²·h a layer for selective recomputation, the operations of the scores'
    # three passes; what is computed again is the forward pass, a third of that.
    again = step_flops(plan, causal=False) - needed
    assert 100 * (needed + 3 * again) / peak == pytest.approx(hardware_share, rel=0.006)


@pytest.mark.parametrize("tensor", [1, 8])
@pytest.mark.parametrize(("hidden", "heads", "quadratic"), [(12288, 96, 80), (20480, 128, 64)])
def test_activations_of_korthikanti_table_2(hidden, heads, quadratic, tensor):
    """5·a·s/h is 80 for GPT-3 and 64 for MT-NLG (section 5)."""

    def factor(recomputation: str, sequence: bool) -> float:
        parallel = Parallelism(tensor=tensor, sequence=sequence)
        plan = TrainingPlan(gpt(1, hidden, heads), parallel, 1, 2, A100, recomputation=recomputation)
        return layer_activation_bytes(plan, 0) / (plan.rank_tokens * hidden)

    assert factor("none", False) == 10 + 24 / tensor + quadratic / tensor
    assert factor("none", True) == (34 + quadratic) / tensor
    assert factor("selective", True) == 34 / tensor
    assert factor("full", True) == 2
    saved = 1 - factor("selective", True) / factor("none", True)
    assert round(100 * saved) == {80: 70, 64: 65}[quadratic]


def test_interleaving_holds_more_activations():
    """L·(1 + (p - 1)/(p·m)) layers on the first stage, m parts each (Korthikanti et al. 2022, section 4.2.3)."""
    for parts, schedule in ((1, "1f1b"), (3, "interleaved")):
        parallel = Parallelism(tensor=8, sequence=True, pipeline=8, virtual_stages=parts, schedule=schedule)
        plan = TrainingPlan(gpt(96, 12288, 96), parallel, 16, 1, A100)
        layer = layer_activation_bytes(plan, 5)
        embedding = part_activation_bytes(plan, 0, 0) - 96 // 8 // parts * layer
        held = rank_memory(plan, 0).activations
        layers = 96 if parts == 1 else 96 * (1 + 7 / (8 * parts))
        # Of the first part, each of which has the mask behind the embedding, as many micro-batches are held as stages.
        assert held - layers * layer == pytest.approx(8 * embedding, abs=8 * embedding)
        assert embedding < layer / 30


def test_model_state_of_zero_figure_1():
    """7.5 x 10^9 parameters on 64 replicas: 120, 31.4, 16.6 and 1.9 GB (Rajbhandari et al. 2020)."""
    found = [model_state(7_500_000_000, 64, zero).total / 1e9 for zero in range(4)]
    assert [round(each, 1) for each in found] == [120.0, 31.4, 16.6, 1.9]


def test_operations_of_deepseek_v3():
    """DeepSeek-AI 2025, "Insights into DeepSeek-V3", tables 2 and 4: 250 GFLOP a token with half of the scores.

    272.8 x 10^9 tokens a day on 2,048 accelerators are 385 TFLOP/s each, or 432 with all scores.
    """
    model = MODELS["DeepSeek-V3"]
    assert model_flops_per_token(model) == pytest.approx(250e9, rel=0.005)
    per_s = 272.8e9 / DAY_S / 2048
    assert per_s * model_flops_per_token(model) == pytest.approx(385e12, rel=0.005)
    assert per_s * model_flops_per_token(model, causal=False) == pytest.approx(432e12, rel=0.005)


@pytest.mark.parametrize(
    "parallel",
    [
        Parallelism(tensor=4, sequence=True, pipeline=4, data=2),
        Parallelism(pipeline=16, data=128, expert=64, zero=1),
        Parallelism(tensor=2, sequence=True, context=2, pipeline=3, data=4, expert=8),
        Parallelism(pipeline=3, data=4, virtual_stages=2, schedule="interleaved"),
    ],
)
def test_ranks_share_all_parameters(parallel):
    """What the stages' ranks have is the model, but for what every tensor rank has."""
    plan = TrainingPlan(MODELS["DeepSeek-V3"], parallel, 48)
    dense, experts = zip(*(rank_parameters(plan, stage) for stage in range(parallel.pipeline)), strict=True)
    found = parallel.tensor * sum(dense) + parallel.tensor * parallel.expert * sum(experts)
    extra = found - model_parameters(plan.model)
    assert (extra == 0) if parallel.tensor == 1 else 0 < extra < 0.002 * parallel.tensor * model_parameters(plan.model)


def test_prefill_and_training_count_the_scores_alike():
    """A prompt as long as the model's sequences takes a third of what training on it takes, but for the output."""
    model = MODELS["7B"]
    layers = sum(prefill_layer(model, layer, model.sequence, 1).flops for layer in range(model.layers))
    training = model.sequence * (model_flops_per_token(model) - 3 * output_flops(model))
    assert 3 * layers == training
