"""Multicast groups and clone sessions in files of entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import finsy

from weft.controller.errors import SettingError
from weft.controller.runtime_entries.fields import PORT_BITS, at, entries_of, id_at, mapping, number_at

_GROUP_BITS = 16
_SESSION_BITS = 15
_CLASS_BITS = 8
_LENGTH_BITS = 16
_INSTANCE_BITS = 16
_GROUP_KEYS = ("multicast_group_id", "replicas")
_SESSION_KEYS = ("clone_session_id", "replicas", "packet_length_bytes", "class_of_service")
_REPLICA_KEYS = ("egress_port", "instance")


def multicast_group(entry: Any) -> finsy.P4MulticastGroupEntry:
    """Return a multicast group. Raises SettingError."""
    entry = mapping(entry, _GROUP_KEYS, "a multicast group")
    return finsy.P4MulticastGroupEntry(id_at(entry, "multicast_group_id", _GROUP_BITS), replicas=_replicas(entry))


def clone_session(entry: Any) -> finsy.P4CloneSessionEntry:
    """Return a clone session. Raises SettingError."""
    entry = mapping(entry, _SESSION_KEYS, "a clone session")
    return finsy.P4CloneSessionEntry(
        id_at(entry, "clone_session_id", _SESSION_BITS),
        class_of_service=number_at(entry, "class_of_service", _CLASS_BITS, 0),
        packet_length_bytes=number_at(entry, "packet_length_bytes", _LENGTH_BITS, 0),
        replicas=_replicas(entry),
    )


def _replicas(entry: Mapping[str, Any]) -> list[tuple[int, int]]:
    found: dict[tuple[int, int], None] = {}
    for place, each in entries_of(entry, "replicas"):
        replica = at(place, _replica, each)
        if replica in found:
            raise SettingError(f"port {replica[0]} with instance {replica[1]} is there twice", place=place)
        found[replica] = None
    return list(found)


def _replica(value: Any) -> tuple[int, int]:
    replica = mapping(value, _REPLICA_KEYS, "a replica")
    return number_at(replica, "egress_port", PORT_BITS), number_at(replica, "instance", _INSTANCE_BITS, 0)
