"""Packets that switches send to the controller: a queue, and counts of dropped packets."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

import finsy
from finsy.p4schema import P4Schema

PACKET_QUEUE_LENGTH = 1024
REPORT_INTERVAL_S = 1.0


@dataclass(frozen=True)
class PacketIn:
    """A packet that a switch sent to the controller."""

    switch: str
    ingress_port: int
    payload: bytes


class PacketIns:
    """A queue of `PACKET_QUEUE_LENGTH` packets; packets that arrive while it is full are dropped and counted.

    Attributes:
        dropped: number of dropped packets by switch.

    """

    def __init__(self, on_dropped: Callable[[Mapping[str, int]], None] | None) -> None:
        self.dropped: Counter[str] = Counter()
        self._queue: asyncio.Queue[PacketIn] = asyncio.Queue(PACKET_QUEUE_LENGTH)
        self._on_dropped = on_dropped
        self._next_report: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Number of packets not yet fetched."""
        return self._queue.qsize()

    def note_dropped(self, switch: str) -> None:
        """Count a dropped packet and report it (`on_dropped`) at most once in `REPORT_INTERVAL_S`."""
        self.dropped[switch] += 1
        if self._on_dropped is not None and self._next_report is None:
            self._next_report = asyncio.get_running_loop().call_later(REPORT_INTERVAL_S, self._report)

    def take(self, switch: str, packet: finsy.P4PacketIn, schema: P4Schema) -> None:
        """Queue a packet. Raises KeyError if it lacks the port that its program's packet_in header declares."""
        header = schema.controller_packet_metadata.get("packet_in")
        if header is None or header.metadata.get("ingress_port") is None:
            # Only a user's controller understands such a program's packets.
            self.note_dropped(switch)
            return
        try:
            self._queue.put_nowait(PacketIn(switch, int(packet["ingress_port"]), packet.payload))
        except asyncio.QueueFull:
            self.note_dropped(switch)

    async def fetched(self) -> AsyncIterator[PacketIn]:
        """Yield packets in order of arrival, for ever."""
        while True:
            yield await self._queue.get()

    def close(self) -> None:
        """Send the pending report, if any."""
        if self._next_report is not None:
            self._next_report.cancel()
            self._report()

    def _report(self) -> None:
        self._next_report = None
        if self._on_dropped is not None:
            self._on_dropped(dict(self.dropped))
