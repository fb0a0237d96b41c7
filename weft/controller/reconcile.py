"""Computes the P4Runtime updates that turn a switch's entities into the planned ones, in a valid order.

Entities are compared as canonical protobuf, so that entities read from a switch equal the same entities planned here.
Existing entities are not rewritten: a change of one route is one update.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from finsy.proto import p4r

EntityKey = tuple[str, bytes]
RANK_OF_MEMBERS, _RANK_OF_GROUPS, RANK_OF_REFERRING_ENTRIES, RANK_OF_ENTRIES = range(4)
"""`EncodedEntity.rank` of action profile members, of groups, of entries that refer to either, and of other entries."""
_ENTITY_FIELD = 2
_TABLE_ENTRY_FIELD = 2
_UPDATES_FIELD = 4
_UPDATE_TYPES = {kind: p4r.Update(type=kind).SerializeToString() for kind in p4r.Update.Type.values()}


class EncodedEntity:
    """An entity as canonical bytes, encoded once for all switches that hold it. Do not change it.

    Attributes:
        key: identifies it on its switch.
        data: bytes of the `p4.v1.Entity`.
        is_default: whether it is a table's default action.
        rank: 0 for entities without references; higher than the rank of any entity that it refers to.

    """

    __slots__ = ("_insert", "data", "is_default", "key", "rank")

    def __init__(self, key: EntityKey, data: bytes, rank: int, is_default: bool) -> None:
        self.key = key
        self.data = data
        self.rank = rank
        self.is_default = is_default
        self._insert: EncodedUpdate | None = None

    @classmethod
    def of(cls, entity: p4r.Entity) -> EncodedEntity:
        """Return an entity without volatile parts. ValueError: the controller does not manage its kind."""
        stable = stable_entity(entity)
        return cls(entity_key(stable), _bytes(stable), _rank(stable), is_default(stable))

    @classmethod
    def plain(cls, entity: p4r.Entity) -> EncodedEntity:
        """Return an entity of a kind outside plans, such as a register cell; it has no key."""
        return cls(("", b""), _bytes(entity), 0, False)

    @property
    def entity(self) -> p4r.Entity:
        """The decoded entity, a new object each time."""
        entity: p4r.Entity = p4r.Entity.FromString(self.data)
        return entity

    def update(self, kind: p4r.Update.Type.ValueType) -> EncodedUpdate:
        """Return an update of this kind for the entity."""
        if kind == p4r.Update.INSERT:
            if self._insert is None:
                self._insert = EncodedUpdate(kind, self)
            return self._insert
        return EncodedUpdate(kind, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EncodedEntity) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return f"EncodedEntity({self.entity})"


class EncodedUpdate:
    """An update of an entity; `field` is its encoding as a field of a `p4.v1.WriteRequest`."""

    __slots__ = ("entity", "field", "type")

    def __init__(self, kind: p4r.Update.Type.ValueType, entity: EncodedEntity) -> None:
        self.type = kind
        self.entity = entity
        self.field = bytes_field(_UPDATES_FIELD, _UPDATE_TYPES[kind] + bytes_field(_ENTITY_FIELD, entity.data))

    @property
    def message(self) -> p4r.Update:
        """The decoded update, a new object each time."""
        return p4r.Update(type=self.type, entity=self.entity.entity)


EntitySet = dict[EntityKey, EncodedEntity]


def bytes_field(number: int, content: bytes) -> bytes:
    """Return the encoding of a protobuf field that holds bytes or a message; a message is its concatenated fields."""
    length = len(content)
    size = b""
    while length > 0x7F:
        size += bytes((length & 0x7F | 0x80,))
        length >>= 7
    return bytes((number << 3 | 2,)) + size + bytes((length,)) + content


def table_entry_entity(key: EntityKey, entry: bytes, rank: int, is_default: bool) -> EncodedEntity:
    """Return an entity from a table entry's canonical bytes."""
    return EncodedEntity(key, bytes_field(_TABLE_ENTRY_FIELD, entry), rank, is_default)


def entity_set(entities: Iterable[p4r.Entity]) -> EntitySet:
    """Index entities by key, without volatile parts (counters, hit times).

    Raises:
        ValueError: two entities have the same key, or the controller does not manage a kind.

    """
    return index_entities([EncodedEntity.of(entity) for entity in entities])


def index_entities(entities: Sequence[EncodedEntity]) -> EntitySet:
    """Return entities by their keys. ValueError: two have the same key."""
    indexed = {entity.key: entity for entity in entities}
    if len(indexed) < len(entities):
        seen: set[EntityKey] = set()
        for entity in entities:
            if entity.key in seen:
                raise ValueError(f"two entities have the same key: {entity.entity}")
            seen.add(entity.key)
    return indexed


def plan_updates(installed: EntitySet, desired: EntitySet) -> list[EncodedUpdate]:
    """Return the updates that turn `installed` into `desired`.

    Inserts and modifications write referenced entities first; deletions follow, in reverse order. Default entries are
    always modified, never inserted or deleted (P4Runtime, section 9.1.5).
    """
    changes: list[EncodedUpdate] = []
    for key, entity in desired.items():
        present = installed.get(key)
        # Most entities are the same objects as in the previous plan (encoding.py), so they are not compared.
        if present is entity:
            continue
        if present is None or present.data != entity.data:
            # A default entry exists as soon as the table does.
            is_new = present is None and not entity.is_default
            changes.append(entity.update(p4r.Update.INSERT if is_new else p4r.Update.MODIFY))
    removals = [
        entity.update(p4r.Update.DELETE)
        for key, entity in installed.items()
        if key not in desired and not entity.is_default
    ]
    # A stable sort keeps the plan's order within a rank, so that adjacent inserts into a table reach the engine
    # together.
    changes.sort(key=lambda update: update.entity.rank)
    removals.sort(key=lambda update: -update.entity.rank)
    return [*changes, *removals]


def entity_key(entity: p4r.Entity) -> EntityKey:
    """Return the key of an entity: its kind and the bytes of its key fields."""
    kind = entity.WhichOneof("entity")
    if kind == "table_entry":
        return kind, _bytes(table_key(entity.table_entry))
    if kind == "action_profile_member":
        member = entity.action_profile_member
        return kind, _bytes(
            p4r.ActionProfileMember(action_profile_id=member.action_profile_id, member_id=member.member_id)
        )
    if kind == "action_profile_group":
        group = entity.action_profile_group
        return kind, _bytes(p4r.ActionProfileGroup(action_profile_id=group.action_profile_id, group_id=group.group_id))
    engine = entity.packet_replication_engine_entry
    if kind == "packet_replication_engine_entry" and engine.WhichOneof("type") == "multicast_group_entry":
        group_id = engine.multicast_group_entry.multicast_group_id
        return kind, group_id.to_bytes(4, "big")
    if kind == "packet_replication_engine_entry" and engine.WhichOneof("type") == "clone_session_entry":
        return "clone_session_entry", engine.clone_session_entry.session_id.to_bytes(4, "big")
    raise ValueError(f"the controller does not manage entities of kind {kind!r}")


def table_key(table_entry: p4r.TableEntry) -> p4r.TableEntry:
    """Return a table entry reduced to the fields that identify it."""
    key = p4r.TableEntry(
        table_id=table_entry.table_id,
        priority=table_entry.priority,
        is_default_action=table_entry.is_default_action,
    )
    key.match.extend(sorted(table_entry.match, key=lambda field: field.field_id))
    return key


def stable_entity(entity: p4r.Entity) -> p4r.Entity:
    """Return an entity in canonical order and without volatile parts."""
    # Switches share the plan's entities, so they must not be changed in place.
    stable = copy.deepcopy(entity)
    if stable.HasField("table_entry"):
        entry = stable.table_entry
        # These change with every packet, so every entry would differ from the plan.
        for volatile in ("counter_data", "meter_counter_data", "time_since_last_hit"):
            entry.ClearField(volatile)
        fields = sorted(entry.match, key=lambda field: field.field_id)
        del entry.match[:]
        entry.match.extend(fields)
        if entry.HasField("action"):
            _sort_parameters(entry.action)
    return stable


def _sort_parameters(action: p4r.TableAction) -> None:
    """Sort the parameters of a direct action by id, in place."""
    if action.HasField("action"):
        parameters = sorted(action.action.params, key=lambda parameter: parameter.param_id)
        del action.action.params[:]
        action.action.params.extend(parameters)


def _rank(entity: p4r.Entity) -> int:
    kind = entity.WhichOneof("entity")
    if kind == "action_profile_member":
        return RANK_OF_MEMBERS
    if kind in ("action_profile_group", "packet_replication_engine_entry"):
        return _RANK_OF_GROUPS
    refers = entity.table_entry.action.WhichOneof("type") in ("action_profile_member_id", "action_profile_group_id")
    return RANK_OF_REFERRING_ENTRIES if refers else RANK_OF_ENTRIES


def is_default(entity: p4r.Entity) -> bool:
    """Return whether an entity is the default action of a table."""
    return entity.HasField("table_entry") and entity.table_entry.is_default_action


def _bytes(message: Any) -> bytes:
    """Return the canonical bytes of a protobuf message."""
    return bytes(message.SerializeToString(deterministic=True))
