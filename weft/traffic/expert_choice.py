"""Which ranks' experts the tokens of a mixture of experts go to, drawn alike on every rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.errors import InvalidValueError
from weft.quantities import portable_math
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.striping import split_evenly

_SEED = 20250122


@dataclass(frozen=True)
class ExpertChoice:
    """How tokens choose among the experts, of which each rank has one.

    Attributes:
        tokens: of every rank; its input is cut into so many, or an element each where it has fewer.
        top_k: experts of a token.
        hosts_per_token: on at most so many hosts (DeepSeek-V3, section 2.1.2: 4 of 8).
        skew: exponent of the experts' popularity: the i-th most popular is chosen in proportion to i^-skew (Zipf); 0:
            all alike.
        capacity: what an expert takes, in multiples of the mean. What comes to one beyond that is not sent (GShard,
            section 3.1).

    """

    tokens: int = 32
    top_k: int = 8
    hosts_per_token: int = 4
    skew: float = 0.2
    capacity: int = 2

    def __post_init__(self) -> None:
        """Raise ValueError for numbers that choose nothing."""
        whole = (self.tokens, self.top_k, self.hosts_per_token, self.capacity)
        if min(whole) < 1 or self.skew < 0:
            raise InvalidValueError(f"{self}", valid="skew of 0 or more, the others 1 or more")

    @property
    def data_per_input(self) -> int:
        """Return how many times its input the data of a rank has, which hold what it may receive."""
        return self.capacity * self.top_k

    def dispatch(self, spec: CollectiveSpec) -> Dispatch:
        """Return what all ranks send for their inputs."""
        return _dispatch(self, spec.rank_count, spec.element_count, spec.ranks_per_host, spec.rank_stride)


class Landing(NamedTuple):
    """A token of a rank that comes to another, and the first element of its place there."""

    source: int
    token: int
    to: int
    begin: int


@dataclass(frozen=True)
class Dispatch:
    """Where the tokens of all ranks go.

    Attributes:
        tokens: the elements of each token, in the input of its rank.
        received: of each rank, what comes to it, in order of the senders and their tokens, one behind the other.
        hops: what each rank hands to one of its number on another host or itself, for the experts of that host, in
            order of tokens; its place there counts from the end of the data, and is -1 where it stays in the input.
        passed_on: of each rank, by hop to it, in order, where on its host the token goes.

    """

    tokens: tuple[range, ...]
    received: tuple[tuple[Landing, ...], ...]
    hops: tuple[tuple[Landing, ...], ...]
    passed_on: tuple[dict[Landing, tuple[Landing, ...]], ...]

    def length(self, landing: Landing) -> int:
        """Return the elements of what lands."""
        return len(self.tokens[landing.token])

    def result(self, rank: int) -> range:
        """Return the elements of a rank's result."""
        landed = self.received[rank]
        return range(landed[-1].begin + self.length(landed[-1]) if landed else 0)


@lru_cache(maxsize=4)
def _dispatch(choice: ExpertChoice, ranks: int, elements: int, ranks_per_host: int, rank_stride: int) -> Dispatch:
    inputs = range(elements // choice.data_per_input)
    tokens = tuple(split_evenly(inputs, min(choice.tokens, len(inputs)))) if inputs else ()
    places = _Places(ranks, ranks_per_host, rank_stride)
    received: list[list[Landing]] = [[] for _ in range(ranks)]
    hops: list[list[Landing]] = [[] for _ in range(ranks)]
    passed_on: list[dict[Landing, tuple[Landing, ...]]] = [{} for _ in range(ranks)]
    filled, relayed = [0] * ranks, [0] * ranks
    for source, chosen in enumerate(_chosen(choice, places, len(tokens))):
        for token, experts in enumerate(chosen.tolist()):
            size = len(tokens[token])
            by_relay: dict[int, list[Landing]] = {}
            for rank in sorted(experts):
                if filled[rank] + size > elements:
                    continue
                landing = Landing(source, token, rank, filled[rank])
                received[rank].append(landing)
                filled[rank] += size
                by_relay.setdefault(places.relay(source, rank), []).append(landing)
            for relay, landings in by_relay.items():
                hop = Landing(source, token, relay, -1 if relay == source else relayed[relay])
                relayed[relay] += 0 if relay == source else size
                hops[source].append(hop)
                passed_on[relay][hop] = tuple(landings)
    return Dispatch(tokens, tuple(map(tuple, received)), tuple(map(tuple, hops)), tuple(passed_on))


class _Places:
    """The ranks, host by host."""

    def __init__(self, ranks: int, ranks_per_host: int, rank_stride: int) -> None:
        self.ranks, self.ranks_per_host, self.hosts = ranks, ranks_per_host, ranks // ranks_per_host
        block, place = np.divmod(np.arange(ranks), ranks_per_host * rank_stride)
        local, host = np.divmod(place, rank_stride)
        position = (block * rank_stride + host) * ranks_per_host + local
        self.rank_at = np.empty(ranks, np.int64)
        self.rank_at[position] = np.arange(ranks)
        self.positions: list[int] = position.tolist()

    def relay(self, source: int, rank: int) -> int:
        """Return the rank of the source's number on the host of another."""
        host = self.positions[rank] // self.ranks_per_host
        return int(self.rank_at[host * self.ranks_per_host + self.positions[source] % self.ranks_per_host])


def _chosen(choice: ExpertChoice, places: _Places, tokens: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield of each rank the ranks that its tokens choose: an array of tokens x experts."""
    generator = np.random.default_rng([_SEED, places.ranks])
    popularity = generator.permutation(skewed_popularity(places.ranks, choice.skew))
    by_host = popularity.reshape(places.hosts, places.ranks_per_host)
    for _ in range(places.ranks):
        chosen = chosen_experts(by_host, tokens, choice.top_k, choice.hosts_per_token, generator)
        yield places.rank_at[chosen]


def skewed_popularity(experts: int, skew: float) -> npt.NDArray[np.float64]:
    """Return the popularity of experts, the most popular first: of the i-th i^-skew (Zipf)."""
    return portable_math.exp(-skew * portable_math.log(np.arange(1, experts + 1)))


def chosen_experts(
    popularity: npt.NDArray[np.float64],
    tokens: int,
    top_k: int,
    hosts_per_token: int,
    generator: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Return the experts that tokens choose: an array of tokens x experts, numbered host by host.

    Without replacement and in proportion to popularity: the largest of its logarithm plus Gumbel noise (Kool, van Hoof
    and Welling, ICML 2019). Hosts are chosen first, in proportion to the sum of their experts' popularity.

    Args:
        popularity: of the experts of each host, an array of hosts x experts, all above 0.
        tokens: that choose.
        top_k: experts of a token, or as many as its hosts have.
        hosts_per_token: on how many hosts these are, at most.
        generator: of the noise.
    """
    hosts, experts_per_host = popularity.shape
    host_count = min(hosts_per_token, hosts)
    count = min(top_k, host_count * experts_per_host)
    chosen_hosts = _largest(
        portable_math.log(popularity.sum(axis=1)) + portable_math.gumbel(generator, (tokens, hosts)),
        host_count,
    )
    weights = portable_math.log(popularity[chosen_hosts]) + portable_math.gumbel(
        generator, (tokens, host_count, experts_per_host)
    )
    picked = _largest(weights.reshape(tokens, host_count * experts_per_host), count)
    nth, local = np.divmod(picked, experts_per_host)
    experts: npt.NDArray[np.int64] = np.take_along_axis(chosen_hosts, nth, axis=1) * experts_per_host + local
    return experts


def _largest(weights: npt.NDArray[Any], count: int) -> npt.NDArray[np.int64]:
    """Return the places of the largest of each row, the largest first."""
    if count < weights.shape[1]:
        # A partition takes a fifth of the time of a sort.
        found = np.sort(np.argpartition(weights, -count, axis=1)[:, -count:], axis=1)
    else:
        found = np.broadcast_to(np.arange(count), weights.shape)
    order = np.argsort(-np.take_along_axis(weights, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1).astype(np.int64)
