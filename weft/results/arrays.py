"""A program's counters and registers at a run's end, selected by `observe.counters` and `observe.registers`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import get_type_hints

from weft.controller.arrays import ProgramArrays
from weft.controller.blocking import BlockingFabricController
from weft.controller.errors import SettingError
from weft.controller.pipeline import Pipelines
from weft.errors import translated
from weft.quantities.plain_data import PlainData
from weft.recording.tables import Names, Table, integers_or_digits
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind, nothing
from weft.results.report_parts import MOST_ROWS
from weft.scenario import KeyProblem, ObserveSection
from weft.topologies import FabricSpec

MAX_ROWS_IN_RESULTS = 1000
"""More stand in the tables only."""
ALL = ("*",)


@dataclass(frozen=True)
class CounterCell(PlainData):
    """A cell of a counter, or an entry of its table, that has counted. `index` is -1 where `entry` says which it is."""

    switch: str
    """Its name."""
    counter: str
    """Its name."""
    index: int
    """Index of the cell; -1 where `entry` identifies it."""
    entry: str
    """Table entry of a direct counter."""
    packets: int
    """Counted."""
    bytes: int
    """Counted."""


@dataclass(frozen=True)
class RegisterCell(PlainData):
    """A cell of a register that is not 0."""

    switch: str
    """Its name."""
    register: str
    """Its name."""
    index: int
    """Index of the cell."""
    value: int
    """Not 0."""


PROGRAM_COUNTERS = ResultKind(
    key="counters",
    model=CounterCell,
    tables=(
        ResultTable(
            "Counters of the program",
            (
                Column("switch", "switch"),
                Column("counter", "counter"),
                Column("index or entry", lambda cell: cell.entry or cell.index),
                Column("packets", "packets"),
                Column("bytes", "bytes"),
            ),
            most=MOST_ROWS,
            which="the first; counters.csv has all",
        ),
    ),
    show=nothing,
)
PROGRAM_REGISTERS = ResultKind(
    key="registers",
    model=RegisterCell,
    tables=(
        ResultTable(
            "Registers of the program",
            (
                Column("switch", "switch"),
                Column("register", "register"),
                Column("index", "index"),
                # As text, for values may be wide.
                Column("value", lambda cell: str(cell.value)),
            ),
            most=MOST_ROWS,
            which="the first; registers.csv has all",
        ),
    ),
    show=nothing,
)


@dataclass(frozen=True)
class ArrayResults:
    """Cells that are not 0, in the order of switches, names and indices."""

    counters: list[CounterCell] = field(default_factory=list)
    registers: list[RegisterCell] = field(default_factory=list)

    @property
    def counters_in_results(self) -> list[CounterCell]:
        """Return the cells of counters for results.json; none where there are too many."""
        return self.counters if len(self.counters) <= MAX_ROWS_IN_RESULTS else []

    @property
    def registers_in_results(self) -> list[RegisterCell]:
        """Return the cells of registers for results.json; none where there are too many."""
        return self.registers if len(self.registers) <= MAX_ROWS_IN_RESULTS else []

    def tables(self, observe: ObserveSection) -> dict[str, Table]:
        """Return those asked for as tables, by the names of their files."""
        tables: dict[str, Table] = {}
        if observe.counters:
            tables["counters"] = _table(CounterCell, self.counters)
        if observe.registers:
            tables["registers"] = _table(RegisterCell, self.registers)
        return tables


def _table(model: type[CounterCell | RegisterCell], cells: Sequence[CounterCell | RegisterCell]) -> Table:
    """Return a table with the model's fields as columns."""
    columns = {each.name: [getattr(cell, each.name) for cell in cells] for each in fields(model)}
    types = get_type_hints(model)
    return {
        name: Names.of(values) if types[name] is str else integers_or_digits(values) for name, values in columns.items()
    }


@dataclass(frozen=True)
class _Names:
    """Names of the arrays to read of switches with one program."""

    counters: tuple[str, ...]
    direct_counters: tuple[str, ...]
    registers: tuple[str, ...]


@dataclass(frozen=True)
class ObservedArrays:
    """The counters and registers to be read, by switch, by their names in its program."""

    of_switch: Mapping[str, _Names] = field(default_factory=dict)

    @classmethod
    def of(cls, observe: ObserveSection, pipelines: Pipelines) -> ObservedArrays:
        """Find what is asked for in the programs.

        Raises:
            KeyProblem: none has a counter or register of a name; the message has those they have.
        """
        if not observe.counters and not observe.registers:
            return cls()
        arrays = {id(each): ProgramArrays.of(each.p4info) for each in pipelines.values()}
        every = ProgramArrays.all_of(arrays.values())
        with translated(SettingError, KeyProblem, "observe.counters"):
            counters = every.counter_names(ALL if observe.counters == "all" else observe.counters)
        with translated(SettingError, KeyProblem, "observe.registers"):
            registers = every.register_names(ALL if observe.registers == "all" else observe.registers)
        found = {
            number: _Names(
                tuple(name for name in counters if name in own.counters),
                tuple(name for name in counters if name in own.direct_counters),
                tuple(name for name in registers if name in own.registers),
            )
            for number, own in arrays.items()
        }
        return cls({name: found[id(each)] for name, each in pipelines.items()})

    def read(self, fabric: FabricSpec, controller: BlockingFabricController) -> ArrayResults:
        """Read all switches that answer."""
        results = ArrayResults()
        failed = controller.failures.switches
        for switch in fabric.switches:
            if switch.name not in failed and switch.name in self.of_switch:
                _read_switch(switch.name, self.of_switch[switch.name], controller, results)
        return results


def _read_switch(switch: str, names: _Names, controller: BlockingFabricController, results: ArrayResults) -> None:
    for name in names.counters:
        for index, count in controller.read_counter(switch, name).items():
            if count.packets or count.bytes:
                results.counters.append(CounterCell(switch, name, index, "", count.packets, count.bytes))
    for name in names.direct_counters:
        for each in controller.read_direct_counter(switch, name):
            if each.count.packets or each.count.bytes:
                results.counters.append(CounterCell(switch, name, -1, each.entry, each.count.packets, each.count.bytes))
    for name in names.registers:
        for index, value in controller.read_register(switch, name).items():
            if value:
                results.registers.append(RegisterCell(switch, name, index, value))
