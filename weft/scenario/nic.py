"""Section of a scenario file on the hosts' network adapters."""

from __future__ import annotations

from weft.quantities.definitions import Rate, ShortTime
from weft.quantities.units import PS_PER_S
from weft.scenario.values import Section
from weft.traffic.transport_settings import NO_COSTS, NicCosts


class NicSection(Section):
    """Cost of the way between a host's memory and the link; free unless given."""

    pcie_rate: Rate | None = None
    """Payload rate in each direction, shared by all ports; unlimited by default."""
    dma_latency: ShortTime = 0
    """From the end of a transfer until its bytes are there."""
    per_message_overhead: ShortTime = 0
    """Before the first packet of a message that is sent."""
    per_packet_overhead: ShortTime = 0
    """Before each data packet, in either direction."""

    def costs(self) -> NicCosts:
        """Return the hosts' settings."""
        return NicCosts(
            pcie_rate_bps=self.pcie_rate or 0,
            dma_latency_ps=self.dma_latency,
            per_message_overhead_ps=self.per_message_overhead,
            per_packet_overhead_ps=self.per_packet_overhead,
        )

    @property
    def takes_time(self) -> bool:
        """Return whether the way costs anything."""
        return self.costs() != NO_COSTS

    def round_trip_ps(self, payload_bytes: int) -> int:
        """Return what a packet's fetching at one end and placing at the other add to its round trip."""
        transfer_ps = payload_bytes * 8 * PS_PER_S // self.pcie_rate if self.pcie_rate else 0
        one_way_ps = self.per_packet_overhead + transfer_ps + self.dma_latency
        return self.per_message_overhead + 2 * one_way_ps
