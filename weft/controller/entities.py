"""Shorthand for the P4Runtime entities that the logic modules return (finsy's typed entities)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any, TypeAlias

import finsy

Entity: TypeAlias = (
    finsy.P4TableEntry
    | finsy.P4ActionProfileMember
    | finsy.P4ActionProfileGroup
    | finsy.P4MulticastGroupEntry
    | finsy.P4CloneSessionEntry
)
Cell: TypeAlias = finsy.P4RegisterEntry | finsy.P4MeterEntry | finsy.P4CounterEntry | finsy.P4ValueSetEntry
"""Entities outside a plan: the program or packets change them, or P4Runtime can only modify them."""
Argument: TypeAlias = int | str | IPv4Address | IPv6Address


def entry(
    table: str, match: Mapping[str, Argument], action: str, /, priority: int = 0, **arguments: Argument
) -> finsy.P4TableEntry:
    """Return an entry of a table: match values by key name, action arguments by parameter name."""
    return finsy.P4TableEntry(
        table,
        match=finsy.P4TableMatch(match),
        action=finsy.P4TableAction(action, **arguments),
        priority=priority,
    )


@lru_cache(maxsize=1 << 16)
def mac_number(mac: str) -> int:
    """Return a MAC address as a number, which as an entry's argument is faster to encode than text."""
    return int(mac.replace(":", ""), 16)


def default_action(table: str, action: str, /, **arguments: Argument) -> finsy.P4TableEntry:
    """Return the default entry of a table."""
    return finsy.P4TableEntry(table, action=finsy.P4TableAction(action, **arguments), is_default_action=True)


def group_entry(table: str, match: Mapping[str, Argument], group_id: int) -> finsy.P4TableEntry:
    """Return a table entry that applies a group of the table's action selector."""
    return finsy.P4TableEntry(table, match=finsy.P4TableMatch(match), action=finsy.P4IndirectAction(group_id=group_id))


def exact_arguments(action: Any) -> dict[str, Any]:
    """Return the arguments of a direct action that was read back; empty for no action or an indirect one."""
    return dict(action.args) if isinstance(action, finsy.P4TableAction) else {}
