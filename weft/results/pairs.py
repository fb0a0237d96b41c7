"""Sizes of an all-to-all-v, and the least time that they take."""

from __future__ import annotations

from dataclasses import dataclass

from weft.quantities.units import PS_PER_S
from weft.traffic.collectives import Collective
from weft.traffic.pair_sizes import between_hosts, between_ranks, largest_sum
from weft.traffic.schedules import CollectiveSpec


@dataclass(frozen=True)
class PairsResult:
    """Bytes that ranks had for each other, without what they had for themselves."""

    largest_sent_bytes: int
    """By one rank to all others."""
    largest_received_bytes: int
    """By one rank from all others."""
    mean_bytes: float
    """Sent, and received, by a rank on average."""
    imbalance: float
    """The larger of `largest_sent_bytes` and `largest_received_bytes` over the mean: 1 for equal sizes; 0 if ranks have
    nothing for each other."""
    empty_pairs: int
    """Pairs of a sender and another rank with nothing for it."""
    ideal_ps: int
    """Least time: what the busiest rank sends to other hosts, or receives, over its NICs' rate; without headers."""


def pairs_of(collective: Collective, spec: CollectiveSpec) -> PairsResult | None:
    """Return the sizes of what was run; None for collectives that are not about sizes of pairs."""
    sizes = collective.pair_bytes(spec)
    if sizes is None:
        return None
    others, ranks = between_ranks(sizes), spec.rank_count
    largest, mean = largest_sum(others), float(others.sum()) / ranks
    busiest = largest_sum(between_hosts(others, spec))
    return PairsResult(
        largest_sent_bytes=int(others.sum(axis=1).max()),
        largest_received_bytes=int(others.sum(axis=0).max()),
        mean_bytes=mean,
        imbalance=largest / mean if mean else 0.0,
        empty_pairs=int((others == 0).sum()) - ranks,
        ideal_ps=busiest * 8 * PS_PER_S // sum(spec.plane_rates_bps),
    )
