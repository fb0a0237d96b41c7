"""Counters of the native switch, direct and indirect."""

from __future__ import annotations

from collections.abc import Sequence

from weft.engine import _core
from weft.switch.backend import CounterValue, InvalidRequestError, TableKey
from weft.switch.backend.checks import check_index, named
from weft.switch.native.running import RunningProgram


class Counters:
    """Reads and writes counter arrays and the counters of entries."""

    def __init__(self, native: _core.Switch, running: RunningProgram) -> None:
        self._native = native
        self._running = running

    def _cells(self, name: str, index: int | None = None) -> tuple[int, int]:
        """First cell and size of an indirect counter array."""
        compiled = self._running.compiled
        array = named(compiled.program.counter_arrays, name, "counter")
        if array.table is not None:
            raise InvalidRequestError(f"counter '{name}' is direct (of table '{array.table}')")
        if index is not None:
            check_index("counter", name, index, array.size)
        return compiled.shape.counter_offsets[name], array.size

    def read(self, counter: str, index: int) -> CounterValue:
        """One cell of an indirect counter array."""
        first, _ = self._cells(counter, index)
        return CounterValue(*self._native.counters_read(first + index, 1)[0])

    def read_all(self, counter: str) -> Sequence[CounterValue]:
        """All cells of an indirect counter array."""
        return [CounterValue(*cell) for cell in self._native.counters_read(*self._cells(counter))]

    def read_cells(self, counter: str, first: int, count: int) -> Sequence[CounterValue]:
        """Return `count` cells of an indirect counter array from `first` on."""
        offset, _ = self._cells(counter, first + count - 1)
        return [CounterValue(*cell) for cell in self._native.counters_read(offset + first, count)]

    def write(self, counter: str, index: int, value: CounterValue) -> None:
        """Set one cell of an indirect counter array."""
        first, _ = self._cells(counter, index)
        self._native.counter_write(first + index, value.packets, value.bytes)

    def read_direct(self, table: str, key: TableKey | None, priority: int) -> CounterValue:
        """The counter of an entry (key None: of the default action)."""
        self._require_direct(table)
        return CounterValue(*self._running.on_entry(self._native.entry_counter, table, key, priority))

    def hits(self, table: str, key: TableKey, priority: int) -> int:
        """Packets that hit an entry of a table without direct counters, while code counts for coverage."""
        return int(self._running.on_entry(self._native.entry_counter, table, key, priority)[0])

    def write_direct(self, table: str, key: TableKey | None, priority: int, value: CounterValue) -> None:
        """Set the counter of an entry (key None: of the default action)."""
        self._require_direct(table)
        set_counter = self._native.set_entry_counter
        self._running.on_entry(set_counter, table, key, priority, value.packets, value.bytes)

    def _require_direct(self, table: str) -> None:
        if not self._running.table(table).table.with_counters:
            raise InvalidRequestError(f"table '{table}' has no direct counter")
