"""Slow ports: a port with packets waiting sends at its rate, or is slow.

A port that has Q bytes waiting, may send them, and is not paused sends min(Q, R t) bytes in a time t at its rate R,
whatever waits and whoever sent it: queues are work-conserving. So the port's state is read twice, the time apart in which
it would send GAP_FRAMES of the largest frames. If as much was waiting at first, what it has sent since then measures its
rate, to within a frame. No congestion makes it less, so a healthy port is never below 1 - 1/GAP_FRAMES of its rate.

INT carries the same three figures (time, bytes sent, queue) of each port that a packet passes (HPCC, SIGCOMM 2019).
"""

from __future__ import annotations

from dataclasses import dataclass

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


def gap_ps(rate_bps: int, frame_bytes: int) -> int:
    """Return the time between two states of a port: GAP_FRAMES of its largest frames at its rate."""
    return GAP_FRAMES * frame_bytes * 8 * PS_PER_S // rate_bps


class RateWatch:
    """Measures one port's rate while packets wait there."""

    def __init__(self, rate_bps: int, frame_bytes: int) -> None:
        self._rate_bps = rate_bps
        self._frame_bytes = frame_bytes
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
        self._gaps += 1
        self._sent_bytes += after.sent_bytes - before.sent_bytes
        self._time_ps += took_ps

    def found(self, limits: NoiseLimits) -> Evidence | None:
        """Return the evidence that the port is slow; None if it is not, or was not measured often enough."""
        if self._gaps < LEAST_GAPS:
            return None
        measured_bps = self._sent_bytes * 8 * PS_PER_S / self._time_ps
        share = measured_bps / self._rate_bps
        if share > limits.slow:
            return None
        words = (
            f"{measured_bps / _GBPS:.3g} of {self._rate_bps / _GBPS:.3g} Gb/s with packets waiting, measured "
            f"{self._gaps} times"
        )
        return Evidence("slow", share, 1.0, words)
