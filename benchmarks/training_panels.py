"""What steps of training found, one class a shape, and the picture of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from curves import Panel


@dataclass(frozen=True)
class DataPoint:
    """A step of replicas, each on a host; `over_closed_form` is the exposed time over 1 - 1/d."""

    data: int
    step_ms: float
    exposed_ms: float
    over_closed_form_ms: float


@dataclass(frozen=True)
class ShardedPoint:
    """A fully sharded step; throughput is relative to eight ranks."""

    ranks: int
    step_ms: float
    exposed_ms: float
    tflops: float


@dataclass(frozen=True)
class InterleavedPoint:
    """Throughput of both schedules at a batch size; `bound` is what bubbles alone would make of it."""

    batch: int
    tflops_1f1b: float
    tflops_interleaved: float
    gain: float
    bound: float


@dataclass(frozen=True)
class TensorPoint:
    """A division of 64 ranks among tensor and pipeline parallelism."""

    tensor: int
    pipeline: int
    tflops: float
    exposed_tensor_ms: float
    bubble_ms: float


@dataclass(frozen=True)
class ExpertsPoint:
    """Tokens to experts and back; a limit of 0 hosts means that each copy goes to its expert directly.

    Times are of the forward pass's way there and back, on average over the ranks. `gb_per_s` is the dispatch's as
    DeepEP counts: each token once for each host, its own included, over the time between hosts.
    """

    hosts_per_token: int
    gb_between_hosts: float
    between_hosts_us: float
    within_hosts_us: float
    gb_per_s: float


def _above(value: float, step: float) -> float:
    """Return the next multiple of a step, for an axis of round numbers."""
    return math.ceil(value / step) * step


def data_panel(points: Sequence[DataPoint]) -> Panel:
    """Exposed time against replicas, beside 1 - 1/d."""
    most = points[-1].over_closed_form_ms
    return Panel(
        "Exposed data-parallel communication",
        "data-parallel degree",
        "ms",
        20,
        _above(most, 5),
        {
            "steps": [(each.data, each.exposed_ms) for each in points],
            "(1 - 1/d) x a constant": [(d, most * (1 - 1 / d)) for d in range(1, points[-1].data + 1)],
        },
    )


def sharded_panel(points: Sequence[ShardedPoint]) -> Panel:
    """Throughput relative to eight ranks, beside the published ends."""
    first = points[0].tflops
    return Panel(
        "Fully sharded: throughput a rank",
        "ranks",
        "share of that of 8",
        600,
        1.5,
        {
            "steps": [(each.ranks, each.tflops / first) for each in points],
            "FSDP, T5-11B (ends published)": [(8, 1), (512, 0.93)],
        },
    )


def interleaved_panel(points: Sequence[InterleavedPoint]) -> Panel:
    """Throughput of both schedules against the batch."""
    return Panel(
        "175B on 96 ranks",
        "batch size",
        "TFLOP/s a rank",
        points[-1].batch,
        200,
        {
            "interleaved": [(each.batch, each.tflops_interleaved) for each in points],
            "1F1B": [(each.batch, each.tflops_1f1b) for each in points],
        },
    )


def tensor_panel(points: Sequence[TensorPoint]) -> Panel:
    """Throughput against the ranks that share tensors."""
    steps = [(float(np.log2(each.tensor)), each.tflops) for each in points]
    return Panel(
        "162B on 64 ranks, batch 32",
        "log2 of the ranks that share tensors",
        "TFLOP/s a rank",
        5,
        150,
        {"steps": steps},
    )


def experts_panel(points: Sequence[ExpertsPoint]) -> Panel:
    """Time between hosts, and within them, against the limit."""
    limited = sorted((each for each in points if each.hosts_per_token), key=lambda each: each.hosts_per_token)
    most = max(each.between_hosts_us + each.within_hosts_us for each in limited)
    return Panel(
        "64 ranks, tokens to experts and back",
        "hosts a token at most",
        "µs",
        10,
        _above(most, 500),
        {
            "between hosts": [(each.hosts_per_token, each.between_hosts_us) for each in limited],
            "and within": [(each.hosts_per_token, each.between_hosts_us + each.within_hosts_us) for each in limited],
        },
    )
