"""Dispatches of tokens to experts, as flows between ranks: sizes by the draft's formula and by modes of routing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.bench.flow_groups import FlowGroups
from weft.bench.setup import Setup
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.traffic.expert_choice import chosen_experts, skewed_popularity
from weft.traffic.patterns import Flow

ELEMENT_BYTES = 2
"""BF16."""


@dataclass(frozen=True)
class ExpertModel:
    """A row of the draft's table "Canonical MoE Test Matrix"; `hidden` are the elements of a token."""

    name: str
    experts: int
    top_k: int
    hidden: int

    @property
    def token_bytes(self) -> int:
        """Bytes of a token."""
        return self.hidden * ELEMENT_BYTES

    @property
    def title(self) -> str:
        """As tables have it."""
        return f"{self.name}: {self.experts} experts, top {self.top_k}, hidden {self.hidden}"

    def pair_bytes(self, tokens: int, ranks: int) -> int:
        """Return the payload from each rank to each, T_dispatch = B·k·H_model·P_bytes/N, of `tokens` a rank."""
        return max(1, tokens * self.top_k * self.token_bytes // ranks)


CANONICAL: Mapping[str, ExpertModel] = {
    each.name: each
    for each in (
        ExpertModel("M1", 8, 2, 4096),
        ExpertModel("M2", 64, 4, 7168),
        ExpertModel("M3", 256, 2, 7168),
        ExpertModel("M4", 256, 8, 7168),
    )
}
FORMULA_NOTE = (
    "each pair of ranks exchanges B·k·H_model·P_bytes/N, as in the draft's formula and its appendix on AllToAll; "
    "the column T_dispatch of its test matrix has other values (2.1 MB for M1 is B·k·H_model·P_bytes)"
)
Sizes = NDArray[np.int64]
"""Bytes from each of some ranks (rows) to each (columns)."""


def even_sizes(model: ExpertModel, tokens: int, ranks: int) -> Sizes:
    """Return sizes by the formula, alike for all pairs."""
    return np.full((ranks, ranks), model.pair_bytes(tokens, ranks), np.int64)


def _routed(skew: float, capacity: float | None, model: ExpertModel, tokens: int, ranks: int, seed: int) -> Sizes:
    """Return sizes of tokens that choose experts in proportion to i^-skew; experts lie evenly on the ranks.

    An expert takes at most `capacity` times the mean, in the order of the ranks; the rest is dropped.
    """
    generator = np.random.default_rng([seed, ranks])
    popularity = generator.permutation(skewed_popularity(model.experts, skew)).reshape(1, model.experts)
    counts = np.zeros((ranks, model.experts), np.int64)
    for rank in range(ranks):
        chosen = chosen_experts(popularity, tokens, model.top_k, 1, generator)
        counts[rank] = np.bincount(chosen.ravel(), minlength=model.experts)
    if capacity is not None:
        room = int(np.ceil(capacity * tokens * ranks * model.top_k / model.experts))
        counts = np.diff(np.minimum(np.cumsum(counts, axis=0), room), axis=0, prepend=0)
    return _by_rank(counts, ranks) * model.token_bytes


def _expert_choice(model: ExpertModel, tokens: int, ranks: int, seed: int) -> Sizes:
    """Return sizes where each expert takes the same number of tokens, those with the highest scores of all ranks.

    Scores of a rank's tokens have something in common: its batch is on a topic (drawn, of a standard deviation of 1).
    """
    generator = np.random.default_rng([seed, ranks, 1])
    room = max(1, tokens * ranks * model.top_k // model.experts)
    counts = np.zeros((ranks, model.experts), np.int64)
    for expert in range(model.experts):
        scores = generator.standard_normal((ranks, 1)) + generator.standard_normal((ranks, tokens))
        best = np.argpartition(-scores.ravel(), min(room, scores.size) - 1)[:room]
        counts[:, expert] = np.bincount(best // tokens, minlength=ranks)
    return _by_rank(counts, ranks) * model.token_bytes


def _by_rank(counts: Sizes, ranks: int) -> Sizes:
    """Return tokens by the rank of their expert; expert e is on rank e·ranks/experts."""
    experts = counts.shape[1]
    sums = np.zeros((ranks, ranks), np.int64)
    np.add.at(sums.T, np.arange(experts) * ranks // experts, counts.T)
    return sums


ROUTING_MODES: Mapping[str, Callable[[ExpertModel, int, int, int], Sizes]] = {
    "standard top-k": lambda model, tokens, ranks, seed: _routed(0.8, None, model, tokens, ranks, seed),
    "expert choice": _expert_choice,
    "top-k with token drop": lambda model, tokens, ranks, seed: _routed(0.8, 1.25, model, tokens, ranks, seed),
    "auxiliary loss top-k": lambda model, tokens, ranks, seed: _routed(0.1, None, model, tokens, ranks, seed),
}
"""The draft's modes: from model, tokens of a rank, ranks and a seed to the sizes of a dispatch."""
MODES_NOTE = (
    "experts are chosen in proportion to i^-0.8 by standard top-k, i^-0.1 with an auxiliary loss; token drop caps an "
    "expert at 1.25 times the mean; with expert choice each expert takes the tokens with the highest of drawn scores"
)


@dataclass(frozen=True)
class Dispatches:
    """Repeated dispatches of an expert-parallel group.

    Attributes:
        members: the ranks of the group.
        sizes: bytes of each dispatch, a matrix of members x members.
        count: dispatches.
        interval_ps: from one's start to the next one's.
        first_ps: the first one's start.
    """

    members: Sequence[int]
    sizes: Sizes
    count: int
    interval_ps: int
    first_ps: int = 0

    def groups(self, setup: Setup) -> FlowGroups:
        """Return the flows over the fabric, a group for each dispatch.

        What stays on a host takes no part. A rank begins with the member behind it.
        """
        found = FlowGroups()
        for number in range(self.count):
            found.add(self._flows(setup, self.first_ps + number * self.interval_ps))
        return found

    def _flows(self, setup: Setup, start_ps: int) -> Iterator[Flow]:
        crossing, ranks = crossing_bytes(setup, self.members, self.sizes), len(self.members)
        for step in range(1, ranks):
            for place, source in enumerate(self.members):
                to = (place + step) % ranks
                if size := int(crossing[place, to]):
                    yield from setup.transfer(source, self.members[to], size, start_ps)

    @property
    def end_ps(self) -> int:
        """End of the last interval."""
        return self.first_ps + self.count * self.interval_ps


def crossing_bytes(setup: Setup, members: Sequence[int], sizes: Sizes) -> Sizes:
    """Return the sizes with zeros between ranks of a host, and of a rank to itself."""
    servers = np.array([setup.subject.server_of[rank] for rank in members])
    return np.where(servers[:, None] != servers[None, :], sizes, 0)


def least_time_ps(setup: Setup, members: Sequence[int], sizes: Sizes) -> int:
    """Return the time in which the busiest NIC sends or receives its payload at line rate: a bound from below."""
    crossing = crossing_bytes(setup, members, sizes)
    busiest = max(int(crossing.sum(axis=0).max()), int(crossing.sum(axis=1).max()))
    return busiest * 8 * PS_PER_S // setup.subject.rank_rate_bps


def spaced(setup: Setup, members: Sequence[int], sizes: Sizes, count: int, first_ps: int = 0) -> Dispatches:
    """Return dispatches far enough apart that each ends before the next on an idle fabric."""
    interval_ps = 3 * least_time_ps(setup, members, sizes) + 50 * PS_PER_US
    return Dispatches(members, sizes, count, interval_ps, first_ps)


def dispatch_count(setup: Setup, members: Sequence[int], sizes: Sizes) -> int:
    """Return the dispatches of a trial: the profile's, or as few as its bytes allow."""
    most_bytes = setup.choose(smoke=64 << 20, standard=640 << 20, full=1 << 42)
    least, most = setup.choose(smoke=(3, 10), standard=(4, 50), full=(20, 1000))
    return int(min(most, max(least, most_bytes // max(1, int(crossing_bytes(setup, members, sizes).sum())))))


def scale_up_ps(setup: Setup, members: Sequence[int], sizes: Sizes) -> int:
    """Return the time of what stays on hosts, by scale-up links in closed form: the busiest rank's bytes, latency."""
    scale_up = setup.subject.fabric.scale_up
    inside = sizes - crossing_bytes(setup, members, sizes)
    np.fill_diagonal(inside, 0)
    if scale_up is None or not inside.any():
        return 0
    busiest = max(int(inside.sum(axis=0).max()), int(inside.sum(axis=1).max()))
    return busiest * 8 * PS_PER_S // scale_up.rate_bps + scale_up.latency_ps


def expert_ranks(setup: Setup, count: int) -> list[int]:
    """Return the first `count` ranks, host by host."""
    return [rank for ranks in setup.subject.servers for rank in ranks][:count]
