"""Bytes that ports have sent and queued over time, in runs that observe `queues`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.papers.flow_times import Numbers
from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.recording.tables import integers_of, names_of, row_count
from weft.trials import TrialFailedError, TrialRun

_DATA_CLASS = 3


@dataclass(frozen=True)
class PortSeries:
    """Samples of one port's data class: times, bytes waiting, bytes sent by the port so far."""

    time_ps: Integers
    queue_bytes: Integers
    sent_bytes: Integers

    def rate_bps(self, begin_us: float, end_us: float) -> float:
        """Return the mean rate between two samples."""
        sent = self._at(self.sent_bytes, end_us) - self._at(self.sent_bytes, begin_us)
        return sent * 8 * PS_PER_S / ((end_us - begin_us) * PS_PER_US)

    def queue_at(self, times_us: Numbers) -> Integers:
        """Return the bytes that waited at these times."""
        return np.array([self._at(self.queue_bytes, each) for each in times_us], np.int64)

    def rates_at(self, times_us: Numbers) -> Numbers:
        """Return the mean rates from each of these times to the next one."""
        return np.array([self.rate_bps(float(begin), float(end)) for begin, end in itertools.pairwise(times_us)])

    def _at(self, values: Integers, time_us: float) -> int:
        place = int(np.searchsorted(self.time_ps, round(time_us * PS_PER_US), side="right")) - 1
        return int(values[place]) if place >= 0 else 0


class Ports:
    """The ports that a run has observed, by name (`p0l0:1`, `h3:0`)."""

    def __init__(self, run: TrialRun) -> None:
        table = run.run.tables.get("queues")
        if table is None or row_count(table) == 0:
            raise TrialFailedError(f"{run.trial.label}: no queues were observed")
        self._table = table

    @cached_property
    def _names(self) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
        return names_of(self._table, "port").texts().astype(str)

    def __getitem__(self, port: str) -> PortSeries:
        """Return a port's series; one that never sent is empty."""
        rows = (self._names == port) & (integers_of(self._table, "priority_class") == _DATA_CLASS)
        return PortSeries(
            *(integers_of(self._table, name)[rows] for name in ("time_ps", "queue_bytes", "transmitted_bytes"))
        )
