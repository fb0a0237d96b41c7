"""Reads a switch's counters over P4Runtime and labels them with names that operators know."""

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
"""Files of p4/include that mark packets for dropping. The program counts them all; the first file counts by reason."""
JOB_TABLE = "aggregation_job"
OUTCOME_NAMES = ("absorb", "send_up", "multicast", "reply", "drop")
"""Names of the indices of both counters (the program's enums Outcome and ServiceOutcome)."""


@dataclass(frozen=True)
class Count:
    """Packets and bytes of a counter."""

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
        switch: name of the switch.
        ports: by port number; ports without traffic are omitted.
        drops: by reason; zeros are omitted.
        aggregation: by outcome; zeros are omitted.
        jobs: packets of each aggregation job that uses this switch.
        synchronisation: packets of barriers and counters, by outcome; zeros are omitted.

    Counters that the switch's program lacks are empty.

    """

    switch: str
    ports: dict[int, PortCounters] = field(default_factory=dict)
    drops: dict[str, Count] = field(default_factory=dict)
    aggregation: dict[str, Count] = field(default_factory=dict)
    jobs: dict[int, Count] = field(default_factory=dict)
    synchronisation: dict[str, Count] = field(default_factory=dict)

    @property
    def ecn_marked_packets(self) -> int:
        """Packets that the switch ECN-marked, over all ports."""
        return sum(port.ecn_marked.packets for port in self.ports.values())

    @property
    def aggregated_packets(self) -> int:
        """Packets that aggregation slots processed."""
        return sum(count.packets for count in self.aggregation.values())

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


async def read_counters(session: SwitchSession, ports: Collection[int] | None = None) -> SwitchCounters:
    """Read all counters of a switch, for these ports or, if None, for all possible ports."""
    # Only a few of a switch's thousand or more cells belong to its ports, and many of these are 0. Reading and
    # decoding cells takes most of the time.
    outcomes = [finsy.P4CounterEntry(name) for name in (AGGREGATION_OUTCOMES, SERVICE_OUTCOMES)]
    return await _read(session, [*outcomes, *_port_entries(ports)], [DROPS_TABLE, JOB_TABLE])


async def read_aggregation(session: SwitchSession) -> SwitchCounters:
    """Read only `aggregation` and `jobs`, a few cells, in the same emulated time as `read_counters`."""
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
    """Read these counters of some ports of a switch, by port; ports without traffic are omitted."""
    return _ports(await _read_arrays(session, _port_entries(ports, counters)))


def _port_entries(ports: Collection[int] | None, names: Collection[str] = ALL_OF_PORTS) -> list[finsy.P4CounterEntry]:
    if ports is None:
        return [finsy.P4CounterEntry(name) for name in names]
    return [finsy.P4CounterEntry(name, index=port) for name in names for port in ports]


async def _read_arrays(session: SwitchSession, wanted: Iterable[finsy.P4CounterEntry]) -> dict[str, dict[int, Count]]:
    """Read cells by counter and index; omit zeros and counters that the program lacks."""
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
    """Return drop counts by reason, which is the name of the entry's action (p4/include/drops.p4)."""
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
