"""Entries and default actions of the native switch's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft.engine import _core
from weft.switch import backend
from weft.switch.backend.checks import check_modifiable
from weft.switch.native.bindings import ACTION, default_binding
from weft.switch.native.idle import IdleWatch
from weft.switch.native.own_entries import NO_ACTION, own_entries
from weft.switch.native.running import RunningProgram, no_entry
from weft.switch.native.tables import NativeTable


class TableEntries:
    """Inserts, changes and reads entries; `idle` watches those with a timeout."""

    def __init__(self, native: _core.Switch, running: RunningProgram) -> None:
        self._native = native
        self._running = running
        self.idle = IdleWatch()

    def start(self) -> None:
        """Install the program's default actions and entries."""
        self.idle = IdleWatch()
        own = own_entries(self._native, self._running.program, self._running.tables)
        self._native.set_prepared_defaults(own.defaults)
        inserted = self._native.insert_prepared(own.entries)
        assert inserted == len(own.entries)
        for table, key in own.metered:
            self._native.set_entry_meter(table, key, None)  # counts from now on

    def insert(self, table: str, entry: backend.TableEntry) -> None:
        """Add an entry."""
        target = self._running.table(table)
        check_modifiable(target.table, target.modifiable)
        self._insert(target, entry, target.table.max_size)

    def prepare_key(self, table: str, key: backend.TableKey, priority: int) -> object:
        """Prepare a table's key; see PreparesInserts."""
        target = self._running.table(table)
        check_modifiable(target.table, target.modifiable)
        if target.table.direct_meter is not None:
            raise backend.InvalidRequestError(f"table {table!r}: entries with meters are inserted one by one")
        return self._native.prepare_key(target.index, *target.encode_key(key, priority), target.table.max_size)

    def prepare_action(self, table: str, action: backend.ActionCall) -> object:
        """Prepare an entry's direct action; see PreparesInserts."""
        kind, number, data = self._running.table(table).encode_action(action)
        assert kind == ACTION
        return self._native.prepare_action(number, data)

    def insert_prepared(self, entries: Sequence[object]) -> int:
        """Add entries in order, each a prepared key and action; return how many before one was refused."""
        return self._native.insert_prepared(entries)

    def _insert(self, target: NativeTable, entry: backend.TableEntry, max_size: int) -> None:
        key = target.encode_key(entry.key, entry.priority)
        binding = target.encode_action(entry.action)
        name = target.table.name
        try:
            inserted = self._native.table_insert(target.index, *key, *binding, entry.idle_timeout_ns, max_size)
        except ValueError as error:
            raise backend.EntryNotFoundError(error) from None
        except OverflowError:
            raise backend.CapacityExceededError(f"table '{name}' is full ({max_size} entries)") from None
        if not inserted:
            raise backend.EntryExistsError(f"table '{name}' has an entry with this key and priority already")
        if target.table.direct_meter is not None:
            self._native.set_entry_meter(target.index, key, None)  # counts from now on, configured or not
        if entry.idle_timeout_ns:
            self.idle.watch(name, entry, key)

    def modify(self, table: str, entry: backend.TableEntry) -> None:
        """Replace action and timeout of an entry."""
        target = self._running.table(table)
        check_modifiable(target.table, target.modifiable)
        key = target.encode_key(entry.key, entry.priority)
        binding = target.encode_action(entry.action)
        if not _with_action(self._native.table_modify, target.index, *key, *binding, entry.idle_timeout_ns):
            raise no_entry(table)
        self.idle.watch(table, entry, key)

    def delete(self, table: str, key: backend.TableKey, priority: int) -> None:
        """Remove an entry."""
        target = self._running.table(table)
        check_modifiable(target.table, target.modifiable)
        encoded = target.encode_key(key, priority)
        if not self._native.table_delete(target.index, *encoded):
            raise no_entry(table)
        self.idle.forget(table, encoded)

    def entry(self, table: str, key: backend.TableKey, priority: int) -> backend.TableEntry:
        """The entry with this key and priority."""
        action = self._running.on_entry(self._native.entry_action, table, key, priority)
        return self._running.table(table).entry(key, priority, *action)

    def entries(self, table: str) -> Iterator[backend.TableEntry]:
        """All entries, in no particular order."""
        target = self._running.table(table)
        return (target.decode_entry(*each) for each in self._native.table_entries(target.index))

    def count(self, table: str) -> int:
        """Number of entries."""
        return self._native.table_size(self._running.table(table).index)

    def set_default(self, table: str, action: backend.TableAction | None) -> None:
        """Set the action of a miss; None restores the program's."""
        target = self._running.table(table)
        default = target.table.default_entry
        if default is not None and default.constant and action is not None:
            raise backend.NotPermittedError(f"the default action of table '{table}' is constant")
        self._set_default(target, action)

    def _set_default(self, target: NativeTable, action: backend.TableAction | None) -> None:
        if action is not None:
            binding = target.encode_action(action)
        else:
            binding = default_binding(target.table.default_entry, NO_ACTION)
        _with_action(self._native.table_set_default, target.index, *binding)

    def idle_ns(self, table: str, key: backend.TableKey, priority: int) -> int:
        """Time since the entry was last hit or written."""
        return int(self._running.on_entry(self._native.entry_idle_ns, table, key, priority))


def _with_action(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call `function`, where C++ raises ValueError if an entry's member or group does not exist."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise backend.EntryNotFoundError(error) from None
