"""Table entries (P4Runtime §9.1): what controllers wrote is kept here, what forwards is in the backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from finsy.proto import p4i, p4r

from switch.backend import (
    ActionCall,
    GroupRef,
    MemberRef,
    SwitchBackend,
    TableAction,
    TableEntry,
    TableKey,
    constant_table_entries,
)
from switch.bmv2json import DefaultEntry
from switch.p4runtime.actions import bound_action, decode_action, encode_action
from switch.p4runtime.counters import decode_counter, encode_counter
from switch.p4runtime.errors import (
    ALREADY_EXISTS,
    NOT_FOUND,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    RequestError,
    invalid,
    place,
)
from switch.p4runtime.matches import decode_key, encode_key
from switch.p4runtime.meters import decode_meter_config, encode_meter_config
from switch.p4runtime.pipeline import BoundTable, Pipeline, lookup
from switch.p4runtime.profiles import Profiles

EntryKey = tuple[TableKey, int]


@dataclass(slots=True)
class StoredEntry:
    """An entry as it is read back; `message` is canonical and without what the data plane changes."""

    message: p4r.TableEntry
    action: TableAction
    one_shot_group: int | None = None


class Tables:
    """All tables of a device."""

    def __init__(self, pipeline: Pipeline, backend: SwitchBackend, profiles: Profiles) -> None:
        self._pipeline = pipeline
        self._backend = backend
        self._profiles = profiles
        self._entries: dict[int, dict[EntryKey, StoredEntry]] = {
            table.id: _initial_entries(table) for table in pipeline.tables.values()
        }
        self._defaults: dict[int, p4r.TableEntry] = {}

    def write(self, update_type: int, message: p4r.TableEntry) -> None:
        """Apply one update to a table entry or a default entry."""
        table = lookup(self._pipeline.tables, message.table_id, "table")
        with place(f"table {table.name!r}"):
            if message.is_const:
                raise invalid("is_const cannot be set by a controller")
            if message.is_default_action:
                self._write_default(table, update_type, message)
                return
            key = self._decode_entry_key(table, message)
            match update_type:
                case p4r.Update.INSERT:
                    self._insert(table, key, message)
                case p4r.Update.MODIFY:
                    self._modify(table, key, message)
                case _:
                    self._delete(table, key)

    def _decode_entry_key(self, table: BoundTable, message: p4r.TableEntry) -> EntryKey:
        if not table.fields:
            raise invalid("a table without key has a default entry only (set is_default_action)")
        key = decode_key(table.fields, message.match)
        if table.needs_priority and message.priority <= 0:
            raise invalid(
                f"priority {message.priority} is not positive, as ternary, range or optional keys need"
            )
        if not table.needs_priority and message.priority != 0:
            raise invalid(f"priority {message.priority} is set, but no field is ternary, range or optional")
        return key, message.priority

    def _check_mutable(self, table: BoundTable) -> None:
        if table.info.is_const_table or table.table.immutable:
            raise RequestError(PERMISSION_DENIED, "its entries are constant")

    def _insert(self, table: BoundTable, key: EntryKey, message: p4r.TableEntry) -> None:
        self._check_mutable(table)
        entries = self._entries[table.id]
        if key in entries:
            raise RequestError(ALREADY_EXISTS, "an entry with this match and priority exists already")
        if 0 < table.info.size <= len(entries):
            raise RequestError(RESOURCE_EXHAUSTED, f"the table is full ({table.info.size} entries)")
        if not message.HasField("action"):
            raise invalid("action is not set")
        self._check_resources(table, message)
        canonical = _canonical(table, key, message)
        action, group = self._decode_table_action(table, message.action, canonical)
        entry = TableEntry(key[0], action, key[1], message.idle_timeout_ns)
        with self._profiles.undo_one_shot(table.profile_id, group):
            self._backend.table_insert(table.name, entry)
        entries[key] = StoredEntry(canonical, action, group)
        self._write_resources(table, key, message)

    def _modify(self, table: BoundTable, key: EntryKey, message: p4r.TableEntry) -> None:
        stored = self._find(table, key)
        self._check_resources(table, message)
        if table.info.is_const_table or table.table.immutable:
            if message.HasField("action"):
                raise RequestError(PERMISSION_DENIED, "the action of a constant entry cannot be modified")
            self._write_resources(table, key, message)
            return
        canonical = _canonical(table, key, message)
        action, group = stored.action, stored.one_shot_group
        if message.HasField("action"):
            action, group = self._decode_table_action(table, message.action, canonical)
        else:
            canonical.action.CopyFrom(stored.message.action)
        replaced = stored.one_shot_group if group != stored.one_shot_group else None
        with self._profiles.undo_one_shot(
            table.profile_id, group if group != stored.one_shot_group else None
        ):
            self._backend.table_modify(
                table.name, TableEntry(key[0], action, key[1], message.idle_timeout_ns)
            )
        self._entries[table.id][key] = StoredEntry(canonical, action, group)
        self._profiles.delete_one_shot(table.profile_id, replaced)
        self._write_resources(table, key, message)

    def _delete(self, table: BoundTable, key: EntryKey) -> None:
        self._check_mutable(table)
        stored = self._find(table, key)
        self._backend.table_delete(table.name, *key)
        del self._entries[table.id][key]
        self._profiles.delete_one_shot(table.profile_id, stored.one_shot_group)

    def _find(self, table: BoundTable, key: EntryKey) -> StoredEntry:
        stored = self._entries[table.id].get(key)
        if stored is None:
            raise RequestError(NOT_FOUND, "there is no entry with this match and priority")
        return stored

    def _decode_table_action(
        self, table: BoundTable, message: p4r.TableAction, canonical: p4r.TableEntry
    ) -> tuple[TableAction, int | None]:
        """The backend's action (and the group made for a one-shot set), its canonical form put in
        `canonical`.
        """
        kind = message.WhichOneof("type")
        if table.profile_id == 0:
            if kind != "action":
                raise invalid(
                    f"expected an action, got {kind or 'nothing'} (the table has no action profile)"
                )
            call = decode_action(table.actions, message.action)
            _check_scope(table, message.action.action_id, p4i.ActionRef.DEFAULT_ONLY)
            canonical.action.action.CopyFrom(encode_action(table.actions, call))
            return call, None
        canonical.action.CopyFrom(message)
        match kind:
            case "action_profile_member_id":
                self._profiles.check_style(table.profile_id, one_shot=False)
                return MemberRef(message.action_profile_member_id), None
            case "action_profile_group_id":
                self._profiles.check_style(table.profile_id, one_shot=False)
                return GroupRef(message.action_profile_group_id), None
            case "action_profile_action_set":
                group = self._profiles.create_one_shot(
                    table.profile_id, message.action_profile_action_set, canonical.action
                )
                return GroupRef(group), group
        raise invalid(f"expected a member, a group or an action set, got {kind or 'nothing'}")

    # direct resources and idle timeouts

    def _check_resources(self, table: BoundTable, message: p4r.TableEntry) -> None:
        if message.HasField("counter_data"):
            if not table.has_direct_counter:
                raise invalid("counter_data is set, but the table has no direct counter")
            decode_counter(message.counter_data)
        if message.HasField("meter_config"):
            if not table.has_direct_meter:
                raise invalid("meter_config is set, but the table has no direct meter")
            decode_meter_config(message.meter_config)
        if message.HasField("meter_counter_data"):
            raise invalid("meter_counter_data is not supported")
        if message.HasField("time_since_last_hit"):
            raise invalid("time_since_last_hit can only be read")
        if message.idle_timeout_ns < 0:
            raise invalid(f"idle_timeout_ns {message.idle_timeout_ns} is negative")
        notifies = table.info.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL
        if message.idle_timeout_ns and (message.is_default_action or not notifies):
            raise invalid("idle_timeout_ns is set, but the table does not support idle timeouts")

    def _write_resources(self, table: BoundTable, key: EntryKey | None, message: p4r.TableEntry) -> None:
        match, priority = (None, 0) if key is None else key
        if message.HasField("counter_data"):
            value = decode_counter(message.counter_data)
            self._backend.direct_counter_write(table.name, match, priority, value)
        if table.has_direct_meter:
            config = decode_meter_config(message.meter_config) if message.HasField("meter_config") else None
            self._backend.direct_meter_write(table.name, match, priority, config)

    def resolve(self, message: p4r.TableEntry) -> tuple[BoundTable, TableKey | None, int]:
        """The table, key (None: default entry) and priority of an entry that a direct resource names."""
        table = lookup(self._pipeline.tables, message.table_id, "table")
        with place(f"table {table.name!r}"):
            if message.is_default_action:
                return table, None, 0
            key = self._decode_entry_key(table, message)
            self._find(table, key)
            return table, *key

    def keys(self, table_id: int) -> list[EntryKey]:
        """Match and priority of all entries of a table."""
        return list(self._entries[table_id])

    # default entries

    def _write_default(self, table: BoundTable, update_type: int, message: p4r.TableEntry) -> None:
        if update_type != p4r.Update.MODIFY:
            raise invalid("a default entry can only be modified")
        if message.match or message.priority:
            raise invalid("a default entry has neither match nor priority")
        default = table.table.default_entry
        if table.profile_id or table.info.const_default_action_id or (default and default.constant):
            raise RequestError(PERMISSION_DENIED, "its default action is constant")
        self._check_resources(table, message)
        if not message.HasField("action"):
            self._backend.table_set_default(table.name, None)
            self._defaults.pop(table.id, None)
            self._write_resources(table, None, p4r.TableEntry())
            return
        if message.action.WhichOneof("type") != "action":
            raise invalid("the action of a default entry must be given directly")
        call = decode_action(table.actions, message.action.action)
        _check_scope(table, message.action.action.action_id, p4i.ActionRef.TABLE_ONLY)
        self._backend.table_set_default(table.name, call)
        canonical = p4r.TableEntry(
            table_id=table.id,
            is_default_action=True,
            metadata=message.metadata,
            controller_metadata=message.controller_metadata,
        )
        canonical.action.action.CopyFrom(encode_action(table.actions, call))
        self._defaults[table.id] = canonical
        self._write_resources(table, None, message)

    def _default_message(self, table: BoundTable) -> p4r.TableEntry:
        if table.id in self._defaults:
            return self._defaults[table.id]
        message = p4r.TableEntry(table_id=table.id, is_default_action=True)
        default = table.table.default_entry
        if default is not None and _is_visible(table, default):
            call = ActionCall(default.action.name, default.arguments)
            message.action.action.CopyFrom(encode_action(table.actions, call))
        return message

    # reading

    def read(self, query: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
        """The entries that `query` selects (§9.1.6)."""
        if query.table_id == 0:
            for table in self._pipeline.tables.values():
                yield from self._read_table(table, query, lambda _: True)
            return
        table = lookup(self._pipeline.tables, query.table_id, "table")
        with place(f"table {table.name!r}"):
            yield from self._read_table(table, query, self._filter(table, query))

    def _filter(self, table: BoundTable, query: p4r.TableEntry) -> Callable[[p4r.TableEntry], bool]:
        matches = encode_key(table.fields, decode_key(table.fields, query.match)) if query.match else None
        action_id = query.action.action.action_id if query.HasField("action") else 0
        if action_id:
            bound_action(table.actions, action_id)

        def selects(entry: p4r.TableEntry) -> bool:
            return (
                (matches is None or list(entry.match) == matches)
                and query.priority in (0, entry.priority)
                and query.controller_metadata in (0, entry.controller_metadata)
                and query.metadata in (b"", entry.metadata)
                and action_id in (0, entry.action.action.action_id)
            )

        return selects

    def _read_table(
        self, table: BoundTable, query: p4r.TableEntry, selects: Callable[[p4r.TableEntry], bool]
    ) -> Iterator[p4r.TableEntry]:
        candidates: Iterable[tuple[EntryKey | None, p4r.TableEntry]]
        if query.is_default_action:
            candidates = [(None, self._default_message(table))]
        else:
            candidates = [(key, stored.message) for key, stored in self._entries[table.id].items()]
        for key, message in candidates:
            if selects(message):
                yield self._with_volatile(table, key, message, query)

    def _with_volatile(
        self, table: BoundTable, key: EntryKey | None, message: p4r.TableEntry, query: p4r.TableEntry
    ) -> p4r.TableEntry:
        result = p4r.TableEntry()
        result.CopyFrom(message)
        match, priority = (None, 0) if key is None else key
        if query.HasField("counter_data") and table.has_direct_counter:
            value = self._backend.direct_counter_read(table.name, match, priority)
            result.counter_data.CopyFrom(encode_counter(value))
        if query.HasField("meter_config") and table.has_direct_meter:
            config = self._backend.direct_meter_read(table.name, match, priority)
            if config is not None:
                result.meter_config.CopyFrom(encode_meter_config(config))
        if query.HasField("time_since_last_hit") and match is not None and not result.is_const:
            result.time_since_last_hit.elapsed_ns = self._backend.table_idle_ns(table.name, match, priority)
        return result

    def stored_message(self, table_name: str, key: EntryKey) -> p4r.TableEntry | None:
        """The entry for an idle-timeout notification; None if it is gone by now."""
        table = self._pipeline.table_named(table_name)
        stored = None if table is None else self._entries[table.id].get(key)
        return None if stored is None else stored.message


def _canonical(table: BoundTable, key: EntryKey, message: p4r.TableEntry) -> p4r.TableEntry:
    return p4r.TableEntry(
        table_id=table.id,
        match=encode_key(table.fields, key[0]),
        priority=key[1],
        metadata=message.metadata,
        controller_metadata=message.controller_metadata,
        idle_timeout_ns=message.idle_timeout_ns,
    )


def _initial_entries(table: BoundTable) -> dict[EntryKey, StoredEntry]:
    entries = {}
    for entry in constant_table_entries(table.table):
        assert isinstance(entry.action, ActionCall)
        key = (entry.key, entry.priority)
        message = _canonical(table, key, p4r.TableEntry())
        message.is_const = True
        message.action.action.CopyFrom(encode_action(table.actions, entry.action))
        entries[key] = StoredEntry(message, entry.action)
    return entries


def _is_visible(table: BoundTable, default: DefaultEntry) -> bool:
    return any(action.name == default.action.name for action in table.actions.values())


def _check_scope(table: BoundTable, action_id: int, forbidden: int) -> None:
    action = bound_action(table.actions, action_id)
    if action.scope == forbidden:
        where = "as default action" if forbidden == p4i.ActionRef.DEFAULT_ONLY else "in table entries"
        raise RequestError(PERMISSION_DENIED, f"action {action.name!r} may only be used {where}")
