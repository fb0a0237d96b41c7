"""Section of a scenario file on what travels: packets, or segments of long messages."""

from __future__ import annotations

from typing import Annotated

from weft.quantities.definitions import MESSAGE_SIZE, SIZE
from weft.scenario.values import Section
from weft.traffic.transport_settings import SegmentSettings

MAX_SEGMENT_PACKETS = 255
"""Packets that one may stand for (Packet::kMaxPackets in engine/packets/packet.hpp)."""
LEAST_SEGMENT_PACKETS = 2


class FidelitySection(Section):
    """Whether packets in the middle of long messages travel together; by default each on its own."""

    segment: Annotated[int, SIZE.between(512, 1 << 20)] | None = None
    """Most payload that travels as one: 2 to 255 packets of `mtu`. Without it, packets."""
    messages: Annotated[int, MESSAGE_SIZE] = 1 << 14
    """Only messages of at least so many bytes travel in segments."""

    @property
    def has_segments(self) -> bool:
        """Return whether anything but packets travels."""
        return self.segment is not None

    def segment_packets(self, mtu_bytes: int) -> int:
        """Return how many packets a segment has at most."""
        return (self.segment or mtu_bytes) // mtu_bytes

    def settings(self, mtu_bytes: int) -> SegmentSettings:
        """Return the hosts' settings."""
        return SegmentSettings(self.segment_packets(mtu_bytes), self.messages)
