"""Curves of a page: few enough points to draw, the extremes kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.quantities.arrays import Floats, Integers
from weft.report.run_directory import RunDirectory

MOST_POINTS = 2000
"""Points of one curve; where there are more, each stretch keeps its smallest and its largest."""
MOST_CURVES = 12
MOST_ROWS = 32
"""Rows of a heat map."""
_SMALLEST_SHARE = 0.01
"""Share of the largest queue: rows of a heat map that never reach it are left out."""
_SLOTS = 400
"""Slots of time in a heat map, and in a curve of rates, where a slot is never shorter than a sample."""


@dataclass(frozen=True)
class PortSeries:
    """Samples of one port and class: bytes that wait and bytes sent since the start, each valid until the next sample.

    All three arrays have one item per sample, in order of time.
    """

    name: str
    port: str
    time_ps: Integers
    queue_bytes: Integers
    transmitted_bytes: Integers


def port_series(run: RunDirectory) -> list[PortSeries]:
    """Return a series for each sampled port and class, ordered by port and class; none without the table `queues`."""
    interval_ps = sampling_interval_ps(run)
    ports, classes = run.names("queues", "port"), run.integers("queues", "priority_class")
    times = run.integers("queues", "time_ps")
    depths, sent = run.integers("queues", "queue_bytes"), run.integers("queues", "transmitted_bytes")
    order = np.lexsort([times, classes, ports.codes])
    if not len(order):
        return []
    keys = np.stack([ports.codes[order], classes[order]])
    cuts = np.flatnonzero((np.diff(keys) != 0).any(axis=0)) + 1
    firsts = order[np.concatenate([[0], cuts])]
    names = [ports.names[code] for code in ports.codes[firsts]]
    columns = _dense(times[order], depths[order], sent[order], cuts, interval_ps)
    return [
        PortSeries(f"{port} class {number}", port, *values)
        for port, number, *values in zip(names, classes[firsts], *columns, strict=True)
    ]


def sampling_interval_ps(run: RunDirectory) -> int:
    """Return the scenario's sampling interval, in picoseconds."""
    return run.results.made_by.observe.interval


def _dense(
    times: Integers, depths: Integers, sent: Integers, cuts: Integers, interval_ps: int
) -> tuple[list[Integers], list[Integers], list[Integers]]:
    """Put back the last sample of every stretch without change, so that a curve is level over it.

    The samples of all series follow each other; `cuts` are where all but the first begin. Returns each column by
    series.
    """
    gaps = np.setdiff1d(np.flatnonzero(np.diff(times) > interval_ps) + 1, cuts, assume_unique=True)
    later = cuts + np.searchsorted(gaps, cuts)
    return (
        np.split(np.insert(times, gaps, times[gaps] - interval_ps), later),
        np.split(np.insert(depths, gaps, depths[gaps - 1]), later),
        np.split(np.insert(sent, gaps, sent[gaps - 1]), later),
    )


def rate_slots(series: list[PortSeries], interval_ps: int) -> Integers:
    """Return the edges (ps) of the time slots that rates are averaged over; each slot holds as many samples."""
    if not series:
        return np.zeros(0, np.int64)
    begin = min(int(each.time_ps[0]) for each in series) - interval_ps
    end = max(int(each.time_ps[-1]) for each in series) + interval_ps
    samples = max(1, -(-(end - begin) // (interval_ps * _SLOTS)))
    return np.arange(begin, end + samples * interval_ps, samples * interval_ps, dtype=np.int64)


def rates_bps(each: PortSeries, edges: Integers, line_rate_bps: float = np.inf) -> Floats:
    """Return the mean rate of a port in each slot between `edges` (ps), in bits per second: one item fewer than edges.

    Samples count whole bytes. What exceeds the link's rate in a slot is counted in the next one.
    """
    rows = np.searchsorted(each.time_ps, edges, side="right") - 1
    sent = np.where(rows >= 0, each.transmitted_bytes[np.maximum(rows, 0)], 0)
    # Counters that are reset between two samples start from zero.
    bits, seconds = np.maximum(np.diff(sent), 0) * 8.0, np.diff(edges) * 1e-12
    begun = 0.0
    for slot, most in enumerate(seconds * line_rate_bps):
        begun += bits[slot]
        bits[slot] = min(begun, most)
        begun -= bits[slot]
    return np.asarray(bits / seconds, np.float64)


def depths_at(each: PortSeries, times: Integers) -> Integers:
    """Return the queue in bytes at each of these times (ps), by the last sample until then; 0 before the first."""
    rows = np.searchsorted(each.time_ps, times, side="right") - 1
    return np.where(rows >= 0, each.queue_bytes[np.maximum(rows, 0)], 0)


def thinned(times: Integers, values: NDArray[Any]) -> tuple[Integers, NDArray[Any]]:
    """Return a curve in about MOST_POINTS points at most, among them the least and largest of every section."""
    if len(times) <= MOST_POINTS:
        return times, values
    kept = {0, len(times) - 1}
    for stretch in np.array_split(np.arange(len(times)), MOST_POINTS // 2):
        part = values[stretch]
        kept |= {int(stretch[np.argmin(part)]), int(stretch[np.argmax(part)])}
    rows = np.array(sorted(kept))
    return times[rows], values[rows]


def heat_map(series: list[PortSeries]) -> tuple[list[str], Floats, NDArray[np.int64]]:
    """Return names, the centres of time slots (µs), and the largest queue in bytes by name (row) and slot (column)."""
    rows = sorted((each for each in series if each.queue_bytes.any()), key=lambda each: -int(each.queue_bytes.max()))[
        :MOST_ROWS
    ]
    rows = [each for each in rows if each.queue_bytes.max() >= _SMALLEST_SHARE * rows[0].queue_bytes.max()]
    if not rows:
        return [], np.zeros(0), np.zeros((0, 0), np.int64)
    begin = min(int(each.time_ps[0]) for each in rows)
    end = max(int(each.time_ps[-1]) for each in rows) + 1
    edges = np.linspace(begin, end, min(_SLOTS, end - begin) + 1)
    depths = np.zeros((len(rows), len(edges) - 1), np.int64)
    for row, each in enumerate(rows):
        slots = np.clip(np.searchsorted(edges, each.time_ps, side="right") - 1, 0, len(edges) - 2)
        np.maximum.at(depths[row], slots, each.queue_bytes)
        # A value stands until the next sample: through the slots without one, too.
        sampled = np.zeros(len(edges) - 1, bool)
        sampled[slots] = True
        last = np.zeros(len(edges) - 1, np.int64)
        last[slots] = each.queue_bytes
        latest = np.maximum.accumulate(np.where(sampled, np.arange(len(sampled)), -1))
        gaps = ~sampled & (latest >= 0)
        depths[row, gaps] = last[latest[gaps]]
    return [each.name for each in rows], (edges[:-1] + edges[1:]) / 2e6, depths


def distribution(values: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
    """Return a cumulative distribution as at most MOST_POINTS steps: values, and shares up to and including them."""
    ordered = np.sort(values)
    shares = np.arange(1, len(ordered) + 1) / max(1, len(ordered))
    if len(ordered) > MOST_POINTS:
        rows = np.unique(np.linspace(0, len(ordered) - 1, MOST_POINTS).astype(int))
        ordered, shares = ordered[rows], shares[rows]
    return ordered, shares
