"""The CLI's output as rows of plain values, read from a switch and labelled with names for users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Any

import finsy
from finsy.p4schema import P4MatchType

from weft.controller.counters import read_counters
from weft.controller.entities import exact_arguments
from weft.controller.errors import SettingError
from weft.controller.features.kind import Row, port_name
from weft.controller.lab import Lab
from weft.controller.routing.routes import SELECTOR
from weft.controller.session import SwitchSession
from weft.quantities.readable import format_time
from weft.topologies import SwitchSpec

_IPV4_BITS, _MAC_BITS, _IPV6_BITS = 32, 48, 128


def switch_spec(lab: Lab, name: str) -> SwitchSpec | None:
    """Return the switch's description, if the lab has one."""
    return lab.fabric.switch(name) if lab.fabric else None


def event_row(event: Mapping[str, Any]) -> Row:
    """Return a controller event (`ControllerEvent.as_dict`) as a readable row."""
    took = event["duration_ps"]
    return {
        "at": format_time(event["time_ps"]),
        "what": event["kind"],
        "link, switch or plane": event["element"] or None,
        "took": None if took is None else format_time(took),
        "entries": event["entries"] or None,
        "switches": event["switches"],
        "more": event["detail"] or None,
    }


def lacks_routes(session: SwitchSession) -> str:
    """Return what a switch's program lacks for Weft's routes, such as `no table ecmp`; empty if nothing."""
    names = session.pipeline.names
    if SELECTOR not in names.profiles:
        return f"no action selector {SELECTOR}"
    for table, key in (("ipv4_lpm", "destination"), ("ipv6_lpm", "destination"), ("ecmp", "group")):
        if not session.has_table(table):
            return f"no table {table}"
        if key not in names.tables[table].fields:
            return f"no key {key} of table {table}"
    return ""


async def route_rows(session: SwitchSession, spec: SwitchSpec | None) -> list[Row]:
    """Return a row for each prefix: its next hops (several with ECMP) and its packets."""
    counted = finsy.P4CounterData()
    entities = await session.read(
        [
            finsy.P4TableEntry("ipv4_lpm", counter_data=counted),
            finsy.P4TableEntry("ipv6_lpm", counter_data=counted),
            finsy.P4TableEntry("ecmp"),
            finsy.P4ActionProfileMember(SELECTOR),
            finsy.P4ActionProfileGroup(SELECTOR),
        ]
    )
    ports_of_group = _ports_of_group(entities)
    rows = []
    for entity in entities:
        if isinstance(entity, finsy.P4TableEntry) and entity.table_id in ("ipv4_lpm", "ipv6_lpm"):
            arguments = exact_arguments(entity.action)
            ports = ports_of_group.get(arguments.get("group", 0)) or [p for p in [arguments.get("port")] if p]
            rows.append(
                {
                    "switch": session.name,
                    "prefix": _prefix(entity),
                    "next_hops": [port_name(spec, port) for port in ports],
                    "group": arguments.get("group"),
                    "packets": entity.counter_data.packet_count if entity.counter_data else 0,
                }
            )
    return sorted(rows, key=lambda row: _by_address(row["prefix"]))


def _ports_of_group(entities: Iterable[Any]) -> dict[int, list[int]]:
    """Return ports by ECMP group number, found through the table's entry, the selector's group and its members."""
    entities = list(entities)
    ports = {
        entity.member_id: exact_arguments(entity.action).get("port", 0)
        for entity in entities
        if isinstance(entity, finsy.P4ActionProfileMember)
    }
    groups = {
        entity.group_id: [ports.get(member.member_id, 0) for member in entity.members or ()]
        for entity in entities
        if isinstance(entity, finsy.P4ActionProfileGroup)
    }
    return {
        int(entity["group"]): groups.get(entity.action.group_id or 0, [])
        for entity in entities
        if isinstance(entity, finsy.P4TableEntry)
        and entity.table_id == "ecmp"
        and isinstance(entity.action, finsy.P4IndirectAction)
    }


def _by_address(prefix: str) -> tuple[int, int, int]:
    network = ip_network(prefix)
    return network.version, int(network.network_address), network.prefixlen


def _prefix(entry: finsy.P4TableEntry) -> str:
    value, length = entry["destination"] if entry.match else (0, 0)
    address = IPv4Address(value) if entry.table_id == "ipv4_lpm" else IPv6Address(value)
    network = IPv4Network if address.version == 4 else IPv6Network
    return str(network((int(address), length)))


async def table_rows(session: SwitchSession, table: str | None) -> list[Row]:
    """Return the entries of one table or all, including constant ones, with packet counts if the table counts."""
    known = [each.alias for each in session.schema.tables]
    if table is not None and table not in known:
        raise SettingError(f"unknown table {table!r}", valid=known)
    names = [table] if table else known
    counted = finsy.P4CounterData()
    wanted = [
        finsy.P4TableEntry(name, counter_data=counted if session.schema.tables[name].direct_counter else None)
        for name in names
    ]
    return [_table_row(session, entry) for entry in await session.read(wanted)]


def _table_row(session: SwitchSession, entry: finsy.P4TableEntry) -> Row:
    table = session.schema.tables[entry.table_id]
    return {
        "switch": session.name,
        "table": entry.table_id,
        "match": {
            field.alias: _match_text(entry.match[field.alias], field.alias, field.bitwidth, field.match_type)
            for field in table.match_fields
            if entry.match and field.alias in entry.match
        },
        "action": _action_text(session, entry),
        "priority": entry.priority,
        "packets": entry.counter_data.packet_count if entry.counter_data else None,
    }


def _action_text(session: SwitchSession, entry: finsy.P4TableEntry) -> str:
    action = entry.action
    if isinstance(action, finsy.P4TableAction):
        parameters = session.schema.tables[entry.table_id].actions[action.name].params
        shown = (f"{name}={_value_text(value, name, parameters[name].bitwidth)}" for name, value in action.args.items())
        return f"{action.name}({', '.join(shown)})"
    if isinstance(action, finsy.P4IndirectAction) and action.group_id is not None:
        return f"group {action.group_id}"
    if isinstance(action, finsy.P4IndirectAction) and action.member_id is not None:
        return f"member {action.member_id}"
    return str(action) if action else "NoAction()"


def _match_text(value: Any, name: str, bits: int, kind: Any) -> str:
    if isinstance(value, tuple):
        first, second = value
        text = _value_text(first, name, bits)
        return f"{text}/{second}" if kind is P4MatchType.LPM else f"{text}&{second:#x}"
    return _value_text(value, name, bits)


def _value_text(value: Any, name: str, bits: int) -> str:
    if not isinstance(value, int):
        return str(value)
    if bits == _MAC_BITS:
        return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big"))
    if bits == _IPV6_BITS:
        return str(IPv6Address(value))
    if bits == _IPV4_BITS and ("ipv4" in name or name in ("destination", "source")):
        return str(IPv4Address(value))
    return str(value)


async def counter_rows(session: SwitchSession, spec: SwitchSpec | None) -> list[Row]:
    """Return rows for packets and bytes by port, drops by reason, and aggregation outcomes."""
    counters = await read_counters(session)
    rows: list[Row] = []

    def add(counter: str, of: str, packets: int, size_bytes: int) -> None:
        rows.append({"switch": session.name, "counter": counter, "of": of, "packets": packets, "bytes": size_bytes})

    for port, values in counters.ports.items():
        for counter in ("received", "sent", "ecn_marked"):
            count = getattr(values, counter)
            if count.packets:
                add(counter, f"port {port_name(spec, port)}", count.packets, count.bytes)
    for reason, count in counters.drops.items():
        add("dropped", reason, count.packets, count.bytes)
    for outcome, count in counters.aggregation.items():
        add("aggregation", outcome, count.packets, count.bytes)
    for job, count in counters.jobs.items():
        add("job", str(job), count.packets, count.bytes)
    return rows
