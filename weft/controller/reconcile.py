"""From what a switch holds to what it should hold: the P4Runtime updates in between, in a valid order.

Entities are compared as canonical protobuf, so entities read from a switch and entities planned here compare
alike. Nothing is written that is there already: a change of one route is one update.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from finsy.proto import p4r

EntityKey = tuple[str, bytes]
EntitySet = dict[EntityKey, p4r.Entity]


def entity_set(entities: Iterable[p4r.Entity]) -> EntitySet:
    """Index entities by what identifies them; volatile parts (counters, hit times) are left out.

    Raises:
        ValueError: two entities have the same key, or a kind the controller does not manage.

    """
    stable = (stable_entity(entity) for entity in entities)
    return index_entities((entity_key(entity), entity) for entity in stable)


def index_entities(entities: Iterable[tuple[EntityKey, p4r.Entity]]) -> EntitySet:
    """Return entities by their keys. ValueError: two have the same key."""
    indexed: EntitySet = {}
    for key, entity in entities:
        if key in indexed:
            raise ValueError(f"two entities have the same key: {entity}")
        indexed[key] = entity
    return indexed


def plan_updates(installed: EntitySet, desired: EntitySet) -> list[p4r.Update]:
    """Updates that turn `installed` into `desired`.

    What is referred to comes before what refers to it, deletions last and the other way round. Default
    entries are always modified, never inserted or deleted (P4Runtime, section 9.1.5).
    """
    changes: list[tuple[int, EntityKey, p4r.Update]] = []
    removals: list[tuple[int, EntityKey, p4r.Update]] = []
    for key, entity in desired.items():
        present = installed.get(key)
        if present is entity:
            continue
        if present is None or _bytes(present) != _bytes(entity):
            kind = p4r.Update.INSERT if present is None and not is_default(entity) else p4r.Update.MODIFY
            changes.append((_depth(entity), key, p4r.Update(type=kind, entity=entity)))
    for key, entity in installed.items():
        if key not in desired and not is_default(entity):
            removals.append((-_depth(entity), key, p4r.Update(type=p4r.Update.DELETE, entity=entity)))
    changes.sort(key=lambda change: change[0])
    removals.sort(key=lambda change: change[0])
    return [update for _, _, update in (*changes, *removals)]


def entity_key(entity: p4r.Entity) -> EntityKey:
    """What identifies an entity: its kind and the bytes of its key fields."""
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
        return kind, _bytes(
            p4r.ActionProfileGroup(action_profile_id=group.action_profile_id, group_id=group.group_id)
        )
    engine = entity.packet_replication_engine_entry
    if kind == "packet_replication_engine_entry" and engine.WhichOneof("type") == "multicast_group_entry":
        group_id = engine.multicast_group_entry.multicast_group_id
        return kind, group_id.to_bytes(4, "big")
    raise ValueError(f"the controller does not manage entities of kind {kind!r}")


def table_key(table_entry: p4r.TableEntry) -> p4r.TableEntry:
    """Return what identifies a table entry, as an entry without all else."""
    key = p4r.TableEntry(
        table_id=table_entry.table_id,
        priority=table_entry.priority,
        is_default_action=table_entry.is_default_action,
    )
    key.match.extend(sorted(table_entry.match, key=lambda field: field.field_id))
    return key


def stable_entity(entity: p4r.Entity) -> p4r.Entity:
    """Return an entity in canonical order and without what changes by itself."""
    stable = copy.deepcopy(entity)
    if stable.HasField("table_entry"):
        entry = stable.table_entry
        for volatile in ("counter_data", "meter_counter_data", "meter_config", "time_since_last_hit"):
            entry.ClearField(volatile)
        fields = sorted(entry.match, key=lambda field: field.field_id)
        del entry.match[:]
        entry.match.extend(fields)
        if entry.HasField("action"):
            sort_parameters(entry.action)
    return stable


def sort_parameters(action: p4r.TableAction) -> p4r.TableAction:
    """Bring the parameters of a direct action into the order of their ids, and return it."""
    if action.HasField("action"):
        parameters = sorted(action.action.params, key=lambda parameter: parameter.param_id)
        del action.action.params[:]
        action.action.params.extend(parameters)
    return action


def _depth(entity: p4r.Entity) -> int:
    """0 for what refers to nothing, more for what refers to that."""
    kind = entity.WhichOneof("entity")
    if kind == "action_profile_member":
        return 0
    if kind in ("action_profile_group", "packet_replication_engine_entry"):
        return 1
    indirect = entity.table_entry.action.WhichOneof("type") in (
        "action_profile_member_id",
        "action_profile_group_id",
    )
    return 2 if indirect else 3


def is_default(entity: p4r.Entity) -> bool:
    """Tell whether an entity is the default action of a table."""
    return entity.HasField("table_entry") and entity.table_entry.is_default_action


def _bytes(message: Any) -> bytes:
    """Canonical bytes of any protobuf message."""
    return bytes(message.SerializeToString(deterministic=True))
