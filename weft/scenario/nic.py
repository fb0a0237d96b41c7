"""Section of a scenario file on the hosts' network adapters."""

from __future__ import annotations

from weft.quantities.units import PS_PER_S
from weft.scenario.values import Section
from weft.traffic.transport_settings import NO_COSTS, NicCosts


class NicSection(Section, NicCosts):
    """Cost of the way between a host's memory and the link; free unless given."""

    def costs(self) -> NicCosts:
        """Return the hosts' settings."""
        return self.as_declared(NicCosts)

    @property
    def takes_time(self) -> bool:
        """Return whether the way costs anything."""
        return self.costs() != NO_COSTS

    def round_trip_ps(self, payload_bytes: int) -> int:
        """Return what a packet's fetching at one end and placing at the other add to its round trip."""
        transfer_ps = payload_bytes * 8 * PS_PER_S // self.pcie_rate if self.pcie_rate else 0
        one_way_ps = self.per_packet_overhead + transfer_ps + self.dma_latency
        return self.per_message_overhead + 2 * one_way_ps
