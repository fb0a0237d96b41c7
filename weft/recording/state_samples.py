"""Samples of what switches hold, as rows of the table `state_series`."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.recording.tables import Names, Table, integers_or_digits
from weft.switch.bmv2json import Program
from weft.switch.debug.series import Reading, Source, require_known, sources_of
from weft.switch.debug.series_items import Item, SeriesError
from weft.switch.native import NativeSwitch

MOST_VALUES = 20_000
"""Most values of a sample, over all switches."""
MOST_ROWS = 2_000_000
"""Most rows of the table; further ones are counted."""
GONE = -1
"""State of a removed entry, or of an object that another program lacks."""


@dataclass
class _Watched:
    """A switch, and what each of its sources, known by kind and name, gave last."""

    name: str
    switch: NativeSwitch
    program: Program | None
    sources: Sequence[Source]
    last: dict[tuple[str, str], Reading] = field(default_factory=dict)


class _Rows:
    """The table, column by column; texts are numbered in order of appearance."""

    def __init__(self) -> None:
        self._times_ps = array("q")
        self._texts = {name: array("i") for name in ("switch", "object", "key", "quantity")}
        self._values: list[int] = []
        self._numbers: dict[str, int] = {}
        self.lost = 0

    def add(self, time_ps: int, texts: tuple[str, str, str, str], value: int) -> None:
        if len(self._values) >= MOST_ROWS:
            self.lost += 1
            return
        self._times_ps.append(time_ps)
        for column, text in zip(self._texts.values(), texts, strict=True):
            column.append(self._numbers.setdefault(text, len(self._numbers)))
        self._values.append(value)

    def table(self) -> Table:
        names = list(self._numbers)
        texts = {name: Names.of([names[code] for code in codes]) for name, codes in self._texts.items()}
        return {
            "time_ps": np.array(self._times_ps, np.int64),
            **texts,
            "value": integers_or_digits(self._values),
        }


class StateSamples:
    """Reads items of switches, and keeps a row where a value is not what it was before, at first 0."""

    def __init__(self, items: Sequence[Item], switches: Sequence[tuple[str, NativeSwitch]]) -> None:
        """SeriesError: no program has one of the items, an array no such cell, or there are too many."""
        self._items = items
        self._rows = _Rows()
        require_known(items, [each.program for _, each in switches if each.program is not None])
        self._watched = [_Watched(name, switch, switch.program, sources_of(switch, items)) for name, switch in switches]
        self._require_few()

    def _require_few(self) -> None:
        sizes = {
            f"{source.name} of {each.name}": source.size_values for each in self._watched for source in each.sources
        }
        if (count := sum(sizes.values())) > MOST_VALUES:
            largest = max(sizes, key=lambda name: sizes[name])
            raise SeriesError(
                f"{count} values a sample are too many (at most {MOST_VALUES}); {largest} has {sizes[largest]}: "
                "name cells, such as NAME[0..7]"
            )

    def sample(self, now_ps: int) -> int:
        """Read everything once, and return how many values that were."""
        count = 0
        for each in self._watched:
            if each.switch.program is not each.program:
                # A controller has loaded another one.
                each.program, each.sources = each.switch.program, self._sources_in(each.switch)
            found = {(source.kind, source.name): source.read() for source in each.sources}
            count += sum(map(len, found.values()))
            for source in (*found, *(known for known in each.last if known not in found)):
                self._keep(now_ps, each, source, found.get(source, {}))
        return count

    def _sources_in(self, switch: NativeSwitch) -> list[Source]:
        try:
            return sources_of(switch, self._items)
        except SeriesError:
            return []

    def _keep(self, now_ps: int, each: _Watched, source: tuple[str, str], found: Reading) -> None:
        before = each.last.get(source, {})
        if before.keys() - found.keys():
            found = found | {key: GONE for key in before if key not in found}
        if found != before:
            for (key, quantity), value in found.items():
                if value != before.get((key, quantity), 0):
                    self._rows.add(now_ps, (each.name, source[1], key, quantity), value)
            each.last[source] = found

    def table(self) -> Table:
        """All rows so far, in order of time."""
        return self._rows.table()

    @property
    def rows_lost(self) -> int:
        """How many rows were beyond MOST_ROWS."""
        return self._rows.lost
