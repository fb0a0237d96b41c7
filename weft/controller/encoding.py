"""Encodes the plan's entities as protobuf, efficiently for fabrics with many switches.

Switches of a fabric hold mostly equal values: a prefix is on every switch, a next hop in several entries, a port's
thresholds on all switches. So finsy encodes each match and each action once, and equal entries share one object, which
must not be changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import finsy
from finsy.p4schema import P4Schema
from finsy.proto import p4r

from weft.controller import reconcile
from weft.controller.entities import Entity
from weft.controller.program_names import ProgramNames

_ACTION_FIELD = p4r.TableEntry.DESCRIPTOR.fields_by_name["action"].number
_CONFIG_FIELD = p4r.SetForwardingPipelineConfigRequest.DESCRIPTOR.fields_by_name["config"].number
_MOST_REMEMBERED = 1 << 15
_DEFAULTS = tuple(
    (field.name, field.default)
    for field in finsy.P4TableEntry.__dataclass_fields__.values()
    if field.name not in ("table_id", "match", "action", "priority", "is_default_action", "_")
)
_other_fields = attrgetter(*(name for name, _ in _DEFAULTS))
_NO_OTHER_FIELDS = tuple(default for _, default in _DEFAULTS)


@dataclass(frozen=True, slots=True, eq=False)
class _EncodedKey:
    """An entry's key, and the entry's bytes before and after its action."""

    key: reconcile.EntityKey
    head: bytes
    tail: bytes


@dataclass(frozen=True, slots=True, eq=False)
class _EncodedAction:
    """The encoded action field of an entry, and the rank of entries with this action."""

    field: bytes
    rank: int


class EntityEncoder:
    """Encodes entities with a P4Info; the schema's P4Runtime version must not change afterwards.

    Entities without a table, action or field in the program are skipped; `left_out` notes what is lacking, by table.
    """

    def __init__(self, schema: P4Schema, names: ProgramNames, left_out: dict[str, str]) -> None:
        self.schema = schema
        self._names = names
        self._left_out = left_out
        self._remembered: dict[int, tuple[Entity, reconcile.EncodedEntity | None]] = {}
        # Equal keys and equal actions are the same objects, so entries are looked up by identity.
        self._entries: dict[tuple[_EncodedKey, _EncodedAction], reconcile.EncodedEntity] = {}
        self._keys: dict[Hashable, _EncodedKey] = {}
        self._actions: dict[Hashable, _EncodedAction] = {}

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
        lacking = self._names.lacking(entity)
        if lacking:
            self._left_out.setdefault(place_of(entity), lacking)
        encoded = None if lacking else self._encode_new(entity)
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        # Stored with the entity, which keeps its id from being reused.
        self._remembered[id(entity)] = entity, encoded
        return encoded

    def _encode_new(self, entity: Entity) -> reconcile.EncodedEntity:
        if isinstance(entity, finsy.P4TableEntry):
            action = _action_parts(entity.action)
            if action is not None and _other_fields(entity) == _NO_OTHER_FIELDS:
                return self._encode_entry(entity, action)
        return reconcile.EncodedEntity.of(entity.encode(self.schema))

    def _encode_entry(self, entry: finsy.P4TableEntry, parts: tuple[Hashable, ...]) -> reconcile.EncodedEntity:
        key = self._key(entry)
        action = self._action(entry, parts)
        found = self._entries.get((key, action))
        if found is None:
            data = key.head + action.field + key.tail
            found = reconcile.table_entry_entity(key.key, data, action.rank, entry.is_default_action)
            self._entries[key, action] = found
        return found

    def _key(self, entry: finsy.P4TableEntry) -> _EncodedKey:
        match = tuple(entry.match.items()) if entry.match else ()
        value = (entry.table_id, match, entry.priority, entry.is_default_action)
        found = self._keys.get(value)
        if found is None:
            table = self.schema.tables[entry.table_id]
            message = reconcile.table_key(
                p4r.TableEntry(
                    table_id=table.id,
                    match=entry.match.encode(table) if entry.match else (),
                    priority=entry.priority,
                    is_default_action=entry.is_default_action,
                )
            )
            identity = reconcile.entity_key(p4r.Entity(table_entry=message))
            # Fields are written in the order of their numbers; the action comes between these two parts.
            tail = p4r.TableEntry(priority=message.priority, is_default_action=message.is_default_action)
            message.ClearField("priority")
            message.ClearField("is_default_action")
            found = _EncodedKey(identity, message.SerializeToString(), tail.SerializeToString())
            self._keys[value] = found
        return found

    def _action(self, entry: finsy.P4TableEntry, parts: tuple[Hashable, ...]) -> _EncodedAction:
        value = (entry.table_id, *parts)
        found = self._actions.get(value)
        if found is None:
            assert entry.action is not None
            action = reconcile.sort_parameters(entry.action.encode_table_action(self.schema.tables[entry.table_id]))
            field = reconcile.bytes_field(_ACTION_FIELD, action.SerializeToString())
            found = self._actions[value] = _EncodedAction(field, reconcile.rank_of_action(action))
        return found


def place_of(entity: Entity) -> str:
    """Return the table or selector that an entity belongs to; empty for packet replication groups."""
    if isinstance(entity, finsy.P4TableEntry):
        return entity.table_id
    if isinstance(entity, finsy.P4ActionProfileMember | finsy.P4ActionProfileGroup):
        return entity.action_profile_id
    return ""


def _action_parts(action: object) -> tuple[Hashable, ...] | None:
    """Return a key that equal actions share; None for kinds of actions that are not shared."""
    if isinstance(action, finsy.P4TableAction):
        return (action.name, *action.args.items())
    if isinstance(action, finsy.P4IndirectAction) and action.action_set is None:
        return (action.member_id, action.group_id)
    return None
