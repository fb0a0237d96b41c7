"""Slow hosts: computing times of ranks that do the same work, compared operation by operation.

Ranks are peers if their programs have the same operations in the same order, such as the ranks of a pipeline stage.
Each computation of a rank is divided by the median of its peers' for the same computation, so different work at
different times does not matter. A host is slow if it is so in every category of computing (a rank that computes longer
in one of them has more of that work, as experts have), by more than the scatter of single computations explains.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from weft.controller.noise.evidence import Evidence
from weft.controller.noise.limits import LEAST_PEERS, NoiseLimits
from weft.controller.noise.tails import log_normal_tail

_SCATTER_OF_MAD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
_LEAST_COMPUTATIONS = 8
"""Fewer computations of a category do not show how much they scatter; such categories count together."""
_REST = ""


@dataclass(frozen=True)
class Computations:
    """Computations of a rank of a host: how long each computation took, by category, in the order of its program."""

    host: str
    durations_ps: Mapping[str, Sequence[int]]


def slow_ranks(
    peers: Sequence[Computations], limits: NoiseLimits, ranks: int, test: int
) -> Iterator[tuple[str, Evidence]]:
    """Yield the hosts of ranks that are slower than their peers; nothing if there are too few of them.

    Args:
        peers: ranks with the same program.
        limits: thresholds.
        ranks: how many ranks are tested altogether.
        test: number of this test of them, from 1.

    """
    if len(peers) <= LEAST_PEERS:
        return
    excess = _excess_by_category(peers)
    log_chance = limits.log_chance(ranks, test)
    for place, each in enumerate(peers if excess else ()):
        of_rank = {name: rows[place] for name, rows in excess.items()}
        means = {name: _mean(rows) for name, rows in of_rank.items()}
        if min(means.values()) < math.log(limits.straggler):
            continue
        if any(_log_chance_of(name, place, excess) > log_chance for name in excess):
            continue
        count = sum(len(rows) for rows in of_rank.values())
        slower = math.exp(sum(means[name] * len(rows) for name, rows in of_rank.items()) / count)
        words = f"computed {slower:.2f} times as long as {len(peers) - 1} peers, over {count:,} computations"
        yield each.host, Evidence("straggling", slower, 1.0, words)


def _excess_by_category(peers: Sequence[Computations]) -> dict[str, list[list[float]]]:
    """Return the logarithm of each computation over its median among the peers, by category and rank.

    Categories of few computations are one together, which is left out if it has few, too.
    """
    excess: dict[str, list[list[float]]] = {_REST: [[] for _ in peers]}
    for category in peers[0].durations_ps:
        rows = [each.durations_ps[category] for each in peers]
        columns = [column for column in zip(*rows, strict=True) if min(column) > 0]
        medians = [median(column) for column in columns]
        found = [
            [math.log(column[place] / usual) for column, usual in zip(columns, medians, strict=True)]
            for place in range(len(peers))
        ]
        if len(columns) >= _LEAST_COMPUTATIONS:
            excess[category] = found
        else:
            excess[_REST] = [[*rest, *more] for rest, more in zip(excess[_REST], found, strict=True)]
    return {name: rows for name, rows in excess.items() if len(rows[0]) >= _LEAST_COMPUTATIONS}


def _log_chance_of(category: str, place: int, excess: Mapping[str, list[list[float]]]) -> float:
    """Return the logarithm of the chance that a rank's mean is so high by scatter alone."""
    rows = excess[category]
    own = rows[place]
    # Each rank's computations around their own median: what makes a rank slow is not scatter.
    around = [abs(value - middle) for row in rows for middle in (median(row),) for value in row]
    scatter = _SCATTER_OF_MAD * median(around) or math.sqrt(_mean([value * value for value in around]))
    if scatter == 0.0:
        return -math.inf if _mean(own) > 0 else 0.0
    # The median of the peers scatters, too, by pi / 2 over their number.
    error = scatter * math.sqrt((1 + math.pi / 2 / len(rows)) / len(own))
    return log_normal_tail(_mean(own) / error)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
