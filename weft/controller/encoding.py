"""Encodes the plan's entities as protobuf, efficiently for fabrics with many switches.

Switches of a fabric hold mostly equal values: a prefix is on every switch, a next hop in several entries, a port's
thresholds on all switches. finsy encodes each value of a field once, and entities are concatenated from these bytes by
a form that all entities with the same table, fields and action share. Equal entries share one object, which must not be
changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import finsy
from finsy.p4schema import P4Schema
from finsy.proto import p4r

from weft.controller import reconcile
from weft.controller.entities import Entity
from weft.controller.program_names import ProgramNames

_CONFIG_FIELD = p4r.SetForwardingPipelineConfigRequest.DESCRIPTOR.fields_by_name["config"].number
_ENTRY_FIELDS = p4r.TableEntry.DESCRIPTOR.fields_by_name
_MATCH_FIELD, _ACTION_FIELD = _ENTRY_FIELDS["match"].number, _ENTRY_FIELDS["action"].number
_DIRECT_FIELD = p4r.TableAction.DESCRIPTOR.fields_by_name["action"].number
_PARAMS_FIELD = p4r.Action.DESCRIPTOR.fields_by_name["params"].number
_MEMBER_ACTION_FIELD = p4r.ActionProfileMember.DESCRIPTOR.fields_by_name["action"].number
_MEMBER_FIELD = p4r.Entity.DESCRIPTOR.fields_by_name["action_profile_member"].number
_MOST_REMEMBERED = 1 << 15
_DEFAULTS = tuple(
    (field.name, field.default)
    for field in finsy.P4TableEntry.__dataclass_fields__.values()
    if field.name not in ("table_id", "match", "action", "priority", "is_default_action", "_")
)
_other_fields = attrgetter(*(name for name, _ in _DEFAULTS))
_NO_OTHER_FIELDS = tuple(default for _, default in _DEFAULTS)


class _Values:
    """A match field or a parameter: the encodings of its values, as fields of the message around it."""

    __slots__ = ("_encode", "_field", "_known", "name")

    def __init__(self, name: str, field: int, encode: Callable[[Any], Any]) -> None:
        self.name = name
        self._field = field
        self._encode = encode
        self._known: dict[Hashable, bytes] = {}

    def encoded(self, values: Mapping[str, Any]) -> bytes:
        value = values[self.name]
        found = self._known.get(value)
        if found is None:
            message = self._encode(value)  # None for a match of anything
            found = b"" if message is None else reconcile.bytes_field(self._field, message.SerializeToString())
            self._known[value] = found
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _ActionForm:
    """An action's encoding: its id, and its parameters in their order."""

    head: bytes
    parameters: tuple[_Values, ...]

    def encoded(self, arguments: Mapping[str, Any]) -> bytes:
        return self.head + b"".join([each.encoded(arguments) for each in self.parameters])


@dataclass(frozen=True, slots=True, eq=False)
class _EntryForm:
    """Table entries with the same table, fields and kind of action.

    Attributes:
        lacking: what the program lacks for them; empty if nothing.
        head: the field of their table.
        fields: the fields of their match, in the order of the fields' ids.
        action: their direct action; None for a member or a group.

    """

    lacking: str
    head: bytes = b""
    fields: tuple[_Values, ...] = ()
    action: _ActionForm | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _MemberForm:
    """Members of an action profile with the same action."""

    lacking: str
    profile_id: int = 0
    action: _ActionForm | None = None


class EntityEncoder:
    """Encodes entities with a P4Info; the schema's P4Runtime version must not change afterwards.

    Entities without a table, action or field in the program are skipped; `left_out` notes what is lacking, by table.
    """

    def __init__(self, schema: P4Schema, names: ProgramNames, left_out: dict[str, str]) -> None:
        self.schema = schema
        self._names = names
        self._left_out = left_out
        self._remembered: dict[int, tuple[Entity, reconcile.EncodedEntity | None]] = {}
        self._entry_forms: dict[Hashable, _EntryForm] = {}
        self._member_forms: dict[Hashable, _MemberForm] = {}
        # By their bytes, so that equal entries are one object, and so are their keys.
        self._entries: dict[bytes, reconcile.EncodedEntity] = {}
        self._keys: dict[bytes, reconcile.EntityKey] = {}
        self._tails: dict[tuple[int, bool], bytes] = {}

    @cached_property
    def pipeline_config_field(self) -> bytes:
        """The pipeline, encoded as the `config` field of a request that sets it."""
        return reconcile.bytes_field(
            _CONFIG_FIELD, self.schema.get_pipeline_config().SerializeToString(deterministic=True)
        )

    def entity_set(self, entities: Iterable[Entity]) -> reconcile.EntitySet:
        """Return the encoded entities by key, skipping those that the program cannot hold.

        Raises:
            ValueError: a value does not fit its field, or two entities have the same key.

        """
        encoded = (self._encode(entity) for entity in entities)
        return reconcile.index_entities([each for each in encoded if each is not None])

    def _encode(self, entity: Entity) -> reconcile.EncodedEntity | None:
        # The plan shares one object among switches; lookup by identity is cheaper than comparison.
        found = self._remembered.get(id(entity))
        if found is not None:
            return found[1]
        encoded = self._encode_new(entity)
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        # Stored with the entity, which keeps its id from being reused.
        self._remembered[id(entity)] = entity, encoded
        return encoded

    def _encode_new(self, entity: Entity) -> reconcile.EncodedEntity | None:
        if isinstance(entity, finsy.P4TableEntry):
            if _has_form(entity):
                return self._encode_entry(entity)
        elif isinstance(entity, finsy.P4ActionProfileMember) and entity.action is not None:
            return self._encode_member(entity)
        if lacking := self._names.lacking(entity):
            self._leave_out(entity, lacking)
            return None
        return reconcile.EncodedEntity.of(entity.encode(self.schema))

    def _leave_out(self, entity: Entity, lacking: str) -> None:
        self._left_out.setdefault(place_of(entity), lacking)

    def _encode_entry(self, entry: finsy.P4TableEntry) -> reconcile.EncodedEntity | None:
        match: Mapping[str, Any] = entry.match or {}
        action = entry.action
        direct = action if isinstance(action, finsy.P4TableAction) else None
        of_action = None if direct is None else (direct.name, *direct.args)
        place = (entry.table_id, *match, entry.is_default_action, of_action)
        form = self._entry_forms.get(place)
        if form is None:
            form = self._entry_forms[place] = self._entry_form(entry, direct)
        if form.lacking:
            self._leave_out(entry, form.lacking)
            return None
        try:
            head = form.head + b"".join([field.encoded(match) for field in form.fields])
            if form.action is not None and direct is not None:
                of_entry = reconcile.bytes_field(_DIRECT_FIELD, form.action.encoded(direct.args))
            else:
                assert action is not None
                of_entry = action.encode_table_action(self.schema.tables[entry.table_id]).SerializeToString()
        except Exception:
            entry.encode(self.schema)  # finsy names the field in its error
            raise
        tail = self._tail(entry)
        data = head + reconcile.bytes_field(_ACTION_FIELD, of_entry) + tail
        found = self._entries.get(data)
        if found is None:
            key = self._keys.setdefault(head + tail, ("table_entry", head + tail))
            rank = reconcile.RANK_OF_ENTRIES if direct is not None else reconcile.RANK_OF_REFERRING_ENTRIES
            found = self._entries[data] = reconcile.table_entry_entity(key, data, rank, entry.is_default_action)
        return found

    def _entry_form(self, entry: finsy.P4TableEntry, action: finsy.P4TableAction | None) -> _EntryForm:
        if lacking := self._names.lacking(entry):
            return _EntryForm(lacking)
        table = self.schema.tables[entry.table_id]
        fields = sorted((table.match_fields[name].id, name) for name in entry.match or ())
        encoders = tuple(_Values(name, _MATCH_FIELD, table.match_fields[name].encode_field) for _, name in fields)
        # The action profile of a table makes a one-shot set of a direct action, which finsy encodes.
        form = None if action is None or table.action_profile is not None else _action_form(table, action, by_id=True)
        return _EntryForm("", p4r.TableEntry(table_id=table.id).SerializeToString(), encoders, form)

    def _tail(self, entry: finsy.P4TableEntry) -> bytes:
        """Return the fields behind an entry's action."""
        place = (entry.priority, entry.is_default_action)
        found = self._tails.get(place)
        if found is None:
            message = p4r.TableEntry(priority=entry.priority, is_default_action=entry.is_default_action)
            found = self._tails[place] = message.SerializeToString()
        return found

    def _encode_member(self, member: finsy.P4ActionProfileMember) -> reconcile.EncodedEntity | None:
        action = member.action
        assert action is not None
        place = (member.action_profile_id, action.name, *action.args)
        form = self._member_forms.get(place)
        if form is None:
            form = self._member_forms[place] = self._member_form(member, action)
        if form.lacking:
            self._leave_out(member, form.lacking)
            return None
        assert form.action is not None
        try:
            encoded = form.action.encoded(action.args)
        except Exception:
            member.encode(self.schema)  # finsy names the action in its error
            raise
        key = p4r.ActionProfileMember(action_profile_id=form.profile_id, member_id=member.member_id).SerializeToString()
        data = reconcile.bytes_field(_MEMBER_FIELD, key + reconcile.bytes_field(_MEMBER_ACTION_FIELD, encoded))
        return reconcile.EncodedEntity(("action_profile_member", key), data, reconcile.RANK_OF_MEMBERS, False)

    def _member_form(self, member: finsy.P4ActionProfileMember, action: finsy.P4TableAction) -> _MemberForm:
        if lacking := self._names.lacking(member):
            return _MemberForm(lacking)
        profile = self.schema.action_profiles[member.action_profile_id]
        return _MemberForm("", profile.id, _action_form(self.schema, action, by_id=False))


def _action_form(schema: Any, action: finsy.P4TableAction, *, by_id: bool) -> _ActionForm:
    """Return the form of an action of a schema or a table; its parameters by id, or in the order of the arguments."""
    found = schema.actions[action.name]
    parameters = [found.params[name] for name in action.args]
    if by_id:
        parameters.sort(key=attrgetter("id"))
    names = {found.params[name].id: name for name in action.args}
    return _ActionForm(
        p4r.Action(action_id=found.id).SerializeToString(),
        tuple(_Values(names[each.id], _PARAMS_FIELD, each.encode_param) for each in parameters),
    )


def place_of(entity: Entity) -> str:
    """Return the table or selector that an entity belongs to; empty for packet replication groups."""
    if isinstance(entity, finsy.P4TableEntry):
        return entity.table_id
    if isinstance(entity, finsy.P4ActionProfileMember | finsy.P4ActionProfileGroup):
        return entity.action_profile_id
    return ""


def _has_form(entry: finsy.P4TableEntry) -> bool:
    """Return whether an entry has only a match, a priority and an action that is direct, a member or a group."""
    action = entry.action
    is_plain = isinstance(action, finsy.P4TableAction) or (
        isinstance(action, finsy.P4IndirectAction) and action.action_set is None
    )
    return is_plain and _other_fields(entry) == _NO_OTHER_FIELDS
