"""Sources sampled over time in a switch: registers, counters, meters, and numbers of table entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.hints import did_you_mean
from weft.switch.backend import TableEntry
from weft.switch.bmv2json import Program, Table
from weft.switch.coverage.sources import shown_tables
from weft.switch.debug.series_items import Item, SeriesError
from weft.switch.debug.states import entry_text
from weft.switch.native import NativeSwitch

DEFAULT = "default"
"""Key of a table's default action, in place of an entry."""
Reading: TypeAlias = dict[tuple[str, str], int]
"""Values by key (an index, an entry's match, "" for a table itself) and quantity."""
_COLOURS = ("green_packets", "yellow_packets", "red_packets")
_COUNTED = ("packets", "bytes")


@dataclass(frozen=True)
class Source:
    """An object of a switch that is read at once; `size_values` returns its current number of values."""

    kind: str
    name: str
    read: Callable[[], Reading]
    size_values: int


def watchable(program: Program) -> dict[str, str]:
    """Return the kinds of all objects of a program that can be sampled, by name."""
    kinds = {table.name: "table" for table in shown_tables(program) if table.key}
    arrays = ((program.counter_arrays, "counter"), (program.meter_arrays, "meter"))
    for named, kind in arrays:
        kinds |= {name: kind if array.table is None else f"direct {kind}" for name, array in named.items()}
    return kinds | dict.fromkeys(program.register_arrays, "register")


def require_known(items: Sequence[Item], programs: Iterable[Program]) -> None:
    """Raise SeriesError for an item that none of the programs has."""
    names = {name for program in programs for name in watchable(program)}
    for item in items:
        if not item.names(names):
            raise SeriesError(f"no table, counter, meter or register '{item.pattern}'; {_hint(item, names)}")


def _hint(item: Item, names: Iterable[str]) -> str:
    if not set(names):
        return "the programs have none"
    return did_you_mean(item.pattern, {*names, *(name.rpartition(".")[2] for name in names)})


def sources_of(switch: NativeSwitch, items: Sequence[Item]) -> list[Source]:
    """Return the sources for the items in a switch; [] if its program has none of them.

    Raises:
        SeriesError: an array has no such cell, or an item names cells of an object without cells.
    """
    program = switch.program
    if program is None:
        return []
    reader = _Reader(switch, program)
    cells: dict[str, set[int]] = {}
    kinds = watchable(program)
    for item in items:
        for name in item.names(kinds):
            cells.setdefault(name, set()).update(_cells(program, name, kinds[name], item))
    return [reader.source(name, kinds[name], sorted(chosen)) for name, chosen in cells.items()]


def _cells(program: Program, name: str, kind: str, item: Item) -> range:
    sizes = {
        "register": {each.name: each.size for each in program.register_arrays.values()},
        "counter": {each.name: each.size for each in program.counter_arrays.values()},
        "meter": {each.name: each.size for each in program.meter_arrays.values()},
    }
    if kind not in sizes:
        if item.cells is not None:
            raise SeriesError(f"'{name}' is a {kind}: it has entries, not cells")
        return range(0)
    size = sizes[kind][name]
    first, last = item.cells or (0, size - 1)
    if last >= size:
        raise SeriesError(f"'{name}' has no cell {last}", valid=f"0 to {size - 1}")
    return range(first, last + 1)


class _Reader:
    """Makes the sources of a switch."""

    def __init__(self, switch: NativeSwitch, program: Program) -> None:
        self._switch = switch
        self._program = program
        # An entry's match as text, cached because it takes longer to make than its counter to read.
        self._texts: dict[tuple[str, object, int], str] = {}

    def source(self, name: str, kind: str, cells: Sequence[int]) -> Source:
        match kind:
            case "register":
                return self._register(name, cells)
            case "counter":
                return self._counter(name, cells)
            case "meter":
                return self._meter(name, cells)
            case "direct counter":
                table = self._table_of(self._program.counter_arrays[name].table)
                return self._of_entries(table, _COUNTED, self._counted)
            case "direct meter":
                table = self._table_of(self._program.meter_arrays[name].table)
                return self._of_entries(table, _COLOURS, self._coloured)
        table = self._program.tables[name]
        return Source(kind, name, lambda: {("", "entries"): self._switch.table_size(table.name)}, 1)

    def _table_of(self, name: str | None) -> Table:
        assert name is not None
        return self._program.tables[name]

    def _register(self, name: str, cells: Sequence[int]) -> Source:
        keys = [(str(cell), "value") for cell in cells]
        first, count = cells[0], cells[-1] - cells[0] + 1
        offsets = [cell - first for cell in cells]

        def read() -> Reading:
            values = self._switch.register_read_cells(name, first, count)
            return dict(zip(keys, (values[offset] for offset in offsets), strict=True))

        return Source("register", name, read, len(keys))

    def _counter(self, name: str, cells: Sequence[int]) -> Source:
        keys = [(str(cell), quantity) for cell in cells for quantity in _COUNTED]
        first, count = cells[0], cells[-1] - cells[0] + 1
        offsets = [cell - first for cell in cells]

        def read() -> Reading:
            found = self._switch.counter_read_cells(name, first, count)
            chosen = (found[offset] for offset in offsets)
            return dict(zip(keys, (n for each in chosen for n in (each.packets, each.bytes)), strict=True))

        return Source("counter", name, read, len(keys))

    def _meter(self, name: str, cells: Sequence[int]) -> Source:
        def read() -> Reading:
            return {
                (str(cell), colour): count.packets
                for cell in cells
                for colour, count in zip(_COLOURS, self._switch.meter_read(name, cell).counts, strict=True)
            }

        return Source("meter", name, read, len(cells) * len(_COLOURS))

    def _of_entries(
        self,
        table: Table,
        quantities: Sequence[str],
        values: Callable[[Table, TableEntry | None], Sequence[int]],
    ) -> Source:
        def read() -> Reading:
            texts = {self._text(table, entry): entry for entry in self._switch.table_entries(table.name)}
            return {
                (text, quantity): value
                for text, entry in (*sorted(texts.items()), (DEFAULT, None))
                for quantity, value in zip(quantities, values(table, entry), strict=True)
            }

        size = self._switch.table_size(table.name) + 1
        return Source(f"direct {quantities[0]}", table.name, read, size * len(quantities))

    def _text(self, table: Table, entry: TableEntry) -> str:
        key = table.name, entry.key, entry.priority
        if key not in self._texts:
            self._texts[key] = entry_text(table, entry)
        return self._texts[key]

    def _counted(self, table: Table, entry: TableEntry | None) -> Sequence[int]:
        key, priority = (entry.key, entry.priority) if entry is not None else (None, 0)
        count = self._switch.direct_counter_read(table.name, key, priority)
        return count.packets, count.bytes

    def _coloured(self, table: Table, entry: TableEntry | None) -> Sequence[int]:
        key, priority = (entry.key, entry.priority) if entry is not None else (None, 0)
        state = self._switch.direct_meter_read(table.name, key, priority)
        return [each.packets for each in state.counts]
