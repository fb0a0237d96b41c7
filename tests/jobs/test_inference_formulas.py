"""Inference in closed form: KV caches against published figures, operations and times of prompts and iterations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.jobs.accelerators import ACCELERATORS
from weft.jobs.compute_times import ComputeTimes
from weft.jobs.formulas.inference import decode_flops, decode_read, layer_read, stored_parameters
from weft.jobs.formulas.kv_cache import (
    heads_of_rank,
    kv_bytes_per_token,
    kv_bytes_per_token_of_rank,
    kv_heads,
    kv_shares,
)
from weft.jobs.formulas.parameters import active_parameters, model_parameters
from weft.jobs.inference.instance_times import InstanceTimes
from weft.jobs.inference.instances import PrefillInstances
from weft.jobs.models import MODELS, Transformer
from weft.jobs.traces.roofline import roofline_of
from weft.jobs.training_plan import TrainingPlan

SMALL = Transformer(layers=2, hidden=512, heads=8, feed_forward=1024, vocabulary=1000, sequence=64)
H100 = ACCELERATORS["H100"]


@pytest.mark.parametrize(
    ("model", "published"),
    [
        ("70B", 320 * 1024),  # 80 layers, 8 KV heads of 128, FP16
        ("7B", 512 * 1024),  # Llama 2 7B, 32 heads of 128
        ("405B", 516_096),  # DeepSeek-AI 2025, "Insights into DeepSeek-V3", table 1: 516.096 KB
        ("DeepSeek-V3", 70_272),  # the same table: 70.272 KB
    ],
)
def test_a_tokens_cache_is_as_large_as_published(model, published):
    assert kv_bytes_per_token(MODELS[model], 2) == published


@given(st.sampled_from([1, 2, 4, 8]), *[st.sampled_from([1, 2, 4, 8, 16])] * 2, st.booleans())
def test_each_decode_rank_gets_its_heads_once(count, prefill, decode, is_latent):
    latent = MODELS["DeepSeek-V3"].latent_attention if is_latent else None
    model = SMALL.model_copy(update={"kv_heads": count, "heads": 16, "latent_attention": latent})
    got = [0] * decode
    for share in kv_shares(model, prefill, decode):
        held = set(heads_of_rank(model, prefill, share.source))
        wanted = set(heads_of_rank(model, decode, share.destination))
        assert share.heads <= len(held & wanted)
        got[share.destination] += share.heads
    assert got == [len(heads_of_rank(model, decode, rank)) for rank in range(decode)]
    everything = {head for rank in range(decode) for head in heads_of_rank(model, decode, rank)}
    assert everything == set(range(kv_heads(model).number))
    assert kv_bytes_per_token_of_rank(model, decode, 2) >= kv_bytes_per_token(model, 2) / decode


def test_equal_degrees_send_from_each_rank_to_its_like():
    assert [share[:2] for share in kv_shares(MODELS["70B"], 8, 8)] == [(rank, rank) for rank in range(8)]
    assert [share[:2] for share in kv_shares(MODELS["DeepSeek-V3"], 4, 4)] == [(n, n) for n in range(4)]


def test_a_long_prompt_takes_two_operations_for_each_weight_and_token():
    model, tokens = MODELS["70B"], 4096
    times = InstanceTimes(model, PrefillInstances(tensor=8), "bf16", 2)
    scores = 2 * tokens**2 * model.hidden * model.layers
    weights = model_parameters(model) - 2 * model.vocabulary * model.hidden
    expected_s = (2 * weights * tokens + scores) / (8 * H100.flops_per_s("bf16"))
    assert times.prefill_ps(tokens) == pytest.approx(expected_s * 1e12, rel=2e-3)
    assert len(times.layers_ps(tokens)) == 80
    # A short one is bound by memory: all weights but the embedding's are read once.
    read_s = (weights + model.vocabulary * model.hidden) * 2 / 8 / 3350e9
    assert times.prefill_ps(1) == pytest.approx(read_s * 1e12, rel=1e-3)


def test_an_iteration_reads_weights_and_caches():
    model = MODELS["70B"]
    times = InstanceTimes(model, PrefillInstances(tensor=8), "bf16", 2)
    weights_bytes = (model_parameters(model) - model.vocabulary * model.hidden) * 2
    first, second = times.iterations_ps(sequences=16, context_tokens=16_000, count=2).tolist()
    assert first == pytest.approx((weights_bytes + 16_000 * 327_680) / 8 / 3350e9 * 1e12, rel=1e-3)
    assert second - first == pytest.approx(16 * 327_680 / 8 / 3350e9 * 1e12, rel=1e-6)
    # So many sequences of few tokens are bound by operations.
    (computing,) = times.iterations_ps(sequences=4096, context_tokens=4096, count=1)
    flops = decode_flops(model)
    expected_s = 4096 * (flops.per_sequence + flops.per_context_token) / (8 * H100.flops_per_s("bf16"))
    assert computing == pytest.approx(expected_s * 1e12, rel=1e-6)
    assert flops.per_sequence == pytest.approx(
        2 * (active_parameters(model) - model.vocabulary * model.hidden), rel=1e-3
    )


def test_iterations_read_an_output_matrix_that_is_the_embedding():
    """A model of the GPT family stores the matrix once and reads it in every iteration; positions it looks up."""
    model = SMALL.model_copy(update={"family": "gpt"})
    assert model.is_gpt
    positions = model.sequence * model.hidden
    assert decode_read(model, 1, 2) == stored_parameters(model, 2) - positions
    # Prompts of a token are bound by memory, too.
    lone = InstanceTimes(model, PrefillInstances(), "bf16", 2)
    read_s = (model_parameters(model) - positions) * 2 / 3350e9
    assert lone.prefill_ps(1) == pytest.approx(read_s * 1e12, abs=2)


def test_what_memory_bounds_takes_longer_at_a_share_of_its_bandwidth():
    model = MODELS["70B"]
    half = PrefillInstances(tensor=8, accelerator=H100.model_copy(update={"memory_efficiency": 0.5}))
    full_times, half_times = (InstanceTimes(model, each, "bf16", 2) for each in (PrefillInstances(tensor=8), half))
    (full,), (longer,) = (each.iterations_ps(16, 16_000, 1) for each in (full_times, half_times))
    assert longer == pytest.approx(2 * full, abs=1)
    # Arithmetic bounds the layers of a long prompt.
    assert half_times.layers_ps(4096) == full_times.layers_ps(4096)
    # Traces and optimizers read the same memory.
    assert roofline_of(half.accelerator, "bf16").memory_bytes_per_s == 3350e9 / 2
    full_optimizer, half_optimizer = (
        ComputeTimes(TrainingPlan(SMALL, accelerator=each)).optimizer(0) for each in (H100, half.accelerator)
    )
    assert half_optimizer == pytest.approx(2 * full_optimizer, abs=1)


def test_latents_are_multiplied_as_they_are():
    """DeepSeek-V2, section 2.1.2: a query meets latent and rotary part, a score the latent."""
    model = MODELS["DeepSeek-V3"]
    assert decode_flops(model).per_context_token == 2 * 61 * 128 * (512 + 64 + 512)


def test_more_tokens_choose_more_experts():
    model = MODELS["DeepSeek-V3"]
    one, many = decode_read(model, 1, 8), decode_read(model, 100_000, 8)
    assert many == pytest.approx(stored_parameters(model, 8) - model.vocabulary * model.hidden / 8, rel=1e-3)
    routed = 256 * 3 * 7168 * 2048 / 8
    assert layer_read(model, 60, 1, 8) - layer_read(model, 60, 0, 8) == pytest.approx(routed * 8 / 256)
    assert one < many / 8
