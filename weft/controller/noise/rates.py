"""Slow ports and NICs: with packets waiting they send at their rates, or are slow.

A port that has Q bytes waiting, may send them, and is not paused sends min(Q, R t) bytes in a time t at its rate R,
whatever waits and whoever sent it: queues are work-conserving. So the port's state is read twice, the time apart in
which it would send GAP_FRAMES of the largest frames. If as much was waiting at first, what it has sent since then
measures its rate, to within a frame. No congestion makes it less, so a healthy port is never below 1 - 1/GAP_FRAMES of
its rate.

NICs have no queues: queue pairs give them packets as they can send them. A queue pair that may send W more bytes (its
window less what is in flight), is not paced below the port's rate, and has more to send, is a queue of W bytes. It had
more to send if it sends again later, though nothing was posted meanwhile.

INT carries the same three figures (time, bytes sent, queue) of each port that a packet passes (HPCC, SIGCOMM 2019).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from weft.controller.noise.evidence import Evidence
from weft.controller.noise.limits import GAP_FRAMES, LEAST_GAPS, NoiseLimits
from weft.quantities.units import PS_PER_S

_GBPS = 1e9


@dataclass(frozen=True)
class PortQueue:
    """A port's state at a moment.

    Attributes:
        time_ps: the moment.
        waiting_bytes: in its queues.
        sent_bytes: since it began to count.
        held: changes whenever something other than its rate has kept the port from sending: pauses, missing credits,
            frames sent again by the link, packets dropped from its queues. Two equal values: nothing has.
        is_held: whether something does at the moment.

    """

    time_ps: int
    waiting_bytes: int
    sent_bytes: int
    held: tuple[int, ...] = ()
    is_held: bool = False


@dataclass(frozen=True)
class Sender:
    """A queue pair at a moment: requests posted and not completed, packets sent, and bytes that it may send at once.

    `permitted_bytes` is 0 for one that is paced below the port's rate.
    """

    outstanding: int
    sent_packets: int
    permitted_bytes: int


@dataclass(frozen=True)
class NicState:
    """A NIC's port at a moment: a port without a queue, and its queue pairs."""

    port: PortQueue
    senders: Mapping[int, Sender]


def nic_queues(before: NicState, after: NicState, later: NicState) -> tuple[PortQueue, PortQueue]:
    """Return the first two states of a NIC's port, with what its queue pairs had waiting at first."""
    waiting_bytes = max(
        (
            then.permitted_bytes
            for name, then in before.senders.items()
            if _had_more(then, after.senders.get(name), later.senders.get(name))
        ),
        default=0,
    )
    return replace(before.port, waiting_bytes=waiting_bytes), after.port


def _had_more(before: Sender, after: Sender | None, later: Sender | None) -> bool:
    if after is None or later is None or not before.outstanding == after.outstanding == later.outstanding > 0:
        return False
    is_permitted = after.permitted_bytes > 0
    return is_permitted and before.sent_packets < after.sent_packets < later.sent_packets


def gap_ps(rate_bps: int, frame_bytes: int) -> int:
    """Return the time between two states of a port: GAP_FRAMES of its largest frames at its rate."""
    return GAP_FRAMES * frame_bytes * 8 * PS_PER_S // rate_bps


class RateWatch:
    """Measures one port's rate while packets wait there."""

    def __init__(self, rate_bps: int, frame_bytes: int, least_gaps: int = LEAST_GAPS) -> None:
        self._rate_bps = rate_bps
        self._frame_bytes = frame_bytes
        self._least_gaps = least_gaps
        self._gaps = self._sent_bytes = self._time_ps = 0

    @property
    def least_waiting_bytes(self) -> int:
        """Bytes that must wait for the port to be measured."""
        return GAP_FRAMES * self._frame_bytes

    def restart(self) -> None:
        """Forget earlier states."""
        self._gaps = self._sent_bytes = self._time_ps = 0

    def take(self, before: PortQueue, after: PortQueue) -> None:
        """Take two states, of which the later one is at most `gap_ps` after the other."""
        took_ps = after.time_ps - before.time_ps
        could_send = self._rate_bps * took_ps // (8 * PS_PER_S)
        if before.is_held or after.is_held or before.held != after.held or took_ps <= 0:
            return
        if before.waiting_bytes < could_send or could_send < self.least_waiting_bytes - self._frame_bytes:
            return
        sent_bytes = after.sent_bytes - before.sent_bytes
        if sent_bytes > could_send - self._frame_bytes:
            self.restart()  # a slow port never sends so much
            return
        self._gaps += 1
        self._sent_bytes += sent_bytes
        self._time_ps += took_ps

    def share(self) -> float | None:
        """Return the measured share of the rate; None as long as it was measured half as often as it needs."""
        if 2 * self._gaps < self._least_gaps:
            return None
        return self._measured_bps / self._rate_bps

    @property
    def _measured_bps(self) -> float:
        return self._sent_bytes * 8 * PS_PER_S / self._time_ps

    def found(self, limits: NoiseLimits) -> Evidence | None:
        """Return the evidence that the port is slow; None if it is not, or was not measured often enough."""
        if self._gaps < self._least_gaps:
            return None
        share = self._measured_bps / self._rate_bps
        if share > limits.slow:
            return None
        words = (
            f"{self._measured_bps / _GBPS:.3g} of {self._rate_bps / _GBPS:.3g} Gb/s with packets waiting, measured "
            f"{self._gaps} times"
        )
        return Evidence("slow", share, 1.0, words)
