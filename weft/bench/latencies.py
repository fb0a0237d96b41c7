"""One-way and round-trip times of messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.bench.figures import curve
from weft.bench.measures import PERCENTILES
from weft.quantities.units import PS_PER_US
from weft.recording.schema import STEP_KINDS
from weft.results.report_parts import Curve
from weft.trials import TrialRun

OBSERVED: Mapping[str, Any] = {"timelines": True}
"""Records that `one_way_ps` needs."""
HEADINGS = ("min", "mean", *(f"P{percentile:g}" for percentile in PERCENTILES), "max")
_WRITE, _WAIT = "write", "wait"
assert {_WRITE, _WAIT} <= set(STEP_KINDS)
_MOST_POINTS = 200


@dataclass(frozen=True)
class Latency:
    """Times of messages in picoseconds, sorted."""

    times_ps: npt.NDArray[np.int64]

    @property
    def row(self) -> list[float]:
        """Microseconds, in the order of `HEADINGS`."""
        if not len(self.times_ps):
            return [float("nan")] * len(HEADINGS)
        times = self.times_ps / PS_PER_US
        values = [times[0], times.mean(), *np.percentile(times, PERCENTILES), times[-1]]
        return [round(float(value), 3) for value in values]

    def percentile_us(self, percentile: float) -> float:
        """Return a percentile in microseconds."""
        return float(np.percentile(self.times_ps, percentile)) / PS_PER_US

    def distribution(self, name: str) -> Curve:
        """Return the share of messages by time in microseconds."""
        shares = np.linspace(0.0, 1.0, min(_MOST_POINTS, max(2, len(self.times_ps))))
        return curve(name, np.quantile(self.times_ps / PS_PER_US, shares), 100 * shares)


def latency_of(times_ps: Sequence[npt.NDArray[np.int64]]) -> Latency:
    """Return the latency of messages of several trials together."""
    return Latency(np.sort(np.concatenate(list(times_ps))) if times_ps else np.zeros(0, np.int64))


def round_trips_ps(run: TrialRun) -> npt.NDArray[np.int64]:
    """Return the time of each flow from when it was posted to its last acknowledgement."""
    return np.asarray(run.flows["completion_ps"], np.int64)


def one_way_ps(run: TrialRun) -> npt.NDArray[np.int64]:
    """Return the time of each message from when it was posted until its receiver had it whole.

    The trial must observe `OBSERVED`. Empty if the transport does not tell receivers of messages.
    """
    begun, ended = _by_pair(run, _WRITE), _by_pair(run, _WAIT)
    times = [
        received - np.asarray(begun[pair][0])
        for pair, (_, received) in ended.items()
        if pair in begun and len(begun[pair][0]) == len(received)
    ]
    return np.concatenate(times) if times else np.zeros(0, np.int64)


def _by_pair(run: TrialRun, kind: str) -> dict[tuple[str, str], tuple[list[int], npt.NDArray[np.int64]]]:
    """Return the beginnings and ends of steps by sender and receiver, in the order of the schedule.

    Both ends have the messages of a pair in the order of the list of flows.
    """
    table = run.run
    hosts, peers = table.texts("timeline", "host"), table.texts("timeline", "peer")
    kinds, steps = table.texts("timeline", "kind"), table.integers("timeline", "step")
    begins, ends = table.integers("timeline", "start_ps"), table.integers("timeline", "end_ps")
    found: dict[tuple[str, str], list[tuple[int, int, int]]] = defaultdict(list)
    for row in np.flatnonzero(kinds == kind):
        pair = (hosts[row], peers[row]) if kind == _WRITE else (peers[row], hosts[row])
        found[pair].append((int(steps[row]), int(begins[row]), int(ends[row])))
    return {
        pair: ([begin for _, begin, _ in rows], np.array([end for _, _, end in rows], np.int64))
        for pair, rows in ((pair, sorted(rows)) for pair, rows in found.items())
    }
