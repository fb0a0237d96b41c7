"""Telemetry reports of INT-MD: what sinks sent and a collector received, and what hops told of flows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console

from weft.errors import InvalidValueError
from weft.quantities.plain_data import PlainData
from weft.recording.schema import LARGEST
from weft.recording.tables import Names, Table
from weft.results.columns import Column, ResultTable, grouped
from weft.results.kinds import ResultKind
from weft.results.report_parts import ReportPart
from weft.topologies import FabricSpec
from weft.traffic.int_md_format import (
    Hop,
    IntMdStack,
    ReportedFlow,
    decoded_group,
    flow_and_stack,
    sequence_counts,
)

_SHOWN_ROWS = 24
_NONE = -1


@dataclass(frozen=True)
class TelemetryReports(PlainData):
    """Reports of one sink over the whole run, and watched packets that got no INT at this switch."""

    sink: str
    """The switch that removed INT from packets and reported it."""
    sent: int
    """Reports that the switch made, by its own counter."""
    received: int
    """Reports that the collector has."""
    lost: int
    """Reports that are missing: gaps in the sequence numbers, and those after the last one that came."""
    hops_exceeded: int
    """Reports of packets that passed more switches than may record (`hops`)."""
    mtu_exceeded: int
    """Reports of packets to which a switch added nothing because of the link's MTU."""
    not_started: int
    """Watched packets from hosts to which this switch added no INT because `link_mtu` left no room. They have no
    reports."""


@dataclass(frozen=True)
class TelemetryHop(PlainData):
    """Records of one hop of a flow's path, over all reports of that flow and path."""

    source: str
    """Sending host."""
    destination: str
    """Receiving host."""
    protocol: int
    """IP protocol."""
    source_port: int
    """UDP or TCP port of the sender."""
    destination_port: int
    """UDP or TCP port of the receiver."""
    path: str
    """Names of the switches that recorded, in order."""
    hop: int
    """From 0, in the order in which the packet met them."""
    switch: str
    """Name of the hop."""
    ingress_port: int | None
    """Port by which packets came; null: not recorded, or different ones."""
    egress_port: int | None
    """Port by which packets left; null: not recorded, or different ones."""
    reports: int
    """Reports of this flow by this path."""
    mean_latency_ns: float | None
    """From the packet's arrival to its departure, on average; null: not recorded."""
    largest_latency_ns: int | None
    """The largest of them."""
    mean_queue_bytes: float | None
    """Left behind in the packet's queue, on average; null: not recorded."""
    largest_queue_bytes: int | None
    """The largest of them."""


@dataclass(frozen=True)
class CollectedReport:
    """A report that arrived: when, of which sink, and what it says."""

    time_ps: int
    sink: str
    sequence: int
    source: str
    destination: str
    flow: ReportedFlow
    stack: IntMdStack
    switches: tuple[str, ...]


@dataclass(frozen=True)
class Collected:
    """All that a collector has received: reports, and datagrams that are none of this fabric's."""

    reports: tuple[CollectedReport, ...]
    refused: int


def collected(fabric: FabricSpec, datagrams: Sequence[tuple[int, bytes]]) -> Collected:
    """Return what datagrams say, given the time and payload of each.

    Datagrams are refused that are no telemetry reports, or name nodes or hosts that the fabric does not have.
    """
    switches = {switch.device_id: switch.name for switch in fabric.switches}
    hosts = {
        str(address.ip): host.name for host in fabric.hosts for nic in host.nics for address in (nic.ipv4, nic.ipv6)
    }
    reports: list[CollectedReport] = []
    refused = 0
    for time_ps, data in datagrams:
        try:
            group = decoded_group(data)
            for report in group.reports:
                flow, stack = flow_and_stack(report)
                _require_small(stack)
                nodes = tuple(switches[_known(hop["node_id"])] for hop in stack.hops)
                reports.append(
                    CollectedReport(
                        time_ps,
                        switches[group.node_id],
                        group.sequence,
                        hosts[flow.source],
                        hosts[flow.destination],
                        flow,
                        stack,
                        nodes,
                    )
                )
        except (InvalidValueError, KeyError):
            refused += 1
    return Collected(tuple(reports), refused)


def _require_small(stack: IntMdStack) -> None:
    """Raise InvalidValueError for numbers that no file of a run holds; only forged times are so large."""
    for hop in stack.hops:
        for name, value in hop.values.items():
            if value is not None and value > LARGEST:
                raise InvalidValueError(f"{name} {value}", valid=f"at most {LARGEST}")


def _known(node_id: int | None) -> int:
    if node_id is None:
        raise KeyError("a hop without its node")
    return node_id


def report_results(found: Collected, events: Mapping[str, Mapping[str, int]]) -> list[TelemetryReports]:
    """Return every sink's reports, given each switch's own counters of INT-MD's events."""
    sent = {name: counts["reported"] for name, counts in events.items()}
    not_started = {name: counts["not_started"] for name, counts in events.items()}
    of_sinks: dict[str, list[CollectedReport]] = {name: [] for name in events if sent[name] or not_started[name]}
    for report in found.reports:
        of_sinks.setdefault(report.sink, []).append(report)
    return [
        TelemetryReports(
            sink=name,
            sent=sent.get(name, 0),
            received=len(reports),
            lost=_lost([each.sequence for each in reports], sent.get(name, 0)),
            hops_exceeded=sum(each.stack.hops_exceeded for each in reports),
            mtu_exceeded=sum(each.stack.mtu_exceeded for each in reports),
            not_started=not_started.get(name, 0),
        )
        for name, reports in of_sinks.items()
    ]


def _lost(numbers: Sequence[int], sent: int) -> int:
    """Return the missing reports: numbers skipped, and, by the switch's counter, those after the last one."""
    expected, came = sequence_counts(numbers)
    return max(expected, sent) - came


def hop_results(found: Collected) -> list[TelemetryHop]:
    """Return what each hop of each flow's paths recorded."""
    groups: dict[tuple[str, str, ReportedFlow, tuple[str, ...]], list[CollectedReport]] = {}
    for report in found.reports:
        flow = ReportedFlow(*_five_tuple(report.flow))
        groups.setdefault((report.source, report.destination, flow, report.switches), []).append(report)
    return [
        _hop_result(source, destination, flow, switches, number, [each.stack.hops[number] for each in reports])
        for (source, destination, flow, switches), reports in groups.items()
        for number in range(len(switches))
    ]


def _five_tuple(flow: ReportedFlow) -> tuple[str, str, int, int, int]:
    return flow.source, flow.destination, flow.protocol, flow.source_port, flow.destination_port


def _hop_result(
    source: str, destination: str, flow: ReportedFlow, switches: tuple[str, ...], number: int, hops: Sequence[Hop]
) -> TelemetryHop:
    mean_latency, largest_latency = _summary(hops, "latency_ns")
    mean_queue, largest_queue = _summary(hops, "queue_bytes")
    return TelemetryHop(
        source=source,
        destination=destination,
        protocol=flow.protocol,
        source_port=flow.source_port,
        destination_port=flow.destination_port,
        path=" ".join(switches),
        hop=number,
        switch=switches[number],
        ingress_port=_only(hops, "ingress"),
        egress_port=_only(hops, "egress"),
        reports=len(hops),
        mean_latency_ns=mean_latency,
        largest_latency_ns=largest_latency,
        mean_queue_bytes=mean_queue,
        largest_queue_bytes=largest_queue,
    )


def _summary(hops: Sequence[Hop], name: str) -> tuple[float | None, int | None]:
    values = [value for hop in hops if (value := hop[name]) is not None]
    return (sum(values) / len(values), max(values)) if values else (None, None)


def _only(hops: Sequence[Hop], name: str) -> int | None:
    values = {hop[name] for hop in hops}
    return values.pop() if len(values) == 1 else None


def telemetry_table(found: Collected) -> Table:
    """Return a row for each hop of each report, -1 for what was not recorded."""
    rows = [(report, number) for report in found.reports for number in range(len(report.switches))]

    def of_report(value: str) -> np.ndarray:
        return np.array([getattr(report, value) for report, _ in rows], np.int64)

    def of_flow(value: str) -> np.ndarray:
        values = [getattr(report.flow, value) for report, _ in rows]
        return np.array([_NONE if each is None else each for each in values], np.int64)

    def of_hop(value: str) -> np.ndarray:
        values = [report.stack.hops[number][value] for report, number in rows]
        return np.array([_NONE if each is None else each for each in values], np.int64)

    return {
        "time_ps": of_report("time_ps"),
        "sink": Names.of([report.sink for report, _ in rows]),
        "sequence": of_report("sequence"),
        "source": Names.of([report.source for report, _ in rows]),
        "destination": Names.of([report.destination for report, _ in rows]),
        **{name: of_flow(name) for name in ("protocol", "source_port", "destination_port", "queue_pair", "psn")},
        "hop": np.array([number for _, number in rows], np.int64),
        "switch": Names.of([report.switches[number] for report, number in rows]),
        "ingress_port": of_hop("ingress"),
        "egress_port": of_hop("egress"),
        **{name: of_hop(name) for name in ("latency_ns", "queue_id", "queue_bytes", "ingress_ns", "egress_ns")},
    }


_REPORTS = ResultTable[TelemetryReports](
    "Telemetry reports",
    (
        Column("sink", "sink", is_name=True),
        Column("sent", "sent"),
        Column("received", "received"),
        Column("lost", "lost"),
        Column("too many\nhops", "hops_exceeded", only_if=lambda rows: any(each.hops_exceeded for each in rows)),
        Column("beyond\nthe MTU", "mtu_exceeded", only_if=lambda rows: any(each.mtu_exceeded for each in rows)),
        Column("no room\nfor INT", "not_started", only_if=lambda rows: any(each.not_started for each in rows)),
    ),
    "[bold]telemetry reports[/bold]",
    shown=grouped,
)
_HOPS = ResultTable[TelemetryHop](
    "Telemetry of flows",
    (
        Column("from", "source", is_name=True),
        Column("to", "destination", is_name=True),
        Column("port", "source_port"),
        Column("hop", "hop"),
        Column("switch", "switch", is_name=True),
        Column("in", "ingress_port", missing="-"),
        Column("out", "egress_port", missing="-"),
        Column("reports", "reports"),
        Column("latency:\nmean", "mean_latency_ns", unit="ns", digits=0, missing="-"),
        Column("\nlargest", "largest_latency_ns", unit="ns", missing="-"),
        Column("queue:\nmean", "mean_queue_bytes", unit="B", digits=0, missing="-"),
        Column("\nlargest", "largest_queue_bytes", unit="B", missing="-"),
    ),
    "[bold]telemetry of flows[/bold]",
)


def _show_hops(console: Console, hops: Sequence[TelemetryHop]) -> None:
    _HOPS.print(console, hops[:_SHOWN_ROWS])
    if len(hops) > _SHOWN_ROWS:
        console.print(f"and {len(hops) - _SHOWN_ROWS:,} more hops in results.json")


def _report_hops(hops: Sequence[TelemetryHop], _: FabricSpec) -> Iterator[ReportPart]:
    if hops:
        note = f"the first {_SHOWN_ROWS} of {len(hops):,}" if len(hops) > _SHOWN_ROWS else ""
        yield _HOPS.part(hops[:_SHOWN_ROWS], note)


TELEMETRY_REPORTS = ResultKind(key="telemetry_reports", model=TelemetryReports, tables=(_REPORTS,))
TELEMETRY_HOPS = ResultKind(key="telemetry_hops", model=TelemetryHop, show=_show_hops, report=_report_hops)
