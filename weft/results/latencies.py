"""How long single requests took: percentiles, as results and pages show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.quantities.units import PS_PER_US
from weft.results.columns import Column, T
from weft.results.report_parts import MOST_ROWS, Axis, Curve, CurveFigure, shown_of

PERCENTILES = {"50 %": 50, "90 %": 90, "99 %": 99, "99.9 %": 99.9}
COLUMNS = ("least", "mean", *PERCENTILES, "largest")


@dataclass(frozen=True)
class Latencies:
    """Percentiles of the latencies of requests: that share of requests has at most the percentile's latency."""

    least: int
    """Latency of the quickest request."""
    mean: int
    """Mean latency of all requests."""
    percentiles: tuple[int, ...]
    """At 50, 90, 99 and 99.9 %."""
    largest: int
    """Latency of the slowest request."""

    def in_columns(self) -> tuple[int, ...]:
        """Return them in the order of COLUMNS."""
        return (self.least, self.mean, *self.percentiles, self.largest)

    def at(self, column: str) -> int:
        """Return one of them by its name among COLUMNS."""
        return self.in_columns()[COLUMNS.index(column)]

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield a key below theirs, and what is wrong with it."""
        if len(self.percentiles) != len(PERCENTILES):
            yield (
                "percentiles",
                f"has {len(self.percentiles)} values; there are {len(PERCENTILES)} percentiles",
            )


def latency_columns(
    of: Callable[[T], Latencies | None], names: Sequence[str] = COLUMNS, **options: Any
) -> tuple[Column[T], ...]:
    """Return columns of a row's latencies; `options` are arguments of `Column`."""

    def value(name: str) -> Callable[[T], int | None]:
        return lambda row: None if (found := of(row)) is None else found.at(name)

    return tuple(Column(name, value(name), **options) for name in names)


def latency_figure(title: str, rows: Sequence[tuple[str, Latencies]]) -> CurveFigure:
    """Return bars of mean, 99th percentile and largest latency for each of `rows`, which are labels and latencies."""
    labels = [f"{number} {label}" for number, (label, _) in enumerate(rows[:MOST_ROWS], 1)]
    return CurveFigure(
        title,
        Axis("", scale="category"),
        Axis("latency (µs)", "µs"),
        [
            Curve(name, labels, [latencies.at(name) / PS_PER_US for _, latencies in rows[:MOST_ROWS]])
            for name in ("mean", "99 %", "largest")
        ],
        text="Latencies of requests: mean, 99th percentile and largest.",
        note=shown_of(len(labels), len(rows), "the first"),
    )


def problems_of_service(latency_ps: Latencies, time_ps: int) -> Iterator[tuple[str, str]]:
    """Yield what the types of results of a service that were read back do not say: a key, and what is wrong."""
    if time_ps < 1:
        yield "time_ps", f"is {time_ps} (valid: 1 and more)"
    for key, wrong in latency_ps.problems():
        yield f"latency_ps.{key}", wrong


def weighted_latencies(values_ps: NDArray[Any], counts: NDArray[Any]) -> Latencies:
    """Return the percentiles of latencies in ps of which each occurs `counts` times, at least one of them at all."""
    order = np.argsort(values_ps, kind="stable")
    order = order[counts[order] > 0]
    values, up_to = values_ps[order], np.cumsum(counts[order])
    ranks = np.ceil(np.array(list(PERCENTILES.values())) / 100 * up_to[-1])
    return Latencies(
        least=int(values[0]),
        mean=round(float(np.average(values, weights=counts[order]))),
        percentiles=tuple(int(each) for each in values[np.searchsorted(up_to, ranks)]),
        largest=int(values[-1]),
    )


def latencies_of(values_ps: NDArray[Any]) -> Latencies:
    """Return the percentiles of latencies in ps, of which there is at least one; each is one of the values."""
    found = np.percentile(values_ps, list(PERCENTILES.values()), method="inverted_cdf")
    return Latencies(
        least=int(values_ps.min()),
        mean=round(float(values_ps.mean())),
        percentiles=tuple(int(each) for each in found),
        largest=int(values_ps.max()),
    )
