"""Statements about counters, meters and registers."""

from __future__ import annotations

import operator
from collections.abc import Callable

from weft.switch.backend import CounterValue, MeterConfig, SwitchBackend
from weft.switch.bmv2json import MeterArray, Program
from weft.switch.stf.errors import StfStatementError
from weft.switch.stf.names import resolve
from weft.switch.stf.statements import CheckCounter, SwitchCommand
from weft.switch.stf.tables import ScriptedTables

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MICROSECONDS_PER_SECOND = 1_000_000


class ScriptedCells:
    """The counters, meters and registers of a switch, accessed by a script."""

    def __init__(self, backend: SwitchBackend, program: Program, tables: ScriptedTables) -> None:
        self._backend = backend
        self._program = program
        self._tables = tables

    def check_counter(self, statement: CheckCounter) -> str | None:
        """Return how the counter differs from the script's expectation, None if it does not."""
        counted = self._read_counter(statement)
        found = counted.packets if statement.unit == "packets" else counted.bytes
        if _COMPARE[statement.comparison](found, statement.number):
            return None
        return (
            f"counter '{statement.counter}({statement.cell})' has {found} {statement.unit},"
            f" expected {statement.comparison} {statement.number}"
        )

    def _read_counter(self, statement: CheckCounter) -> CounterValue:
        array = resolve(self._program.counter_arrays, statement.counter, "counter")
        if array.table is None:
            if isinstance(statement.cell, str):
                raise StfStatementError(f"counter '{array.name}' is an array: name a cell by its index")
            return self._backend.counter_read(array.name, statement.cell)
        if isinstance(statement.cell, int):
            raise StfStatementError(
                f"counter '{array.name}' is direct: name an entry of table '{array.table}' by its id"
            )
        entry = self._tables.entry(statement.cell)
        if entry.table != array.table:
            raise StfStatementError(
                f"entry '{statement.cell}' is of table '{entry.table}', counter '{array.name}' of '{array.table}'"
            )
        return self._backend.direct_counter_read(entry.table, entry.key, entry.priority)

    def read_counter(self, command: SwitchCommand) -> None:
        """Check that the cell exists."""
        array = resolve(self._program.counter_arrays, command.name, "counter")
        self._backend.counter_read(array.name, command.numbers[0])

    def write_counter(self, command: SwitchCommand) -> None:
        """Set a cell."""
        array = resolve(self._program.counter_arrays, command.name, "counter")
        index, packets, octets = command.numbers
        self._backend.counter_write(array.name, index, CounterValue(packets, octets))

    def read_register(self, command: SwitchCommand) -> None:
        """Check that the cell exists."""
        self._backend.register_read(self._register(command), command.numbers[0])

    def write_register(self, command: SwitchCommand) -> None:
        """Set a cell."""
        self._backend.register_write(self._register(command), *command.numbers)

    def reset_register(self, command: SwitchCommand) -> None:
        """Clear all cells."""
        self._backend.register_fill(self._register(command), 0)

    def _register(self, command: SwitchCommand) -> str:
        return resolve(self._program.register_arrays, command.name, "register").name

    def read_meter(self, command: SwitchCommand) -> None:
        """Check that the cell exists."""
        self._backend.meter_read(self._meter(command).name, command.numbers[0])

    def configure_meter(self, command: SwitchCommand) -> None:
        """Set a cell's two rates."""
        self._backend.meter_write(self._meter(command).name, command.numbers[0], _meter_config(command))

    def configure_meters(self, command: SwitchCommand) -> None:
        """Set the two rates of all cells; for a direct meter, of all entries in its table."""
        meter = self._meter(command)
        if meter.table is not None:
            for entry in self._backend.table_entries(meter.table):
                key, config = entry.key, _meter_config(command)
                self._backend.direct_meter_write(meter.table, key, entry.priority, config)
            return
        for index in range(meter.size):
            self._backend.meter_write(meter.name, index, _meter_config(command))

    def _meter(self, command: SwitchCommand) -> MeterArray:
        return resolve(self._program.meter_arrays, command.name, "meter")


def _meter_config(command: SwitchCommand) -> MeterConfig:
    """Return the configuration; BMv2's command line has rates in units per microsecond, the lower one first."""
    (committed, committed_burst), (peak, peak_burst) = command.rates
    return MeterConfig(
        round(committed * _MICROSECONDS_PER_SECOND),
        committed_burst,
        round(peak * _MICROSECONDS_PER_SECOND),
        peak_burst,
    )
