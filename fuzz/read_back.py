"""Checks that a write that was answered OK reads back."""

from __future__ import annotations

from typing import Any

from finsy.proto import p4r
from google.protobuf.message import Message

_KEYS = {
    "table_entry": ("table_id", "match", "priority", "is_default_action"),
    "action_profile_member": ("action_profile_id", "member_id"),
    "action_profile_group": ("action_profile_id", "group_id"),
    "counter_entry": ("counter_id", "index"),
    "direct_counter_entry": ("table_entry",),
    "meter_entry": ("meter_id", "index"),
    "direct_meter_entry": ("table_entry",),
    "register_entry": ("register_id", "index"),
    "value_set_entry": ("value_set_id",),
    "digest_entry": ("digest_id",),
    "multicast_group_entry": ("multicast_group_id",),
    "clone_session_entry": ("session_id",),
}
_NOT_KEPT = frozenset({"counter_data", "meter_counter_data", "time_since_last_hit", "controller_metadata"})
"""Counters count on; the old 32-bit metadata is deprecated and not kept."""


def expectations(updates: list[p4r.Update]) -> list[tuple[p4r.Entity, p4r.Entity | None]]:
    """For each entity that was written: the query that reads it, and the expected answer (None: it was deleted)."""
    last: dict[bytes, tuple[p4r.Entity, p4r.Entity | None]] = {}
    for update in updates:
        query = key_of(update.entity)
        name = canonical(query).SerializeToString(deterministic=True)
        last.pop(name, None)
        last[name] = (query, None if update.type == p4r.Update.DELETE else update.entity)
    return list(last.values())


def key_of(entity: p4r.Entity) -> p4r.Entity:
    """The query for this entity alone."""
    query = p4r.Entity()
    kind, source = _innermost(entity)
    if kind in ("multicast_group_entry", "clone_session_entry"):
        made = getattr(query.packet_replication_engine_entry, kind)
    else:
        made = getattr(query, kind)
    made.SetInParent()
    for name in _KEYS[kind]:
        _copy_field(source, made, name)
    if kind.startswith("direct_"):
        made.table_entry.Clear()
        for name in _KEYS["table_entry"]:
            _copy_field(source.table_entry, made.table_entry, name)
    return query


def _innermost(entity: p4r.Entity) -> tuple[str, Any]:
    kind = entity.WhichOneof("entity")
    assert kind is not None
    found = getattr(entity, kind)
    if kind == "packet_replication_engine_entry":
        kind = found.WhichOneof("type")
        found = getattr(found, kind)
    return kind, found


def _copy_field(source: Any, target: Any, name: str) -> None:
    field = source.DESCRIPTOR.fields_by_name[name]
    value = getattr(source, name)
    if field.is_repeated:
        getattr(target, name).extend(value)
    elif field.message_type is None:
        setattr(target, name, value)
    elif source.HasField(name):
        getattr(target, name).CopyFrom(value)


def canonical(message: Any) -> Any:
    """A copy with the shortest byte strings, and repeated fields in order."""
    made = type(message)()
    made.CopyFrom(message)
    _make_canonical(made)
    return made


def _make_canonical(message: Any) -> None:
    for field, value in list(message.ListFields()):
        if field.message_type is not None:
            children = list(value) if field.is_repeated else [value]
            for child in children:
                _make_canonical(child)
            if field.is_repeated:
                ordered = sorted((_copy(child) for child in children), key=_serialized)
                message.ClearField(field.name)
                getattr(message, field.name).extend(ordered)
        elif field.type == field.TYPE_BYTES and not field.is_repeated and field.name != "metadata":
            setattr(message, field.name, value.lstrip(b"\0") or b"\0")


def _copy(message: Any) -> Any:
    made = type(message)()
    made.CopyFrom(message)
    return made


def _serialized(message: Message) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))


def difference(sent: Any, found: Any, place: str = "") -> str | None:
    """Where `found` does not say what `sent` does; both canonical. Fields that `sent` leaves out may be set."""
    for field, value in sent.ListFields():
        if field.name in _NOT_KEPT:
            continue
        here = f"{place}.{field.name}"
        other = getattr(found, field.name)
        if field.is_repeated:
            if len(value) != len(other):
                return f"{here}: {len(value)} were written, {len(other)} are read"
            pairs = zip(value, other, strict=True)
        else:
            pairs = zip([value], [other], strict=True)
        for one, another in pairs:
            if field.message_type is not None:
                inner = difference(one, another, here)
                if inner is not None:
                    return inner
            elif one != another:
                return f"{here}: {one!r} was written, {another!r} is read"
    return None
