"""Reads a switch's counters over P4Runtime and labels them with names that operators know."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import finsy
from finsy.proto import p4r

from weft.controller.session import SwitchSession
from weft.quantities.counter_names import ECN_MARKED
from weft.quantities.program_sources import ABSORBING_SOURCES

PORT_RECEIVED = "port_received"
PORT_SENT = "port_sent"
ALL_OF_PORTS = (PORT_RECEIVED, PORT_SENT, ECN_MARKED)
AGGREGATION_OUTCOMES = "aggregation_outcomes"
SERVICE_OUTCOMES = "service_outcomes"
DROPS_TABLE = "drops"
COUNTED_SOURCES = ("drops.p4", *ABSORBING_SOURCES)
"""Files of p4/include that mark packets for dropping. The program counts them all; the first file counts by reason."""
JOB_TABLE = "aggregation_job"
OUTCOME_NAMES = ("absorb", "send_up", "multicast", "reply", "drop")
"""Names of the indices of both counters (the program's enums Outcome and ServiceOutcome)."""


_Cells = Mapping[str, tuple[int, ...] | None]
"""Indices by counter; None stands for all cells of a counter."""


@dataclass(frozen=True, slots=True)
class Count:
    """Packets and bytes of a counter."""

    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
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
    # Only a few of a switch's thousand or more cells belong to its ports.
    wanted = {AGGREGATION_OUTCOMES: None, SERVICE_OUTCOMES: None, **_of_ports(ports)}
    return await _read(session, wanted, [DROPS_TABLE, JOB_TABLE])


async def read_aggregation(session: SwitchSession) -> SwitchCounters:
    """Read only `aggregation` and `jobs`, a few cells, in the same emulated time as `read_counters`."""
    return await _read(session, {AGGREGATION_OUTCOMES: None}, [JOB_TABLE])


async def _read(session: SwitchSession, wanted: _Cells, counting_tables: Iterable[str]) -> SwitchCounters:
    by_name = await _read_arrays(session, wanted)
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
    return _ports(await _read_arrays(session, _of_ports(ports, counters)))


def _of_ports(ports: Collection[int] | None, names: Collection[str] = ALL_OF_PORTS) -> _Cells:
    return dict.fromkeys(names, None if ports is None else tuple(ports))


async def _read_arrays(session: SwitchSession, wanted: _Cells) -> dict[str, dict[int, Count]]:
    """Read cells by counter and index; omit zeros and counters that the program lacks."""
    by_name: dict[str, dict[int, Count]] = {}
    ids = {each.alias: each.id for each in session.schema.counters}
    names = {ids[name]: name for name in wanted if name in ids}
    queries = _queries(tuple((number, wanted[name]) for number, name in names.items()))
    for entity in await session.read_encoded(queries) if queries else ():
        cell = entity.counter_entry
        if cell.data.packet_count or cell.data.byte_count:
            counted = Count(cell.data.packet_count, cell.data.byte_count)
            by_name.setdefault(names[cell.counter_id], {})[cell.index.index] = counted
    return by_name


@lru_cache(maxsize=256)
def _queries(cells: tuple[tuple[int, tuple[int, ...] | None], ...]) -> bytes:
    """Return the queries for cells, by the counter's id, as encoded fields of a `p4.v1.ReadRequest`.

    Switches with the same ports share the bytes: a fabric reads a hundred thousand cells at the same time.
    """
    request = p4r.ReadRequest()
    for number, indices in cells:
        if indices is None:
            request.entities.add().counter_entry.counter_id = number
            continue
        for index in indices:
            cell = request.entities.add().counter_entry
            cell.counter_id = number
            cell.index.index = index
    queries: bytes = request.SerializeToString()
    return queries


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
