"""INT-MD: which flows switches watch, what they record of them, and where sinks send reports (docs/spec/int-md.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

import finsy

from weft.controller.entities import Entity, default_action, entry, exact_arguments, mac_number
from weft.controller.errors import SettingError
from weft.controller.features.kind import Feature, OfSwitch, Row, Settings
from weft.topologies import FabricSpec, SwitchSpec
from weft.topologies.addressing import CPU_PORT, IpVersion

if TYPE_CHECKING:
    from weft.controller.lab import Lab
    from weft.controller.session import SwitchSession

REPORT_SESSION = 1
"""Clone session of reports (INT_MD_REPORT_SESSION in p4/include/int_md/headers.p4)."""
WATCHLIST = "int_md_watchlist"
SAMPLE_COUNTERS = "int_md_samples"
SEQUENCES = "int_md_sequence"
EVENTS_COUNTER = "int_md_events"
EVENTS = ("started", "not_started", "pushed", "mtu_exceeded", "hops_exceeded", "unsupported", "removed", "reported")
"""Meanings of the counter's indices, as the enum IntMdEvent of p4/include/int_md/int_md.p4 has them."""
MAX_WATCHED = 1024
"""Entries of the watchlist."""


@dataclass(frozen=True)
class WatchedFlows:
    """Flows that an entry of the watchlist matches; None matches all, 0 no protocol.

    Attributes:
        source: name of the sending host.
        destination: name of the receiving host.
        protocol: IP protocol.
        source_port: UDP or TCP port of the sender.
        destination_port: UDP or TCP port of the receiver.
        priority_class: class of the packets at the first switch.
        one_of: one packet of so many is taken.

    """

    source: str | None = None
    destination: str | None = None
    protocol: int | None = None
    source_port: int | None = None
    destination_port: int | None = None
    priority_class: int | None = None
    one_of: int = 1


@dataclass(frozen=True)
class IntMdSettings:
    """INT-MD of a fabric; off without a collector.

    Attributes:
        collector: name of the host that reports are sent to.
        port: its UDP port.
        dscp: of reports.
        watched: entries of the watchlist, the first one that matches counts.
        instructions: bitmap of what each hop records.
        hop_words: words of 4 bytes that each hop adds.
        hops: most hops that record.
        link_mtu_bytes: largest packet of a link between switches.
        ip_version: IP version of reports.

    """

    collector: str = ""
    port: int = 0
    dscp: int = 0
    watched: tuple[WatchedFlows, ...] = ()
    instructions: int = 0
    hop_words: int = 0
    hops: int = 0
    link_mtu_bytes: int = 0
    ip_version: IpVersion = 4


def int_md_entities(
    fabric: FabricSpec, switch: SwitchSpec, settings: IntMdSettings, units: tuple[int, int]
) -> list[Entity]:
    """Return a switch's entries; `units` are ns for each unit of time and bytes for each unit of queue depth.

    Raises:
        SettingError: an unknown host, more flows than the watchlist takes, or units that the program cannot hold.
    """
    ns_per_time_unit, bytes_per_depth_unit = units
    if bytes_per_depth_unit > 0xFFFF:
        raise SettingError(f"INT-MD: units of queue depth of {bytes_per_depth_unit} B", valid="at most 65,535 B")
    found: list[Entity] = [
        default_action(
            "int_md_node",
            "set_node",
            id=switch.device_id,
            time_unit_ns=ns_per_time_unit,
            depth_unit_bytes=bytes_per_depth_unit,
            sends_reports=1,
        ),
        default_action(
            "int_md_collector",
            "set_collector",
            id=switch.device_id,
            mac=mac_number(switch.mac),
            ip_version=settings.ip_version,
            source=int(switch.address if settings.ip_version == 4 else switch.ipv6),
            destination=int(collector_address(fabric, settings, switch.plane)),
            port=settings.port,
            dscp=settings.dscp,
        ),
        finsy.P4CloneSessionEntry(REPORT_SESSION, replicas=[CPU_PORT]),
    ]
    for port in switch.ports:
        match = {"port": port.number}
        if port.peer_is_host:
            found += [entry("int_md_ingress", match, "at_edge"), entry("int_md_egress", match, "to_host")]
        else:
            found.append(entry("int_md_egress", match, "to_switch", link_mtu_bytes=settings.link_mtu_bytes))
    if switch.host_ports:
        found += watchlist(fabric, settings)
    return found


def collector_address(fabric: FabricSpec, settings: IntMdSettings, plane: int) -> IPv4Address | IPv6Address:
    """Return the collector's address in a plane. Raises SettingError for an unknown host."""
    if all(host.name != settings.collector for host in fabric.hosts):
        raise SettingError(f"INT-MD: no host {settings.collector!r}", valid=(host.name for host in fabric.hosts))
    nic = fabric.host(settings.collector).nic(fabric.first_nics[plane])
    return (nic.ipv4 if settings.ip_version == 4 else nic.ipv6).ip


def watchlist(fabric: FabricSpec, settings: IntMdSettings) -> list[Entity]:
    """Return the entries of the watchlist: a host's flows have one for each pair of NICs and IP version."""
    found: list[Entity] = []
    for number, each in enumerate(settings.watched):
        for source, destination in _address_pairs(fabric, each):
            values = {
                "source": source,
                "destination": destination,
                "protocol": each.protocol,
                "source_port": each.source_port,
                "destination_port": each.destination_port,
                "class": each.priority_class,
            }
            match = {name: value for name, value in values.items() if value is not None}
            found.append(
                entry(
                    WATCHLIST,
                    match,
                    "watch",
                    priority=len(settings.watched) - number,
                    instruction_bitmap=settings.instructions,
                    words_per_hop=settings.hop_words,
                    most_hops=settings.hops,
                    one_of=each.one_of,
                    # Entries of the same flows share a counter.
                    entry_number=number,
                )
            )
    if len(found) > MAX_WATCHED:
        raise SettingError(f"INT-MD: {len(found)} entries of the watchlist", valid=f"at most {MAX_WATCHED}")
    return found


def _address_pairs(fabric: FabricSpec, flows: WatchedFlows) -> Iterator[tuple[int | None, int | None]]:
    if flows.source is None and flows.destination is None:
        yield None, None
        return
    for version in (4, 6):
        for source in _addresses(fabric, flows.source, version):
            for destination in _addresses(fabric, flows.destination, version):
                yield source, destination


def _addresses(fabric: FabricSpec, host: str | None, version: int) -> list[int | None]:
    if host is None:
        return [None]
    return [int(ip_address((nic.ipv4 if version == 4 else nic.ipv6).ip)) for nic in fabric.host(host).nics]


async def int_md_rows(session: SwitchSession, spec: SwitchSpec | None, lab: Lab) -> list[Row]:
    """Return a row for each entry of the watchlist of a switch, with the packets that it matched."""
    entries = await session.read([finsy.P4TableEntry(WATCHLIST, counter_data=finsy.P4CounterData())])
    rows = []
    for found in sorted(entries, key=lambda each: -each.priority):
        arguments = exact_arguments(found.action)
        rows.append(
            {
                "switch": session.name,
                **{name: _shown(name, found) for name in ("source", "destination", "protocol", "source_port")},
                "destination_port": _shown("destination_port", found),
                "class": _shown("class", found),
                "one_of": arguments.get("one_of"),
                "instructions": f"{arguments.get('instruction_bitmap', 0):#06x}",
                "most_hops": arguments.get("most_hops"),
                "packets": found.counter_data.packet_count if found.counter_data else 0,
            }
        )
    return rows


async def read_int_md(session: SwitchSession) -> dict[str, int]:
    """Read what a switch counted of INT-MD, by event; zeros if its program has none."""
    if all(each.alias != EVENTS_COUNTER for each in session.schema.counters):
        return dict.fromkeys(EVENTS, 0)
    cells = await session.read([finsy.P4CounterEntry(EVENTS_COUNTER)])
    packets = {cell.index: cell.packet_count for cell in cells}
    return {name: packets.get(number, 0) for number, name in enumerate(EVENTS)}


async def read_watched(session: SwitchSession) -> dict[int, int]:
    """Read how many packets a switch matched with each item of `IntMdSettings.watched` that it has entries of."""
    packets: dict[int, int] = {}
    for found in await session.read([finsy.P4TableEntry(WATCHLIST, counter_data=finsy.P4CounterData())]):
        number = exact_arguments(found.action)["entry_number"]
        packets[number] = packets.get(number, 0) + (found.counter_data.packet_count if found.counter_data else 0)
    return packets


def _shown(name: str, found: finsy.P4TableEntry) -> str:
    if found.match is None or name not in found.match:
        return "any"
    value = found.match[name]
    number = value[0] if isinstance(value, tuple) else value
    return str(ip_address(number) if name in ("source", "destination") else number)


def _entities(fabric: FabricSpec, settings: Settings) -> OfSwitch:
    chosen = settings.of(IntMdSettings)
    if not chosen.collector:
        return lambda _switch: ()
    units = settings.target.ns_per_time_unit, settings.target.depth_unit_bytes
    return lambda switch: int_md_entities(fabric, switch, chosen, units)


KIND = Feature(
    name="INT-MD",
    summary="Flows that INT-MD watches, and how many of their packets each entry matched.",
    tables=("int_md_node", "int_md_collector", "int_md_ingress", "int_md_egress", WATCHLIST),
    entities=_entities,
    command="int-md",
    rows=int_md_rows,
)
