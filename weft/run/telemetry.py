"""Collects INT-MD's telemetry reports of a running fabric."""

from __future__ import annotations

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
        sent = {name: events["reported"] for name, events in self._lab.controller.read_int_md().items()}
        warnings = []
        if found.refused:
            what = counted(found.refused, "datagram")
            warnings.append(f"telemetry: {what} at {options.collector}, port {options.port}: no reports of this fabric")
        return TelemetryFound(
            reports=report_results(found, sent),
            hops=hop_results(found),
            tables={"telemetry": telemetry_table(found)},
            rows_lost=not_kept,
            warnings=warnings,
        )

    @property
    def _rank(self) -> int:
        return self._lab.fabric.host(self._lab.options.telemetry.collector or "").index
