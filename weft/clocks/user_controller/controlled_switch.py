"""A switch as users' controllers have it: entries, registers, counters and groups by names, with plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import finsy

from weft.clocks.user_controller.base import Entry
from weft.clocks.user_controller.switch_access import Values
from weft.clocks.user_controller.switch_arrays import ArrayMethods
from weft.clocks.user_controller.switch_profiles import ProfileMethods
from weft.controller.counters import Count
from weft.controller.entities import exact_arguments
from weft.controller.errors import SettingError
from weft.controller.own_entries import OwnOperation
from weft.controller.runtime_entries import table_entry


class ControlledSwitch(ArrayMethods, ProfileMethods):
    """A switch of the fabric. What it refuses, or its program has not, raises `weft.BadInputError`.

    Attributes:
        name: its name.
        spec: its ports and what they lead to, its role and addresses.

    """

    @property
    def tables(self) -> list[str]:
        """Names of the program's tables."""
        return list(self._names.tables)

    def insert(
        self,
        table: str,
        match: Values,
        action: str | None = None,
        params: Values | None = None,
        *,
        priority: int = 0,
        **more: Any,
    ) -> None:
        """Add an entry. It stays whatever Weft plans anew.

        `more` is what an entry of a file may have besides: `idle_timeout_ns`, `meter_config`, and where the table
        chooses by an action profile, in place of an action `member_id`, `group_id` or `action_set`.
        """
        entry = _tree(table, match, action, params, priority, more)
        self._write("insert", entry, f"insert into {table}")

    def modify(
        self,
        table: str,
        match: Values,
        action: str | None = None,
        params: Values | None = None,
        *,
        priority: int = 0,
        **more: Any,
    ) -> None:
        """Change an entry, as `insert`; also one of Weft's, which has its own action back when this one is deleted."""
        entry = _tree(table, match, action, params, priority, more)
        self._write("modify", entry, f"modify {table}")

    def delete(self, table: str, match: Values, *, priority: int = 0) -> None:
        """Remove an entry that this controller has added or changed."""

        async def delete() -> None:
            known = self._names.tables.named(table)
            # Any action: what is deleted is found by its key.
            names = (name for name, each in known.actions.items() if not each.parameters)
            action = next(names, next(iter(known.actions), ""))
            params = dict.fromkeys(known.actions[action].parameters, 0) if action else {}
            tree = (
                _tree(table, match, None, None, priority, {"member_id": 1})
                if known.of_profile
                else _tree(table, match, action, params, priority, {})
            )
            await self._controller.write_own(self.name, "delete", table_entry(tree, self._names))

        self._ask(delete, f"delete from {table}")

    def set_default(self, table: str, action: str, params: Values | None = None) -> None:
        """Set the action of packets that no entry matches."""
        tree = {
            "table": table, "default_action": True, "action_name": action, "action_params": dict(params or {})
        }  # fmt: skip
        self._write("modify", tree, f"set the default action of {table}")

    def entries(self, table: str) -> list[Entry]:
        """Return a table's entries, of whoever wrote them, without the default one; with counts if it counts."""

        async def read() -> list[Entry]:
            known = self._names.tables.named(table)
            counted = finsy.P4CounterData() if self._session.counts(known.name) else None
            found = await self._session.read([finsy.P4TableEntry(known.name, counter_data=counted)])
            return [entry_of(each) for each in found if not each.is_default_action]

        return self._ask(read, f"read {table}")

    def set_multicast_group(self, group_id: int, ports: Iterable[int]) -> None:
        """Make a multicast group of some ports, or change it."""
        self._put("multicast_group_entries", {"multicast_group_id": group_id, "replicas": _replicas(ports)})

    def delete_multicast_group(self, group_id: int) -> None:
        """Remove a multicast group that this controller has added."""
        self._remove(f"delete multicast group {group_id}", lambda: finsy.P4MulticastGroupEntry(group_id))

    def set_clone_session(self, session_id: int, ports: Iterable[int]) -> None:
        """Make a clone session of some ports, or change it."""
        self._put("clone_session_entries", {"clone_session_id": session_id, "replicas": _replicas(ports)})

    def delete_clone_session(self, session_id: int) -> None:
        """Remove a clone session that this controller has added."""
        self._remove(f"delete clone session {session_id}", lambda: finsy.P4CloneSessionEntry(session_id))

    def packet_out(self, payload: bytes, **metadata: int) -> None:
        """Send a packet with the fields of the program's packet_out header.

        One without that header takes bare packets at a port that leads to a controller (p4-utils' `cpu_port`).
        """
        bare = not metadata and any(port.leads_to_controller for port in self.spec.ports)

        async def send() -> None:
            header = self._session.schema.controller_packet_metadata.get("packet_out")
            if header is None and not bare:
                raise SettingError('the program has no header with @controller_header("packet_out")')
            await self._session.send_packet(payload, **metadata)

        self._ask(send, "packet-out")

    def _write(self, operation: OwnOperation, tree: Values, what: str) -> None:
        async def write() -> None:
            await self._controller.write_own(self.name, operation, table_entry(tree, self._names))

        self._ask(write, what)


def entry_of(found: finsy.P4TableEntry) -> Entry:
    """Return an entry that was read from a switch."""
    action = found.action.name if isinstance(found.action, finsy.P4TableAction) else ""
    chosen = found.action if isinstance(found.action, finsy.P4IndirectAction) else finsy.P4IndirectAction(())
    counted = found.counter_data
    return Entry(
        found.table_id,
        dict(found.match or {}),
        action,
        exact_arguments(found.action),
        found.priority,
        member_id=chosen.member_id or 0,
        group_id=chosen.group_id or 0,
        count=Count(counted.packet_count, counted.byte_count) if counted is not None else None,
    )


def _replicas(ports: Iterable[int]) -> list[dict[str, int]]:
    return [{"egress_port": port} for port in ports]


def _tree(
    table: str,
    match: Values,
    action: str | None,
    params: Values | None,
    priority: int,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    named = {} if action is None else {"action_name": action, "action_params": dict(params or {})}
    return {"table": table, "match": dict(match), "priority": priority, **named, **more}
