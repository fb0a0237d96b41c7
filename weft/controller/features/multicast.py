"""Multicast groups of the packet replication engine."""

from __future__ import annotations

from collections.abc import Iterable

import finsy

from weft.controller.errors import SettingError

MAX_GROUP = 0xFFFF


def multicast_group(group_id: int, ports: Iterable[int]) -> finsy.P4MulticastGroupEntry:
    """Return a group that copies a packet to each port once.

    Raises:
        SettingError: the group id is out of range, or there are no ports or repeated ports.

    """
    if not 1 <= group_id <= MAX_GROUP:
        raise SettingError(f"multicast group {group_id} is out of range", valid=f"1 to {MAX_GROUP}")
    replicas = sorted(ports)
    if not replicas or len(set(replicas)) != len(replicas):
        raise SettingError(f"multicast group {group_id} needs different ports, at least one (got {replicas})")
    # Replicas of one group are distinguished by (port, instance); one per port needs no instance.
    return finsy.P4MulticastGroupEntry(group_id, replicas=replicas)
