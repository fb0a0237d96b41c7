"""The network between controller and switches, which may be down for some time while the fabric's links go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weft.results.management import ManagementOutage


class _Loop(Protocol):
    def now_ps(self) -> int: ...

    async def sleep_ps(self, delay_ps: int) -> None: ...


class ManagementNetwork:
    """Says when a message may pass. While the network is down, messages wait where they are, as gRPC's and TCP's do.

    Args:
        loop: the event loop that keeps virtual time.
        outages: when the network is down, from when the fabric is up: beginning and end, in order.

    """

    def __init__(self, loop: _Loop, outages: Sequence[tuple[int, int]]) -> None:
        self.outages = [ManagementOutage(began_ps=begin, ended_ps=end) for begin, end in outages]
        self._loop = loop
        self._up_ps: int | None = None

    def begin(self) -> None:
        """Count outages from now on: the fabric is up."""
        self._up_ps = self._loop.now_ps()

    def held_ps(self) -> int:
        """Return how long a message that is sent now has to wait, and count it."""
        if self._up_ps is None:
            return 0
        since_ps = self._loop.now_ps() - self._up_ps
        for outage in self.outages:
            if outage.began_ps <= since_ps < outage.ended_ps:
                outage.messages_held += 1
                return outage.ended_ps - since_ps
        return 0

    async def passes(self) -> None:
        """Wait until a message passes."""
        if held_ps := self.held_ps():
            await self._loop.sleep_ps(held_ps)
