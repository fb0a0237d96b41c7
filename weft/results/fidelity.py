"""Packets that travelled in segments, in results.json and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from weft.quantities.units import shortest_size
from weft.scenario import FabricOptions
from weft.traffic.host_stats import HostStats


@dataclass(frozen=True)
class FidelityResult:
    """Segments of all hosts over the whole run; all other counts are of packets, in segments or not."""

    segment_bytes: int
    """Payload of a segment at most."""
    packet_bytes: int
    """Payload of a packet."""
    messages_from_bytes: int
    """Messages of at least so many bytes travelled in segments."""
    segments: int
    """That were sent."""
    packets_in_segments: int
    """Data packets that these segments replaced."""
    data_packets: int
    """Data packets sent in all."""

    @property
    def sentence(self) -> str:
        """The change to the packets, for people."""
        return (
            f"segments of up to {shortest_size(self.segment_bytes)} in place of packets of {self.packet_bytes:,} B for "
            f"messages of {shortest_size(self.messages_from_bytes)} or more: {self.segments:,} stood for "
            f"{self.packets_in_segments:,} of {self.data_packets:,} data packets (errors: docs/fidelity.md)"
        )


def fidelity_results(options: FabricOptions, hosts: Sequence[HostStats]) -> list[FidelityResult]:
    """Return what travelled in segments; nothing where packets did."""
    fidelity = options.fidelity
    if fidelity.segment is None:
        return []

    def total(name: str) -> int:
        return sum(host["totals"].get(name, 0) for host in hosts)

    return [
        FidelityResult(
            segment_bytes=fidelity.segment_packets(options.mtu_bytes) * options.mtu_bytes,
            packet_bytes=options.mtu_bytes,
            messages_from_bytes=fidelity.messages,
            segments=total("segments_sent"),
            packets_in_segments=total("packets_sent_in_segments"),
            data_packets=total("data_packets_sent"),
        )
    ]


def print_fidelity(console: Console, found: Sequence[FidelityResult]) -> None:
    """Print what was changed."""
    for each in found:
        console.print(f"\nfidelity: {each.sentence}")
