"""Counters and meters of the native switch, direct and indirect."""

from __future__ import annotations

from collections.abc import Sequence

from weft.switch.backend import CounterValue, InvalidRequestError, MeterConfig, MeterState, TableKey
from weft.switch.checks import check_index, named
from weft.switch.native.base import NativeSwitchBase
from weft.switch.native.values import meter_state, meter_state_tuple, meter_tuple


class NativeCounters(NativeSwitchBase):
    """Reading and writing counters and meters."""

    def _counter(self, name: str, index: int | None = None) -> tuple[int, int]:
        """First cell and size of an indirect counter array."""
        compiled = self._loaded()
        array = named(compiled.program.counter_arrays, name, "counter")
        if array.table is not None:
            raise InvalidRequestError(f"counter '{name}' is direct (of table '{array.table}')")
        if index is not None:
            check_index("counter", name, index, array.size)
        return compiled.shape.counter_offsets[name], array.size

    def counter_read(self, counter: str, index: int) -> CounterValue:
        """One cell of an indirect counter array."""
        first, _ = self._counter(counter, index)
        return CounterValue(*self.native.counters_read(first + index, 1)[0])

    def counter_read_all(self, counter: str) -> Sequence[CounterValue]:
        """All cells of an indirect counter array."""
        return [CounterValue(*cell) for cell in self.native.counters_read(*self._counter(counter))]

    def counter_write(self, counter: str, index: int, value: CounterValue) -> None:
        """Set one cell of an indirect counter array."""
        first, _ = self._counter(counter, index)
        self.native.counter_write(first + index, value.packets, value.bytes)

    def direct_counter_read(self, table: str, key: TableKey | None, priority: int) -> CounterValue:
        """The counter of an entry, of the default action for key None."""
        self._require_counters(table)
        return CounterValue(*self._with_entry(self.native.entry_counter, table, key, priority))

    def direct_counter_write(
        self, table: str, key: TableKey | None, priority: int, value: CounterValue
    ) -> None:
        """Set the counter of an entry (key None: of the default action)."""
        self._require_counters(table)
        self._with_entry(self.native.set_entry_counter, table, key, priority, value.packets, value.bytes)

    def _require_counters(self, table: str) -> None:
        if not self._table(table).table.with_counters:
            raise InvalidRequestError(f"table '{table}' has no direct counter")

    def _meter(self, name: str, index: int) -> int:
        compiled = self._loaded()
        array = named(compiled.program.meter_arrays, name, "meter")
        if array.table is not None:
            raise InvalidRequestError(f"meter '{name}' is direct (of table '{array.table}')")
        check_index("meter", name, index, array.size)
        return compiled.shape.meter_offsets[name] + index

    def meter_read(self, meter: str, index: int) -> MeterState:
        """One cell of an indirect meter array."""
        return meter_state(self.native.meter_read(self._meter(meter, index)))

    def meter_write(self, meter: str, index: int, config: MeterConfig | None) -> None:
        """Configure one cell of an indirect meter array."""
        self.native.meter_write(self._meter(meter, index), meter_tuple(config))

    def meter_restore(self, meter: str, index: int, state: MeterState) -> None:
        """Make one cell what it was when `meter_read` gave `state`."""
        self.native.meter_restore(self._meter(meter, index), meter_state_tuple(state))

    def direct_meter_read(self, table: str, key: TableKey | None, priority: int) -> MeterState:
        """The meter of an entry (key None: of the default action)."""
        self._require_meter(table)
        return meter_state(self._with_entry(self.native.entry_meter, table, key, priority))

    def direct_meter_write(
        self, table: str, key: TableKey | None, priority: int, config: MeterConfig | None
    ) -> None:
        """Configure the meter of an entry (key None: of the default action)."""
        self._require_meter(table)
        self._with_entry(self.native.set_entry_meter, table, key, priority, meter_tuple(config))

    def direct_meter_restore(
        self, table: str, key: TableKey | None, priority: int, state: MeterState
    ) -> None:
        """Make an entry's meter what it was when `direct_meter_read` gave `state`."""
        self._require_meter(table)
        native = meter_state_tuple(state)
        self._with_entry(self.native.restore_entry_meter, table, key, priority, native)

    def _require_meter(self, table: str) -> None:
        if self._table(table).table.direct_meter is None:
            raise InvalidRequestError(f"table '{table}' has no direct meter")
