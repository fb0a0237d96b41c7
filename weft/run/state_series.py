"""Time series of switches' registers, counters, meters and tables in virtual time (`observe.state_series`)."""

from __future__ import annotations

from weft.clocks.lab import Lab
from weft.clocks.virtual.lab import VirtualLab
from weft.errors import translated
from weft.quantities.readable import format_time
from weft.recording.state_samples import StateSamples
from weft.recording.tables import Table
from weft.scenario import KeyProblem, ObserveSection
from weft.switch.debug.series_items import Item, SeriesError

KEY = "observe.state_series"
MOST_VALUES_READ = 20_000_000
"""Most values read in a run; each sample counts as PER_SAMPLE more."""
PER_SAMPLE = 50


class StateSeries:
    """Samples the items in `observe.state_series` between events: now, and at multiples of its interval."""

    def __init__(self, observe: ObserveSection, lab: Lab) -> None:
        """Start sampling. Raises KeyProblem if no program has one of the items, or there are too many values."""
        assert isinstance(lab, VirtualLab)
        self._loop = lab.loop
        self._interval_ps = observe.state_interval or observe.interval
        switches = [(each.name, lab.native_switch(each.name)) for each in lab.fabric.switches]
        with translated(SeriesError, KeyProblem, KEY):
            self._samples = StateSamples([Item.read(text) for text in observe.state_series], switches)
        self._left = MOST_VALUES_READ
        self._sampled_ps = -1
        self._due()

    def _due(self) -> None:
        self._sample()
        if self._left > 0:
            self._loop.call_after_ps(self._interval_ps - self._loop.now_ps() % self._interval_ps, self._due)

    def _sample(self) -> None:
        self._sampled_ps = self._loop.now_ps()
        self._left -= PER_SAMPLE + self._samples.sample(self._sampled_ps)

    def table(self) -> Table:
        """Return the samples so far, including one of now."""
        if self._left > 0 and self._sampled_ps != self._loop.now_ps():
            self._sample()
        return self._samples.table()

    @property
    def rows_lost(self) -> int:
        """Rows beyond the table's limit."""
        return self._samples.rows_lost

    def warnings(self) -> list[str]:
        """Return a warning if the series ended early."""
        if self._left > 0:
            return []
        return [
            f"{KEY} ends at {format_time(self._sampled_ps)}, when it had read as much as a run may: name fewer cells, "
            "or a longer state_interval."
        ]
