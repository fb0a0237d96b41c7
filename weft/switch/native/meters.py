"""Meters of the native switch, direct and indirect."""

from __future__ import annotations

from typing import TypeAlias

from weft.engine import _core
from weft.switch.backend import CounterValue, InvalidRequestError, MeterConfig, MeterState, TableKey
from weft.switch.backend.checks import check_index, named
from weft.switch.native.running import RunningProgram

_MeterTuple: TypeAlias = tuple[int, int, int, int, int | None]
_MeterStateTuple: TypeAlias = tuple[_MeterTuple | None, list[tuple[int, int]], bytes]


class Meters:
    """Reads and configures meter arrays and the meters of entries."""

    def __init__(self, native: _core.Switch, running: RunningProgram) -> None:
        self._native = native
        self._running = running

    def _cell(self, name: str, index: int) -> int:
        compiled = self._running.compiled
        array = named(compiled.program.meter_arrays, name, "meter")
        if array.table is not None:
            raise InvalidRequestError(f"meter '{name}' is direct (of table '{array.table}')")
        check_index("meter", name, index, array.size)
        return compiled.shape.meter_offsets[name] + index

    def read(self, meter: str, index: int) -> MeterState:
        """One cell of an indirect meter array."""
        return _state(self._native.meter_read(self._cell(meter, index)))

    def write(self, meter: str, index: int, config: MeterConfig | None) -> None:
        """Configure one cell of an indirect meter array."""
        self._native.meter_write(self._cell(meter, index), _config_tuple(config))

    def restore(self, meter: str, index: int, state: MeterState) -> None:
        """Restore one cell to the state that `read` returned."""
        self._native.meter_restore(self._cell(meter, index), _state_tuple(state))

    def read_direct(self, table: str, key: TableKey | None, priority: int) -> MeterState:
        """The meter of an entry (key None: of the default action)."""
        self._require_direct(table)
        return _state(self._running.on_entry(self._native.entry_meter, table, key, priority))

    def write_direct(self, table: str, key: TableKey | None, priority: int, config: MeterConfig | None) -> None:
        """Configure the meter of an entry (key None: of the default action)."""
        self._require_direct(table)
        self._running.on_entry(self._native.set_entry_meter, table, key, priority, _config_tuple(config))

    def restore_direct(self, table: str, key: TableKey | None, priority: int, state: MeterState) -> None:
        """Restore an entry's meter to the state that `read_direct` returned."""
        self._require_direct(table)
        restore = self._native.restore_entry_meter
        self._running.on_entry(restore, table, key, priority, _state_tuple(state))

    def _require_direct(self, table: str) -> None:
        if self._running.table(table).table.direct_meter is None:
            raise InvalidRequestError(f"table '{table}' has no direct meter")


def _state(values: _MeterStateTuple) -> MeterState:
    """Convert a meter's state from C++'s form."""
    config, counts, buckets = values
    green, yellow, red = (CounterValue(*each) for each in counts)
    return MeterState(None if config is None else MeterConfig(*config), (green, yellow, red), buckets)


def _state_tuple(state: MeterState) -> _MeterStateTuple:
    """Convert a meter's state to C++'s form."""
    return _config_tuple(state.config), [(each.packets, each.bytes) for each in state.counts], state.buckets


def _config_tuple(config: MeterConfig | None) -> _MeterTuple | None:
    """Convert a meter's configuration to C++'s form. Raises InvalidRequestError for negative values."""
    if config is None:
        return None
    values = (config.committed_rate, config.committed_burst, config.peak_rate, config.peak_burst)
    if min(*values, config.excess_burst or 0) < 0:
        raise InvalidRequestError(f"meter configuration {config} has a negative value")
    return *values, config.excess_burst
