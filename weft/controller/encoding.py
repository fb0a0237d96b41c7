"""From the plan's entities to protobuf, for fabrics of many switches.

The switches of a fabric hold mostly the same: a prefix stands on every switch, a next hop in several entries, a port's
thresholds on all switches alike. So a match and an action are encoded once each, by finsy, and entries that are equal
are one protobuf object, which nobody may change.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import finsy
from finsy.p4schema import P4Schema, P4Table
from finsy.proto import p4r

from weft.controller.entities import Entity
from weft.controller.reconcile import (
    EntityKey,
    EntitySet,
    entity_key,
    index_entities,
    sort_parameters,
    stable_entity,
    table_key,
)

_SHARED_FIELDS = ("table_id", "match", "action", "priority", "is_default_action")
_OTHER_FIELDS = tuple(
    (field.name, field.default)
    for field in finsy.P4TableEntry.__dataclass_fields__.values()
    if field.name not in _SHARED_FIELDS and field.name != "_"
)
_Encoded = tuple[EntityKey, p4r.Entity]


class EntityEncoder:
    """Encodes entities with a P4Info, whose P4Runtime version must not change any more."""

    def __init__(self, schema: P4Schema) -> None:
        self.schema = schema
        self._entries: dict[Hashable, _Encoded] = {}
        self._keys: dict[Hashable, tuple[EntityKey, p4r.TableEntry]] = {}
        self._actions: dict[Hashable, p4r.TableAction] = {}

    def entity_set(self, entities: Iterable[Entity]) -> EntitySet:
        """Return the entities by what identifies them.

        Raises:
            ValueError: P4Info has no such table, action or parameter, a value does not fit, or two entities have
                the same key.

        """
        return index_entities(self._encode(entity) for entity in entities)

    def _encode(self, entity: Entity) -> _Encoded:
        if isinstance(entity, finsy.P4TableEntry):
            action = _action_parts(entity.action)
            if action is not None and all(getattr(entity, name) == none for name, none in _OTHER_FIELDS):
                return self._encode_entry(entity, action)
        encoded = stable_entity(entity.encode(self.schema))
        return entity_key(encoded), encoded

    def _encode_entry(self, entry: finsy.P4TableEntry, action: tuple[Hashable, ...]) -> _Encoded:
        match = tuple(entry.match.items()) if entry.match else ()
        key = (entry.table_id, match, entry.priority, entry.is_default_action)
        found = self._entries.get((key, action))
        if found is None:
            table = self.schema.tables[entry.table_id]
            identity, message = self._key(key, entry, table)
            encoded = p4r.Entity(table_entry=message)
            encoded.table_entry.action.CopyFrom(self._action((entry.table_id, *action), entry, table))
            found = self._entries[key, action] = identity, encoded
        return found

    def _key(
        self, key: Hashable, entry: finsy.P4TableEntry, table: P4Table
    ) -> tuple[EntityKey, p4r.TableEntry]:
        """Return what identifies an entry, and the entry without its action."""
        found = self._keys.get(key)
        if found is None:
            message = table_key(
                p4r.TableEntry(
                    table_id=table.id,
                    match=entry.match.encode(table) if entry.match else (),
                    priority=entry.priority,
                    is_default_action=entry.is_default_action,
                )
            )
            found = self._keys[key] = entity_key(p4r.Entity(table_entry=message)), message
        return found

    def _action(self, parts: Hashable, entry: finsy.P4TableEntry, table: P4Table) -> p4r.TableAction:
        found = self._actions.get(parts)
        if found is None:
            assert entry.action is not None
            found = self._actions[parts] = sort_parameters(entry.action.encode_table_action(table))
        return found


def _action_parts(action: object) -> tuple[Hashable, ...] | None:
    """Return what makes an action equal to another; None if it is of a kind that is not shared."""
    if isinstance(action, finsy.P4TableAction):
        return (action.name, *action.args.items())
    if isinstance(action, finsy.P4IndirectAction) and action.action_set is None:
        return (action.member_id, action.group_id)
    return None
