"""Direct counters and direct meters as separate entities (P4Runtime §9.3.1, §9.4.1)."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from weft.switch.backend import SwitchBackend, TableKey
from weft.switch.p4runtime.counters import decode_counter, encode_counter
from weft.switch.p4runtime.errors import invalid, place, require_modify
from weft.switch.p4runtime.matches import encode_key
from weft.switch.p4runtime.meters import add_meter, check_colour_counts, decode_meter_config
from weft.switch.p4runtime.pipeline import BoundTable, Pipeline, lookup
from weft.switch.p4runtime.tables import Tables


class DirectResources:
    """Direct counters and meters of all tables of a device."""

    def __init__(self, pipeline: Pipeline, backend: SwitchBackend, tables: Tables) -> None:
        self._pipeline = pipeline
        self._backend = backend
        self._tables = tables

    def write_counter(self, update_type: int, message: p4r.DirectCounterEntry) -> None:
        """Set the counter of an entry."""
        require_modify(update_type, "a direct counter entry")
        table, key, priority = self._tables.resolve(message.table_entry)
        with place(f"table {table.name!r}"):
            _require(table.has_direct_counter, "direct counter")
            if message.HasField("data"):
                value = decode_counter(message.data)
                self._backend.direct_counter_write(table.name, key, priority, value)

    def write_meter(self, update_type: int, message: p4r.DirectMeterEntry) -> None:
        """Configure the meter of an entry."""
        require_modify(update_type, "a direct meter entry")
        table, key, priority = self._tables.resolve(message.table_entry)
        with place(f"table {table.name!r}"):
            if table.meter_type is None:
                raise invalid("the table has no direct meter")
            check_colour_counts(message.counter_data)
            config = decode_meter_config(message.config, table.meter_type) if message.HasField("config") else None
            self._backend.direct_meter_write(table.name, key, priority, config)
            if message.HasField("counter_data"):
                self._tables.clear_colour_counts(table, key, priority)

    def read_counters(self, query: p4r.DirectCounterEntry) -> Iterator[p4r.DirectCounterEntry]:
        """Counters of one entry, of a table (no match) or of all tables (table id 0)."""
        for table, key, priority in self._selected(query.table_entry, "direct counter"):
            value = self._backend.direct_counter_read(table.name, key, priority)
            yield p4r.DirectCounterEntry(table_entry=_reference(table, key, priority), data=encode_counter(value))

    def read_meters(self, query: p4r.DirectMeterEntry) -> Iterator[p4r.DirectMeterEntry]:
        """Meters of one entry, of a table (no match) or of all tables (table id 0)."""
        for table, key, priority in self._selected(query.table_entry, "direct meter"):
            entry = p4r.DirectMeterEntry(table_entry=_reference(table, key, priority))
            add_meter(self._backend.direct_meter_read(table.name, key, priority), query, entry)
            yield entry

    def _selected(self, query: p4r.TableEntry, resource: str) -> Iterator[tuple[BoundTable, TableKey | None, int]]:
        if query.table_id and (query.match or query.is_default_action):
            table, key, priority = self._tables.resolve(query)
            with place(f"table {table.name!r}"):
                _require(_has(table, resource), resource)
            yield table, key, priority
            return
        if query.table_id:
            tables = [lookup(self._pipeline.tables, query.table_id, "table")]
            with place(f"table {tables[0].name!r}"):
                _require(_has(tables[0], resource), resource)
        else:
            tables = [table for table in self._pipeline.tables.values() if _has(table, resource)]
        for table in tables:
            for key, priority in self._tables.keys(table):
                if query.priority in (0, priority):
                    yield table, key, priority


def _has(table: BoundTable, resource: str) -> bool:
    return table.has_direct_counter if resource == "direct counter" else table.meter_type is not None


def _require(has: bool, resource: str) -> None:
    if not has:
        raise invalid(f"the table has no {resource}")


def _reference(table: BoundTable, key: TableKey | None, priority: int) -> p4r.TableEntry:
    if key is None:
        return p4r.TableEntry(table_id=table.id, is_default_action=True)
    return p4r.TableEntry(table_id=table.id, match=encode_key(table.fields, key), priority=priority)
