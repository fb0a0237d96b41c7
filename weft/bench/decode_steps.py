"""Decode steps of a mixture of experts: each layer dispatches tokens over the fabric and combines the results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.bench.expert_dispatch import CANONICAL, Dispatches, even_sizes, least_time_ps
from weft.bench.flow_groups import FlowGroups
from weft.bench.setup import NotApplicableError, Setup
from weft.jobs.inference.instance_times import InstanceTimes
from weft.jobs.inference.instances import PrefillInstances
from weft.jobs.models import MODELS
from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_MS, PS_PER_US
from weft.trials import TrialRun

PRESET = "DeepSeek-V3"
EXPERT_LAYERS = 58
"""Layers with experts of DeepSeek-V3."""
STALL_PS = 100 * PS_PER_MS
"""Time between tokens from which the draft counts a stall."""
_MODEL = CANONICAL["M4"]
_CONTEXT_TOKENS = 2048
_MOST_RANKS = 96
_PHASES = 2
"""A dispatch and a combination, of the same size."""


@dataclass(frozen=True)
class DecodeSteps:
    """Tokens of an expert-parallel group, one behind the other.

    Attributes:
        setup: the fabric.
        tokens: steps, each of which gives every sequence of the batch a token.
        layers: with experts, of DeepSeek-V3's 58.
        batch: sequences of each rank.
        first_ps: start of the first dispatch.
        hosts: by place in `Subject.servers`; all for None.
    """

    setup: Setup
    tokens: int
    layers: int
    batch: int
    first_ps: int = 0
    hosts: tuple[int, ...] | None = None

    @cached_property
    def members(self) -> list[int]:
        """The ranks of the group, up to the draft's 96."""
        servers = self.setup.subject.servers
        hosts = range(len(servers)) if self.hosts is None else self.hosts
        return [rank for host in hosts for rank in servers[host]][:_MOST_RANKS]

    @cached_property
    def dispatches(self) -> Dispatches:
        """All dispatches and combinations. Each has time to end on an idle fabric before the next begins."""
        sizes = even_sizes(_MODEL, self.batch, len(self.members))
        interval_ps = 2 * least_time_ps(self.setup, self.members, sizes) + 15 * PS_PER_US
        return Dispatches(self.members, sizes, self.tokens * self.layers * _PHASES, interval_ps, self.first_ps)

    @cached_property
    def groups(self) -> FlowGroups:
        """The flows."""
        return self.dispatches.groups(self.setup)

    @cached_property
    def compute_ps(self) -> int:
        """Time of a step's computation: the layers' weights and caches are read, divided among the ranks."""
        whole = MODELS[PRESET]
        assert whole.experts is not None
        experts = whole.experts.model_copy(update={"dense_layers": 0})
        share = self.layers / EXPERT_LAYERS
        model = whole.model_copy(
            update={"layers": self.layers, "experts": experts, "vocabulary": max(1, round(whole.vocabulary * share))}
        )
        times = InstanceTimes(model, PrefillInstances(tensor=len(self.members)), "bf16", 2)
        sequences = self.batch * len(self.members)
        return int(times.iterations_ps(sequences, sequences * _CONTEXT_TOKENS, 1)[0])

    def fabric_ps(self, run: TrialRun, item: int = 0) -> Integers:
        """Return ITL_fabric of each token: all dispatches and combinations of its step.

        Each counts from its start, or from the end of the one before if that is later: a layer waits for the last one.
        """
        times = self.groups.times(run, item)
        ends = np.maximum.accumulate(times.start_ps + times.latency_ps)
        before = np.concatenate(([0], ends[:-1]))
        own = ends - np.maximum(times.start_ps, before)
        return np.asarray(own.reshape(self.tokens, -1).sum(axis=1), np.int64)

    @property
    def stall_ps(self) -> float:
        """The draft's limit for a stall, over the part of the layers."""
        return STALL_PS * self.layers / EXPERT_LAYERS

    @property
    def described(self) -> str:
        """As a sentence about the procedure."""
        return (
            f"ITL is the computation of a step in closed form ({self.compute_ps / PS_PER_MS:.4f} ms) plus ITL_fabric, "
            f"measured: a dispatch and a combination in each of {self.layers} of DeepSeek-V3's {EXPERT_LAYERS} layers "
            f"with experts, EP={len(self.members)}, {self.batch} tokens a rank; stalls are counted from "
            f"{self.stall_ps / PS_PER_MS:.3g} ms on, the same part of 100 ms"
        )


def decode_steps(setup: Setup, first_ps: int = 0, tokens: int | None = None) -> DecodeSteps:
    """Return the profile's steps. NotApplicableError: the fabric has one host."""
    if len(setup.subject.servers) < 2:
        raise NotApplicableError("experts on several hosts take 2 hosts; the fabric has one")
    return DecodeSteps(
        setup,
        tokens or setup.choose(smoke=8, standard=40, full=10_000),
        layers=setup.choose(smoke=2, standard=2, full=EXPERT_LAYERS),
        batch=setup.choose(smoke=2, standard=4, full=8),
        first_ps=first_ps,
    )
