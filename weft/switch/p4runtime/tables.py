"""Table entries (P4Runtime §9.1)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from finsy.proto import p4i, p4r

from weft.switch.backend import (
    ActionCall,
    BackendError,
    EntryNotFoundError,
    GroupRef,
    MemberRef,
    SwitchBackend,
    TableAction,
    TableEntry,
    TableKey,
)
from weft.switch.bmv2json import DefaultEntry
from weft.switch.p4runtime.actions import bound_action, decode_action, encode_action
from weft.switch.p4runtime.counters import decode_counter, encode_counter
from weft.switch.p4runtime.errors import (
    PERMISSION_DENIED,
    RequestError,
    invalid,
    place,
)
from weft.switch.p4runtime.matches import KeyDecoder, encode_key
from weft.switch.p4runtime.meters import (
    check_colour_counts,
    cleared,
    decode_meter_config,
    encode_colour_counts,
    encode_meter_config,
)
from weft.switch.p4runtime.pipeline import BoundTable, Pipeline, lookup
from weft.switch.p4runtime.profiles import Profiles

EntryKey = tuple[TableKey, int]


@dataclass(slots=True)
class EntryNotes:
    """Parts of an entry that the switch does not use; reads return them as written."""

    metadata: bytes = b""
    controller_metadata: int = 0
    action_set: p4r.ActionProfileActionSet | None = None
    one_shot_group: int | None = None


_NO_NOTES = EntryNotes()


class Tables:
    """All tables of a device. The backend holds the entries; this keeps the rest."""

    def __init__(self, pipeline: Pipeline, backend: SwitchBackend, profiles: Profiles) -> None:
        self._pipeline = pipeline
        self._backend = backend
        self._profiles = profiles
        self._notes: dict[int, dict[EntryKey, EntryNotes]] = {number: {} for number in pipeline.tables}
        self._defaults: dict[int, p4r.TableEntry] = {}
        self._decoders = {number: KeyDecoder(table.fields) for number, table in pipeline.tables.items()}

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
            if update_type == p4r.Update.INSERT:
                self._insert(table, key, message)
            elif update_type == p4r.Update.MODIFY:
                self._modify(table, key, message)
            else:
                self._delete(table, key)

    def _decode_entry_key(self, table: BoundTable, message: p4r.TableEntry) -> EntryKey:
        return self.decode_key(table, message.match, message.priority), message.priority

    def takes_plain_inserts(self, table: BoundTable) -> bool:
        """Return whether an entry with only match, priority and action changes nothing but its table."""
        return not table.is_constant and table.profile_id == 0 and table.meter_type is None

    def decode_key(self, table: BoundTable, matches: Iterable[p4r.FieldMatch], priority: int) -> TableKey:
        """Return the backend's key of an entry. Raises RequestError if it is invalid."""
        if not table.fields:
            raise invalid("a table without key has a default entry only (set is_default_action)")
        key = self._decoders[table.id].decode(matches)
        if table.needs_priority and priority <= 0:
            raise invalid(f"priority {priority} is not positive, as ternary, range or optional keys need")
        if not table.needs_priority and priority != 0:
            raise invalid(f"priority {priority} is set, but no field is ternary, range or optional")
        return key

    def decode_own_action(self, table: BoundTable, message: p4r.TableAction) -> ActionCall | None:
        """Return the backend's call of an entry's direct action, None for others. Raises RequestError if invalid."""
        if message.WhichOneof("type") != "action":
            return None
        return decode_action(table.actions, message.action, p4i.ActionRef.DEFAULT_ONLY)

    def _check_mutable(self, table: BoundTable) -> None:
        if table.is_constant:
            raise RequestError(PERMISSION_DENIED, "its entries are constant")

    def _insert(self, table: BoundTable, key: EntryKey, message: p4r.TableEntry) -> None:
        self._check_mutable(table)
        if not message.HasField("action"):
            raise invalid("action is not set")
        self._check_resources(table, message)
        notes = EntryNotes(message.metadata, message.controller_metadata)
        action = self._decode_table_action(table, message.action, notes)
        entry = TableEntry(key[0], action, key[1], message.idle_timeout_ns)
        try:
            self._backend.table_insert(table.name, entry)
        except BackendError:
            self._profiles.delete_one_shot(table.profile_id, notes.one_shot_group)
            raise
        self._note(table, key, notes)
        self._write_resources(table, key, message)

    def _modify(self, table: BoundTable, key: EntryKey, message: p4r.TableEntry) -> None:
        old = self._backend.table_entry(table.name, *key)
        self._check_resources(table, message)
        if table.is_constant:
            if message.HasField("action"):
                raise RequestError(PERMISSION_DENIED, "the action of a constant entry cannot be modified")
            self._write_resources(table, key, message)
            return
        old_notes = self._notes[table.id].get(key, _NO_NOTES)
        notes = EntryNotes(message.metadata, message.controller_metadata)
        if message.HasField("action"):
            action = self._decode_table_action(table, message.action, notes)
        else:
            action = old.action
            notes.action_set, notes.one_shot_group = old_notes.action_set, old_notes.one_shot_group
        entry = TableEntry(key[0], action, key[1], message.idle_timeout_ns)
        try:
            self._backend.table_modify(table.name, entry)
        except BackendError:
            if notes.one_shot_group != old_notes.one_shot_group:
                self._profiles.delete_one_shot(table.profile_id, notes.one_shot_group)
            raise
        self._note(table, key, notes)
        if notes.one_shot_group != old_notes.one_shot_group:
            self._profiles.delete_one_shot(table.profile_id, old_notes.one_shot_group)
        self._write_resources(table, key, message)

    def _delete(self, table: BoundTable, key: EntryKey) -> None:
        self._check_mutable(table)
        self._backend.table_delete(table.name, *key)
        if self._notes[table.id]:
            notes = self._notes[table.id].pop(key, _NO_NOTES)
            self._profiles.delete_one_shot(table.profile_id, notes.one_shot_group)

    def _note(self, table: BoundTable, key: EntryKey, notes: EntryNotes) -> None:
        of_table = self._notes[table.id]
        if notes != _NO_NOTES:
            of_table[key] = notes
        elif of_table:
            of_table.pop(key, None)

    def _decode_table_action(self, table: BoundTable, message: p4r.TableAction, notes: EntryNotes) -> TableAction:
        """Return the backend's action; a one-shot set becomes a hidden group, recorded in `notes`."""
        kind = message.WhichOneof("type")
        if table.profile_id == 0:
            if kind != "action":
                raise invalid(f"expected an action, got {kind or 'nothing'} (the table has no action profile)")
            return decode_action(table.actions, message.action, p4i.ActionRef.DEFAULT_ONLY)
        match kind:
            case "action_profile_member_id":
                self._profiles.check_style(table.profile_id, one_shot=False)
                return MemberRef(message.action_profile_member_id)
            case "action_profile_group_id":
                self._profiles.check_style(table.profile_id, one_shot=False)
                return GroupRef(message.action_profile_group_id)
            case "action_profile_action_set":
                notes.one_shot_group, notes.action_set = self._profiles.create_one_shot(
                    table.profile_id, message.action_profile_action_set
                )
                return GroupRef(notes.one_shot_group)
        raise invalid(f"expected a member, a group or an action set, got {kind or 'nothing'}")

    # direct resources and idle timeouts

    def _check_resources(self, table: BoundTable, message: p4r.TableEntry) -> None:
        if message.HasField("counter_data"):
            if not table.has_direct_counter:
                raise invalid("counter_data is set, but the table has no direct counter")
            decode_counter(message.counter_data)
        if message.HasField("meter_config"):
            if table.meter_type is None:
                raise invalid("meter_config is set, but the table has no direct meter")
            decode_meter_config(message.meter_config, table.meter_type)
        if message.HasField("meter_counter_data"):
            if table.meter_type is None:
                raise invalid("meter_counter_data is set, but the table has no direct meter")
            check_colour_counts(message.meter_counter_data)
        if message.HasField("time_since_last_hit"):
            raise invalid("time_since_last_hit can only be read")
        if message.idle_timeout_ns < 0:
            raise invalid(f"idle_timeout_ns {message.idle_timeout_ns} is negative")
        if message.idle_timeout_ns and (message.is_default_action or not table.notifies_idle):
            raise invalid("idle_timeout_ns is set, but the table does not support idle timeouts")

    def _write_resources(self, table: BoundTable, key: EntryKey | None, message: p4r.TableEntry) -> None:
        match, priority = (None, 0) if key is None else key
        if message.HasField("counter_data"):
            value = decode_counter(message.counter_data)
            self._backend.direct_counter_write(table.name, match, priority, value)
        if table.meter_type is not None:
            config = None
            if message.HasField("meter_config"):
                config = decode_meter_config(message.meter_config, table.meter_type)
            self._backend.direct_meter_write(table.name, match, priority, config)
            if message.HasField("meter_counter_data"):
                self.clear_colour_counts(table, match, priority)

    def clear_colour_counts(self, table: BoundTable, key: TableKey | None, priority: int) -> None:
        """Set the counts of an entry's meter to 0."""
        with self._backend.atomically():
            state = self._backend.direct_meter_read(table.name, key, priority)
            self._backend.direct_meter_restore(table.name, key, priority, cleared(state))

    def resolve(self, message: p4r.TableEntry) -> tuple[BoundTable, TableKey | None, int]:
        """Return the table, key (None: default entry) and priority of a direct resource's entry."""
        table = lookup(self._pipeline.tables, message.table_id, "table")
        with place(f"table {table.name!r}"):
            if message.is_default_action:
                return table, None, 0
            key = self._decode_entry_key(table, message)
            self._backend.table_entry(table.name, *key)
            return table, *key

    def keys(self, table: BoundTable) -> Iterator[EntryKey]:
        """Return match and priority of all entries of a table."""
        return ((entry.key, entry.priority) for entry in self._backend.table_entries(table.name))

    # default entries

    def _write_default(self, table: BoundTable, update_type: int, message: p4r.TableEntry) -> None:
        if update_type != p4r.Update.MODIFY:
            raise invalid("a default entry can only be modified")
        if message.match or message.priority:
            raise invalid("a default entry has neither match nor priority")
        if table.has_constant_default:
            raise RequestError(PERMISSION_DENIED, "its default action is constant")
        self._check_resources(table, message)
        if not message.HasField("action"):
            self._backend.table_set_default(table.name, None)
            self._defaults.pop(table.id, None)
            self._write_resources(table, None, p4r.TableEntry())
            return
        if message.action.WhichOneof("type") != "action":
            raise invalid("the action of a default entry must be given directly")
        call = decode_action(table.actions, message.action.action, p4i.ActionRef.TABLE_ONLY)
        self._backend.table_set_default(table.name, call)
        canonical = p4r.TableEntry(
            table_id=table.id,
            is_default_action=True,
            metadata=message.metadata,
            controller_metadata=message.controller_metadata,
        )
        encode_action(table.actions, call, canonical.action.action)
        self._defaults[table.id] = canonical
        self._write_resources(table, None, message)

    def _default_message(self, table: BoundTable) -> p4r.TableEntry:
        if table.id in self._defaults:
            return self._defaults[table.id]
        message = p4r.TableEntry(table_id=table.id, is_default_action=True, is_const=table.has_constant_default)
        default = table.table.default_entry
        if default is not None and _is_visible(table, default):
            call = ActionCall(default.action.name, default.arguments)
            encode_action(table.actions, call, message.action.action)
        return message

    def has_written_default(self, table_id: int) -> bool:
        """Return whether a controller has set the table's default action."""
        return table_id in self._defaults

    def written_defaults(self) -> Iterator[p4r.TableEntry]:
        """Yield the default entries that controllers have set, with direct resources."""
        for number in self._defaults:
            found = self.existing(p4r.TableEntry(table_id=number, is_default_action=True))
            assert found is not None
            yield found

    def delete_initial_entries(self, table_ids: Container[int]) -> None:
        """Remove the entries of preinitialized tables among these."""
        for table in self._pipeline.tables.values():
            if table.id in table_ids and not table.is_constant:
                for entry in list(self._backend.table_entries(table.name)):
                    self._backend.table_delete(table.name, entry.key, entry.priority)

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
        action_id = query.action.action.action_id if query.HasField("action") else 0
        if action_id:
            bound_action(table.actions, action_id)
        if query.HasField("time_since_last_hit") and not table.notifies_idle:
            raise invalid("time_since_last_hit is set, but the table does not support idle timeouts")

        def selects(entry: p4r.TableEntry) -> bool:
            return (
                query.priority in (0, entry.priority)
                and query.controller_metadata in (0, entry.controller_metadata)
                and query.metadata in (b"", entry.metadata)
                and action_id in (0, entry.action.action.action_id)
            )

        return selects

    def _read_table(
        self, table: BoundTable, query: p4r.TableEntry, selects: Callable[[p4r.TableEntry], bool]
    ) -> Iterator[p4r.TableEntry]:
        if query.is_default_action:
            message = p4r.TableEntry()
            message.CopyFrom(self._default_message(table))
            if selects(message):
                self._add_resources(table, None, message, query)
                yield message
            return
        for entry in self._candidates(table, query):
            message = self._message(table, entry)
            if selects(message):
                self._add_resources(table, (entry.key, entry.priority), message, query)
                yield message

    def _candidates(self, table: BoundTable, query: p4r.TableEntry) -> Iterator[TableEntry]:
        """Yield the entries with the query's match; all without a match."""
        if not (query.table_id and query.match):
            yield from self._backend.table_entries(table.name)
            return
        key = self._decoders[table.id].decode(query.match)
        if table.needs_priority and query.priority == 0:
            yield from (each for each in self._backend.table_entries(table.name) if each.key == key)
            return
        with suppress(EntryNotFoundError):
            yield self._backend.table_entry(table.name, key, query.priority)

    def _message(self, table: BoundTable, entry: TableEntry) -> p4r.TableEntry:
        """Return the entry in canonical form, without data plane state."""
        message = p4r.TableEntry(
            table_id=table.id,
            match=encode_key(table.fields, entry.key),
            priority=entry.priority,
            idle_timeout_ns=entry.idle_timeout_ns,
            is_const=table.is_constant,
        )
        of_table = self._notes[table.id]
        notes = of_table.get((entry.key, entry.priority), _NO_NOTES) if of_table else _NO_NOTES
        message.metadata, message.controller_metadata = notes.metadata, notes.controller_metadata
        if notes.action_set is not None:
            message.action.action_profile_action_set.CopyFrom(notes.action_set)
            return message
        match entry.action:
            case ActionCall():
                encode_action(table.actions, entry.action, message.action.action)
            case MemberRef(number):
                message.action.action_profile_member_id = number
            case GroupRef(number):
                message.action.action_profile_group_id = number
        return message

    def _add_resources(
        self, table: BoundTable, key: EntryKey | None, message: p4r.TableEntry, query: p4r.TableEntry
    ) -> None:
        """Add the data plane state that the query asks for to an entry's message."""
        match, priority = (None, 0) if key is None else key
        if query.HasField("counter_data") and table.has_direct_counter:
            value = self._backend.direct_counter_read(table.name, match, priority)
            message.counter_data.CopyFrom(encode_counter(value))
        wants_config, wants_counts = query.HasField("meter_config"), query.HasField("meter_counter_data")
        if table.meter_type is not None and (wants_config or wants_counts):
            state = self._backend.direct_meter_read(table.name, match, priority)
            if wants_config and state.config is not None:
                message.meter_config.CopyFrom(encode_meter_config(state.config))
            if wants_counts:
                message.meter_counter_data.CopyFrom(encode_colour_counts(state.counts))
        if query.HasField("time_since_last_hit") and match is not None and table.notifies_idle:
            message.time_since_last_hit.elapsed_ns = self._backend.table_idle_ns(table.name, match, priority)

    def existing(self, message: p4r.TableEntry) -> p4r.TableEntry | None:
        """Return the entry with the key of `message`, with direct resources; None if it does not exist."""
        table = lookup(self._pipeline.tables, message.table_id, "table")
        if message.is_default_action:
            found = p4r.TableEntry()
            found.CopyFrom(self._default_message(table))
            self._add_resources(table, None, found, _WITH_RESOURCES)
            return found
        try:
            entry = self._backend.table_entry(table.name, *self._decode_entry_key(table, message))
        except EntryNotFoundError:
            return None
        found = self._message(table, entry)
        self._add_resources(table, (entry.key, entry.priority), found, _WITH_RESOURCES)
        return found

    def message_of(self, table_name: str, key: EntryKey) -> p4r.TableEntry | None:
        """Return the entry for an idle-timeout notification; None if it no longer exists."""
        table = self._pipeline.table_named(table_name)
        if table is None:
            return None
        try:
            return self._message(table, self._backend.table_entry(table_name, *key))
        except BackendError:
            return None


_WITH_RESOURCES = p4r.TableEntry(counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig())


def _is_visible(table: BoundTable, default: DefaultEntry) -> bool:
    return any(action.name == default.action.name for action in table.actions.values())
