"""Collects INT-MD's telemetry reports of a running fabric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.clocks.lab import Lab
from weft.quantities.readable import counted
from weft.recording.tables import Table
from weft.results.telemetry import (
    TelemetryHop,
    TelemetryReports,
    collected,
    hop_results,
    report_results,
    telemetry_table,
)
from weft.traffic import collector

if TYPE_CHECKING:
    from weft.traffic.control import EndpointGroup


@dataclass(frozen=True)
class TelemetryFound:
    """Findings of a fabric's telemetry so far."""

    reports: list[TelemetryReports] = field(default_factory=list)
    hops: list[TelemetryHop] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    rows_lost: int = 0
    warnings: list[str] = field(default_factory=list)


class Telemetry:
    """The collector of a lab whose options have telemetry; without it, it finds nothing."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def start(self, hosts: EndpointGroup) -> None:
        """Have the collector's host keep reports. ChildError: its port is taken."""
        options = self._lab.options.telemetry
        if options.is_on:
            hosts.collect(self._rank, options.port)

    def found(self, hosts: EndpointGroup) -> TelemetryFound:
        """Let reports on their way arrive, and return what all say."""
        options = self._lab.options.telemetry
        if not options.is_on:
            return TelemetryFound()
        self._lab.let_packets_arrive()
        file = self._lab.directory / "telemetry.npz"
        not_kept = hosts.save_collected(self._rank, file)
        found = collected(self._lab.fabric, collector.read(file))
        reports = report_results(found, self._lab.controller.read_int_md())
        warnings = [*_not_kept(not_kept), *self._unmatched(), *_not_started(reports)]
        if found.refused:
            what = counted(found.refused, "datagram")
            warnings.append(f"telemetry: {what} at {options.collector}, port {options.port}: no reports of this fabric")
        return TelemetryFound(
            reports=reports,
            hops=hop_results(found),
            tables={"telemetry": telemetry_table(found)},
            rows_lost=not_kept,
            warnings=warnings,
        )

    def _unmatched(self) -> Iterator[str]:
        """Yield warnings of the items of the watchlist that matched no packet."""
        watched = self._lab.controller.read_watched()
        if len(watched) < len(self._lab.fabric.switches):
            return  # a switch that is down may have matched some
        items = self._lab.options.telemetry.watch
        places = {
            number: f"telemetry.watch[{number}] ({item.shown()})"
            for number, item in enumerate(items)
            if not any(packets.get(number) for packets in watched.values())
        }
        if len(places) == len(items):
            yield f"telemetry reports: none. No packet matched {' or '.join(places.values())}"
            return
        for number, place in places.items():
            earlier = " that earlier items do not match" if number else ""
            yield f"telemetry: no packet{earlier} matched {place}"

    @property
    def _rank(self) -> int:
        return self._lab.fabric.host(self._lab.options.telemetry.collector or "").index


def _not_kept(count: int) -> Iterator[str]:
    """Yield a warning if datagrams came after the collector was full."""
    if count:
        most = f"{collector.MAX_DATAGRAMS:,} datagrams or {collector.MAX_BYTES >> 20} MiB"
        are = "is" if count == 1 else "are"
        what = counted(count, "datagram")
        yield f"telemetry: {what} came after the collector was full ({most}) and {are} not in the results"


def _not_started(reports: Sequence[TelemetryReports]) -> Iterator[str]:
    """Yield a warning if watched packets got no INT: TCP fills `link_mtu`, and its small packets alone mislead."""
    if count := sum(each.not_started for each in reports):
        are = "is" if count == 1 else "are"
        what = counted(count, "watched packet")
        yield f"telemetry: {what} had no room for INT (link_mtu) and {are} not in the results"
