"""Load and queues of a lab's ports over the last minutes, from the lab's exported metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.metrics import Family
from weft.topologies import Endpoint, FabricSpec

SERIES = ("rate_bps", "queue_bytes", "marked_packets", "pause_frames", "dropped_packets")
"""Columns for each port: sending rate and queue now; the others count since the previous sample."""
RATE, QUEUE, MARKED, PAUSES, DROPPED = range(len(SERIES))
_MOST_SAMPLES = 300
_MOST_CELLS = 8_000_000
"""Most cells of all samples together, 4 bytes each: fabrics with more ports have a shorter history."""
_COUNTED = {
    MARKED: ("weft_port_ecn_marked_packets_total",),
    PAUSES: ("weft_port_pause_frames_received_total",),
    DROPPED: ("weft_port_dropped_packets_total", "weft_link_lost_packets_total"),
}
_Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """Values read at one time.

    Attributes:
        emulated_s: time of the lab's clock; nan if unknown (BMv2).
        interval_s: time of that clock since the previous sample.
        ports: a row of `SERIES` for each port; rates are nan if switches do not count bytes.
        up, down: used share of each link's rate, from end a to end b and from b to a.
        jobs: aggregation jobs on the switches.
    """

    emulated_s: float
    interval_s: float
    ports: _Numbers
    up: _Numbers
    down: _Numbers
    jobs: frozenset[str]


class Samples:
    """The latest samples, limited in number.

    Not thread-safe; `LiveView` has a lock.
    """

    def __init__(self, fabric: FabricSpec, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self.port_names = [
            str(Endpoint(switch.name, port.number)) for switch in fabric.switches for port in switch.ports
        ]
        self.number_of = {name: number for number, name in enumerate(self.port_names)}
        self._rates = np.array(
            [port.link.rate_bps for switch in fabric.switches for port in switch.ports], dtype=np.float64
        )
        self._down = np.array([self.number_of[str(link.b)] for link in fabric.links], dtype=np.int64)
        # A host's sent bytes are counted by its switch's port as received.
        self._up = np.array([self.number_of.get(str(link.a), -1) for link in fabric.links], dtype=np.int64)
        cells = max(1, len(self.port_names) * len(SERIES))
        # At least two, because a rate needs a previous sample.
        self._most = max(2, min(_MOST_SAMPLES, _MOST_CELLS // cells))
        # A ring of fixed size: a lab may be up for days.
        self._kept = np.zeros((self._most, len(self.port_names), len(SERIES)), dtype=np.float32)
        self._taken_s = np.zeros(self._most)
        self.count = 0
        self._before: dict[str, _Numbers] = {}
        self._before_s = float("nan")

    def add(self, families: Iterable[Family]) -> Sample:
        """Add a sample from a lab's metrics and drop the oldest if there are too many."""
        by_name = {family.name: family for family in families}
        clock = by_name.get("weft_emulated_seconds_total")
        now_s = float(clock.samples[0][2]) if clock is not None and clock.samples else float("nan")
        interval_s = now_s - self._before_s
        ports = np.zeros((len(self.port_names), len(SERIES)))
        sent = self._since(by_name, "weft_port_transmitted_bytes_total")
        received = self._since(by_name, "weft_port_received_bytes_total")
        per_s = 8 / interval_s if interval_s > 0 else float("nan")
        ports[:, RATE] = sent * per_s
        ports[:, QUEUE] = self._sums(by_name, "weft_port_queue_depth_bytes")
        for series, names in _COUNTED.items():
            for name in names:
                ports[:, series] += self._since(by_name, name)
        self._before_s = now_s
        share = ports[:, RATE] / self._rates
        received_share = received * per_s / self._rates
        up = np.where(self._up >= 0, share[self._up], received_share[self._down])
        self._keep(ports)
        jobs = by_name.get("weft_aggregation_job_packets_total")
        names_of_jobs = frozenset(labels["job"] for _, labels, _ in (jobs.samples if jobs else ()))
        return Sample(now_s, interval_s, ports, up, share[self._down], names_of_jobs)

    def _keep(self, ports: _Numbers) -> None:
        place = self.count % self._most
        self._kept[place], self._taken_s[place] = ports, self._clock_s()
        self.count += 1

    def history(self, ports: Sequence[int]) -> dict[str, Any]:
        """Return the history of some ports: the ages of the samples in seconds, and a list for each of `SERIES`."""
        there = min(self.count, self._most)
        order = np.arange(self.count - there, self.count) % self._most
        ages = self._clock_s() - self._taken_s[order]
        return {
            "ages_s": [round(float(age), 2) for age in ages],
            "ports": {
                self.port_names[port]: {
                    name: [finite(value) for value in self._kept[order, port, series]]
                    for series, name in enumerate(SERIES)
                }
                for port in ports
            },
        }

    def _since(self, by_name: dict[str, Family], name: str) -> _Numbers:
        """Return the increase of each port's counter; a decreased counter has restarted at 0."""
        now = self._sums(by_name, name)
        before = self._before.get(name)
        self._before[name] = now
        if before is None:
            return np.zeros_like(now)
        return np.where(now >= before, now - before, now)

    def _sums(self, by_name: dict[str, Family], name: str) -> _Numbers:
        """Return a family's values by port, summed over reasons and classes."""
        found = np.zeros(len(self.port_names))
        family = by_name.get(name)
        for _, labels, value in family.samples if family is not None else ():
            found[self.number_of[f"{labels['switch']}:{labels['port']}"]] += value
        return found


def finite(value: float) -> float | None:
    """Return a number for JSON, to six digits; None if it is not finite."""
    return float(f"{value:.6g}") if np.isfinite(value) else None
