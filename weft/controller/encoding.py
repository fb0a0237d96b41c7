"""From the plan's entities to protobuf, for fabrics of many switches.

The switches of a fabric hold mostly the same: a prefix is on every switch, a next hop in several entries, a port's
thresholds on all switches. So finsy encodes each match and each action once, and equal entries
are one object, which must not be changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import finsy
from finsy.p4schema import P4Schema
from finsy.proto import p4r

from weft.controller.entities import Entity
from weft.controller.program_names import ProgramNames
from weft.controller.reconcile import (
    EncodedEntity,
    EntityKey,
    EntitySet,
    bytes_field,
    entity_key,
    index_entities,
    rank_of_action,
    sort_parameters,
    table_entry_entity,
    table_key,
)

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
    """What identifies an entry, and the bytes of the entry before and behind its action."""

    key: EntityKey
    head: bytes
    tail: bytes


@dataclass(frozen=True, slots=True, eq=False)
class _EncodedAction:
    """The field of an entry that its action is, and the rank of such an entry."""

    field: bytes
    rank: int


class EntityEncoder:
    """Encodes entities with a P4Info, whose P4Runtime version must not change any more.

    What a program has no table, action or field for is left out, and noted in `left_out`: by table, what is lacking.
    """

    def __init__(self, schema: P4Schema, names: ProgramNames, left_out: dict[str, str]) -> None:
        self.schema = schema
        self._names = names
        self._left_out = left_out
        self._remembered: dict[int, tuple[Entity, EncodedEntity | None]] = {}
        # Of equal value there is one key and one action, so entries are found by which these are.
        self._entries: dict[tuple[_EncodedKey, _EncodedAction], EncodedEntity] = {}
        self._keys: dict[Hashable, _EncodedKey] = {}
        self._actions: dict[Hashable, _EncodedAction] = {}

    @cached_property
    def pipeline_config_field(self) -> bytes:
        """The pipeline as the `config` of a request that sets it."""
        return bytes_field(
            _CONFIG_FIELD, self.schema.get_pipeline_config().SerializeToString(deterministic=True)
        )

    def entity_set(self, entities: Iterable[Entity]) -> EntitySet:
        """Return the entities by what identifies them, but for those that the program has no place for.

        Raises:
            ValueError: a value does not fit, or two entities have the same key.

        """
        encoded = (self._encode(entity) for entity in entities)
        return index_entities([each for each in encoded if each is not None])

    def _encode(self, entity: Entity) -> EncodedEntity | None:
        # The plan has one object for what several switches hold; to find it again costs less than to compare.
        found = self._remembered.get(id(entity))
        if found is not None:
            return found[1]
        lacking = self._names.lacking(entity)
        if lacking:
            self._left_out.setdefault(place_of(entity), lacking)
        encoded = None if lacking else self._encode_new(entity)
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        # Kept with the entity, so that its id is not reused meanwhile.
        self._remembered[id(entity)] = entity, encoded
        return encoded

    def _encode_new(self, entity: Entity) -> EncodedEntity:
        if isinstance(entity, finsy.P4TableEntry):
            action = _action_parts(entity.action)
            if action is not None and _other_fields(entity) == _NO_OTHER_FIELDS:
                return self._encode_entry(entity, action)
        return EncodedEntity.of(entity.encode(self.schema))

    def _encode_entry(self, entry: finsy.P4TableEntry, parts: tuple[Hashable, ...]) -> EncodedEntity:
        key = self._key(entry)
        action = self._action(entry, parts)
        found = self._entries.get((key, action))
        if found is None:
            data = key.head + action.field + key.tail
            found = table_entry_entity(key.key, data, action.rank, entry.is_default_action)
            self._entries[key, action] = found
        return found

    def _key(self, entry: finsy.P4TableEntry) -> _EncodedKey:
        match = tuple(entry.match.items()) if entry.match else ()
        value = (entry.table_id, match, entry.priority, entry.is_default_action)
        found = self._keys.get(value)
        if found is None:
            table = self.schema.tables[entry.table_id]
            message = table_key(
                p4r.TableEntry(
                    table_id=table.id,
                    match=entry.match.encode(table) if entry.match else (),
                    priority=entry.priority,
                    is_default_action=entry.is_default_action,
                )
            )
            identity = entity_key(p4r.Entity(table_entry=message))
            # In the order of the fields' numbers, as all entities are written: the action comes between.
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
            action = sort_parameters(entry.action.encode_table_action(self.schema.tables[entry.table_id]))
            field = bytes_field(_ACTION_FIELD, action.SerializeToString())
            found = self._actions[value] = _EncodedAction(field, rank_of_action(action))
        return found


def place_of(entity: Entity) -> str:
    """Return the table or selector that an entity is of; empty for groups of the packet replication engine."""
    if isinstance(entity, finsy.P4TableEntry):
        return entity.table_id
    if isinstance(entity, finsy.P4ActionProfileMember | finsy.P4ActionProfileGroup):
        return entity.action_profile_id
    return ""


def _action_parts(action: object) -> tuple[Hashable, ...] | None:
    """Return what makes an action equal to another; None if it is of a kind that is not shared."""
    if isinstance(action, finsy.P4TableAction):
        return (action.name, *action.args.items())
    if isinstance(action, finsy.P4IndirectAction) and action.action_set is None:
        return (action.member_id, action.group_id)
    return None
