"""A switch as users' controllers have it: entries, registers, counters and groups by names, with plain values."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

import finsy
from finsy.proto import p4r

from weft.clocks.user_controller.base import Entry
from weft.clocks.user_controller.handoff import Handoff
from weft.controller import arrays
from weft.controller.counters import Count
from weft.controller.entities import exact_arguments
from weft.controller.errors import ControllerError, RequestRefusedError, SettingError
from weft.controller.fabric import FabricController
from weft.controller.own_entries import OwnOperation
from weft.controller.program_names import ProgramNames
from weft.controller.reconcile import EncodedEntity
from weft.controller.runtime_entries import runtime_entries, table_entry
from weft.errors import BadInputError
from weft.topologies import SwitchSpec

_Result = TypeVar("_Result")
Values = Mapping[str, Any]
"""Values by name: numbers, "10.0.0.1", "02:00:00:00:00:01", [value, length] of a prefix, as in files of entries."""


class ControlledSwitch:
    """A switch of the fabric. What it refuses, or its program has not, raises `weft.BadInputError`.

    Attributes:
        name: its name.
        spec: its ports and what they lead to, its role and addresses.

    """

    def __init__(self, spec: SwitchSpec, controller: FabricController, handoff: Handoff) -> None:
        self.name = spec.name
        self.spec = spec
        self._controller = controller
        self._handoff = handoff

    def __repr__(self) -> str:
        return f"<switch {self.name}>"

    @property
    def tables(self) -> list[str]:
        """Names of the program's tables."""
        return list(self._names.tables)

    def insert(
        self,
        table: str,
        match: Values,
        action: str,
        params: Values | None = None,
        *,
        priority: int = 0,
        idle_timeout_ns: int = 0,
    ) -> None:
        """Add an entry. It stays whatever Weft plans anew."""
        entry = _tree(table, match, action, params, priority, idle_timeout_ns)
        self._write("insert", entry, f"insert into {table}")

    def modify(
        self,
        table: str,
        match: Values,
        action: str,
        params: Values | None = None,
        *,
        priority: int = 0,
        idle_timeout_ns: int = 0,
    ) -> None:
        """Change an entry's action; also one of Weft's, which has its own back when this one is deleted."""
        entry = _tree(table, match, action, params, priority, idle_timeout_ns)
        self._write("modify", entry, f"modify {table}")

    def delete(self, table: str, match: Values, *, priority: int = 0) -> None:
        """Remove an entry that this controller has added or changed."""

        async def delete() -> None:
            known = self._names.tables.named(table)
            # Any action: what is deleted is found by its key.
            names = (name for name, each in known.actions.items() if not each.parameters)
            action = next(names, next(iter(known.actions), ""))
            params = dict.fromkeys(known.actions[action].parameters, 0) if action else {}
            entry = table_entry(_tree(table, match, action, params, priority, 0), self._names)
            await self._controller.write_own(self.name, "delete", entry)

        self._ask(delete, f"delete from {table}")

    def set_default(self, table: str, action: str, params: Values | None = None) -> None:
        """Set the action of packets that no entry matches."""
        tree = {
            "table": table, "default_action": True, "action_name": action, "action_params": dict(params or {})
        }  # fmt: skip
        self._write("modify", tree, f"set the default action of {table}")

    def entries(self, table: str) -> list[Entry]:
        """Return a table's entries, of whoever wrote them, without the default one."""

        async def read() -> list[Entry]:
            known = self._names.tables.named(table)
            session = self._controller.session(self.name)
            found = await session.read([finsy.P4TableEntry(known.name)])
            return [entry_of(each) for each in found if not each.is_default_action]

        return self._ask(read, f"read {table}")

    def read_register(self, name: str, index: int) -> int:
        """Return a register's cell."""
        session = self._controller.session(self.name)
        cells = self._ask(lambda: arrays.read_register(session, name, index), f"read {name}")
        return cells[index]

    def write_register(self, name: str, index: int, value: int) -> None:
        """Set a register's cell."""

        async def write() -> None:
            session = self._controller.session(self.name)
            arrays.ProgramArrays.of(session.pipeline.p4info).register_names([name])
            entity = finsy.P4RegisterEntry(name, index=index, data=value).encode(session.schema)
            await session.write([EncodedEntity.plain(entity).update(p4r.Update.MODIFY)])

        self._ask(write, f"write {name}")

    def read_counter(self, name: str, index: int) -> Count:
        """Return the packets and bytes that a counter's cell has counted."""
        session = self._controller.session(self.name)
        cells = self._ask(lambda: arrays.read_counter(session, name, index), f"read {name}")
        return cells[index]

    def set_multicast_group(self, group_id: int, ports: Iterable[int]) -> None:
        """Make a multicast group of some ports, or change it."""
        self._set_group({"multicast_group_id": group_id}, "multicast_group_entries", ports)

    def set_clone_session(self, session_id: int, ports: Iterable[int]) -> None:
        """Make a clone session of some ports, or change it."""
        self._set_group({"clone_session_id": session_id}, "clone_session_entries", ports)

    def packet_out(self, payload: bytes, **metadata: int) -> None:
        """Send a packet with the fields of the program's packet_out header."""

        async def send() -> None:
            session = self._controller.session(self.name)
            header = session.schema.controller_packet_metadata.get("packet_out")
            if header is None:
                raise SettingError('the program has no header with @controller_header("packet_out")')
            await session.send_packet(payload, **metadata)

        self._ask(send, "packet-out")

    @property
    def _names(self) -> ProgramNames:
        return self._controller.session(self.name).pipeline.names

    def _set_group(self, tree: dict[str, Any], kind: str, ports: Iterable[int]) -> None:
        replicas = [{"egress_port": port} for port in ports]

        async def write() -> None:
            (entity,) = runtime_entries({kind: [{**tree, "replicas": replicas}]}, self._names)
            try:
                await self._controller.write_own(self.name, "modify", entity)
            except SettingError:
                await self._controller.write_own(self.name, "insert", entity)

        self._ask(write, kind)

    def _write(self, operation: OwnOperation, tree: Values, what: str) -> None:
        async def write() -> None:
            await self._controller.write_own(self.name, operation, table_entry(tree, self._names))

        self._ask(write, what)

    def _ask(self, make: Callable[[], Coroutine[Any, Any, _Result]], what: str) -> _Result:
        try:
            return self._handoff.ask(make)
        except (ControllerError, ValueError) as error:
            own = isinstance(error, RequestRefusedError)
            text = str(error) if own else f"{self.name}: {what}: {error}"
        raise BadInputError(text)


def entry_of(found: finsy.P4TableEntry) -> Entry:
    """Return an entry that was read from a switch."""
    action = found.action.name if isinstance(found.action, finsy.P4TableAction) else ""
    return Entry(
        found.table_id, dict(found.match or {}), action, exact_arguments(found.action), found.priority
    )


def _tree(
    table: str, match: Values, action: str, params: Values | None, priority: int, idle_timeout_ns: int
) -> dict[str, Any]:
    return {
        "table": table,
        "match": dict(match),
        "action_name": action,
        "action_params": dict(params or {}),
        "priority": priority,
        "idle_timeout_ns": idle_timeout_ns,
    }
