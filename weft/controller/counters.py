"""Counters of a switch, read over P4Runtime and given the names an operator knows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import finsy
from finsy.proto import p4r

from weft.controller.session import SwitchSession

PORT_RECEIVED = "port_received"
PORT_SENT = "port_sent"
ECN_MARKED = "ecn_marked"
ALL_OF_PORTS = (PORT_RECEIVED, PORT_SENT, ECN_MARKED)
AGGREGATION_OUTCOMES = "aggregation_outcomes"
SERVICE_OUTCOMES = "service_outcomes"
DROPS_TABLE = "drops"
COUNTED_SOURCES = ("drops.p4", "aggregation.p4", "synchronisation.p4")
"""Files of p4/include that mark packets to be dropped, all of which the program counts: by reason in the first one."""
JOB_TABLE = "aggregation_job"
OUTCOME_NAMES = ("absorb", "send_up", "multicast", "reply", "drop")
"""Meaning of the indices of both (the enums Outcome and ServiceOutcome of the program)."""


@dataclass(frozen=True)
class Count:
    """What a counter counted."""

    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class PortCounters:
    """Counters of one port."""

    received: Count = Count()
    sent: Count = Count()
    ecn_marked: Count = Count()


@dataclass(frozen=True)
class SwitchCounters:
    """Counters of one switch.

    Attributes:
        switch: name.
        ports: by port number; ports that have seen nothing are left out.
        drops: by reason, those that are not zero.
        aggregation: by outcome, those that are not zero.
        jobs: packets of each aggregation job that this switch takes part in.
        synchronisation: of barriers and counters, by outcome, those that are not zero.

    What a switch's program does not count is none.

    """

    switch: str
    ports: dict[int, PortCounters] = field(default_factory=dict)
    drops: dict[str, Count] = field(default_factory=dict)
    aggregation: dict[str, Count] = field(default_factory=dict)
    jobs: dict[int, Count] = field(default_factory=dict)
    synchronisation: dict[str, Count] = field(default_factory=dict)

    @property
    def ecn_marked_packets(self) -> int:
        """Packets that the switch marked, all ports together."""
        return sum(port.ecn_marked.packets for port in self.ports.values())

    @property
    def aggregated_packets(self) -> int:
        """Packets that the slots took part in."""
        return sum(count.packets for count in self.aggregation.values())

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


async def read_counters(session: SwitchSession, ports: Collection[int] | None = None) -> SwitchCounters:
    """Read all counters of a switch, for these ports or (None) for all possible ports."""
    # Of the thousand and more cells of a switch few are its ports', and of these many are 0: reading and decoding
    # them is what takes the time.
    outcomes = [finsy.P4CounterEntry(name) for name in (AGGREGATION_OUTCOMES, SERVICE_OUTCOMES)]
    return await _read(session, [*outcomes, *_port_entries(ports)], [DROPS_TABLE, JOB_TABLE])


async def read_aggregation(session: SwitchSession) -> SwitchCounters:
    """Read `aggregation` and `jobs` alone, a few cells, in as much emulated time as `read_counters` takes."""
    return await _read(session, [finsy.P4CounterEntry(AGGREGATION_OUTCOMES)], [JOB_TABLE])


async def _read(
    session: SwitchSession, arrays: Iterable[finsy.P4CounterEntry], counting_tables: Iterable[str]
) -> SwitchCounters:
    by_name = await _read_arrays(session, arrays)
    tables = await session.read(
        finsy.P4TableEntry(table, counter_data=finsy.P4CounterData())
        for table in counting_tables
        if session.counts(table)
    )
    return SwitchCounters(
        switch=session.name,
        ports=_ports(by_name),
        drops=_drops(entry for entry in tables if entry.table_id == DROPS_TABLE),
        aggregation=_by_outcome(by_name.get(AGGREGATION_OUTCOMES, {})),
        synchronisation=_by_outcome(by_name.get(SERVICE_OUTCOMES, {})),
        jobs={int(entry["job_id"]): _count(entry) for entry in tables if entry.table_id == JOB_TABLE},
    )


async def read_port_counters(
    session: SwitchSession, ports: Collection[int], counters: Collection[str] = ALL_OF_PORTS
) -> dict[int, PortCounters]:
    """Read these counters of some ports of a switch, by port; ports that have seen nothing are left out."""
    return _ports(await _read_arrays(session, _port_entries(ports, counters)))


def _port_entries(
    ports: Collection[int] | None, names: Collection[str] = ALL_OF_PORTS
) -> list[finsy.P4CounterEntry]:
    if ports is None:
        return [finsy.P4CounterEntry(name) for name in names]
    return [finsy.P4CounterEntry(name, index=port) for name in names for port in ports]


async def _read_arrays(
    session: SwitchSession, wanted: Iterable[finsy.P4CounterEntry]
) -> dict[str, dict[int, Count]]:
    """Read cells of counters, by counter and index, but for those that are zero or that the program has not."""
    by_name: dict[str, dict[int, Count]] = {}
    known = {each.alias for each in session.schema.counters}
    there = [entry for entry in wanted if entry.counter_id in known]
    for entry in await session.read(there, keep=_has_counted) if there else ():
        counted = Count(entry.packet_count, entry.byte_count)
        by_name.setdefault(entry.counter_id, {})[entry.index or 0] = counted
    return by_name


def _has_counted(entity: p4r.Entity) -> bool:
    data = entity.counter_entry.data
    return bool(data.packet_count or data.byte_count)


def _ports(by_name: dict[str, dict[int, Count]]) -> dict[int, PortCounters]:
    received, sent, marked = (by_name.get(name, {}) for name in (PORT_RECEIVED, PORT_SENT, ECN_MARKED))
    nothing = Count()
    return {
        port: PortCounters(received.get(port, nothing), sent.get(port, nothing), marked.get(port, nothing))
        for port in sorted({*received, *sent, *marked})
    }


def _drops(entries: Iterable[finsy.P4TableEntry]) -> dict[str, Count]:
    """The reason's name is the entry's action (p4/include/drops.p4)."""
    drops = {}
    for entry in entries:
        count = _count(entry)
        if count.packets and isinstance(entry.action, finsy.P4TableAction):
            drops[entry.action.name.rsplit(".", 1)[-1]] = count
    return drops


def _by_outcome(cells: Mapping[int, Count]) -> dict[str, Count]:
    return {_outcome_name(index): count for index, count in cells.items()}


def _outcome_name(index: int) -> str:
    return OUTCOME_NAMES[index] if index < len(OUTCOME_NAMES) else f"outcome {index}"


def _count(entry: finsy.P4TableEntry) -> Count:
    data = entry.counter_data
    return Count(data.packet_count, data.byte_count) if data else Count()
