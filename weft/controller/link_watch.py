"""Finds lossy and slow links from counters alone: what one end sent, the other received, and how often it marked.

One direction of a link at a time, from one reading of its counters to the next; time is passed in.

**Lossy**: what was sent and not received, as a share of what was sent. Packets that were on the link at one reading and
not at the other look lost, or gained; as many as fit on it are never counted as lost.

**Slow**: a port that always has packets waiting sends at its link's rate. Counters do not show the queue, but marks do:
the port marked packets (ECN) in every one of several intervals, in which it sent the same amount, well below what its
link's rate allows. Bursts mark too, but do not send the same amount in every interval.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from weft.controller.errors import SettingError

_PS_PER_S = 10**12
_SLOW_INTERVALS = 8
_LARGEST_SPREAD = 0.05
"""By which the least and the most that a slow port sent in an interval differ at most: a link's rate is steady."""
_LEAST_PACKETS_OF_AN_INTERVAL = 16
_LEAST_BYTES_ON_THE_WIRE = 64


@dataclass(frozen=True)
class WatchLimits:
    """From when on a link is lossy or slow.

    Attributes:
        loss_ratio: share of lost packets from which a link is lossy; None: losses are not looked for.
        least_packets: sent before a share is judged.
        slow_ratio: share of its link's rate below which a port that has packets waiting is slow; None: not looked for.

    Raises:
        SettingError: out of range.

    """

    loss_ratio: float | None = None
    least_packets: int = 10_000
    slow_ratio: float | None = None

    def __post_init__(self) -> None:
        for name, ratio in (("loss_ratio", self.loss_ratio), ("slow_ratio", self.slow_ratio)):
            if ratio is not None and not 0 < ratio < 1:
                raise SettingError(f"{name} {ratio:g} (valid: above 0 and below 1)")
        if self.least_packets < 1:
            raise SettingError(f"least_packets {self.least_packets} (valid: 1 or more)")

    @property
    def any(self) -> bool:
        """Return whether anything is looked for."""
        return self.loss_ratio is not None or self.slow_ratio is not None


@dataclass(frozen=True)
class Reading:
    """A direction's counters since the switches began to count, at `time_ps`.

    `uncertainty_ps` is how far apart the two ends may have been read.
    """

    time_ps: int
    sent_packets: int
    sent_bytes: int
    received_packets: int
    marked_packets: int = 0
    uncertainty_ps: int = 0


@dataclass(frozen=True)
class Loss:
    """A direction lost so many packets for certain, of so many sent."""

    lost_packets: int
    sent_packets: int

    @property
    def ratio(self) -> float:
        """Share of the packets."""
        return self.lost_packets / self.sent_packets


@dataclass(frozen=True)
class Slowness:
    """A direction carries so much, with packets waiting, though its rate is another."""

    measured_bps: int
    nominal_bps: int


class DirectionWatch:
    """Watches one direction of a link: its rate, its delay, and what counts as lossy or slow."""

    def __init__(self, rate_bps: int, delay_ps: int, limits: WatchLimits) -> None:
        self._rate_bps = rate_bps
        self._delay_ps = delay_ps
        self._limits = limits
        self._base: Reading | None = None
        self._last: Reading | None = None
        self._intervals: deque[int] = deque(maxlen=_SLOW_INTERVALS)

    def restart(self) -> None:
        """Forget what was read, as after the link was down: what was lost then is known."""
        self._base = self._last = None
        self._intervals.clear()

    def take(self, reading: Reading) -> list[Loss | Slowness]:
        """Return what a new reading shows, nothing for a healthy direction.

        Counters that have fallen (the switch was restarted) start a new comparison.
        """
        last, self._last = self._last, reading
        if last is None or self._base is None or reading.sent_packets < last.sent_packets:
            self.restart()
            self._base = self._last = reading
            return []
        found: list[Loss | Slowness] = []
        if (loss := self._loss(self._base, reading)) is not None:
            found.append(loss)
        if (slowness := self._slowness(last, reading)) is not None:
            found.append(slowness)
        return found

    def _loss(self, base: Reading, now: Reading) -> Loss | None:
        sent = now.sent_packets - base.sent_packets
        if self._limits.loss_ratio is None or sent < self._limits.least_packets:
            return None
        self._base = now
        lost = sent - (now.received_packets - base.received_packets)
        mean_bytes = max(_LEAST_BYTES_ON_THE_WIRE, (now.sent_bytes - base.sent_bytes) / sent)
        away_ps = self._delay_ps + now.uncertainty_ps + base.uncertainty_ps
        # One more, because the packet that is being sent has been counted.
        on_the_link = int(self._rate_bps * away_ps / (8 * _PS_PER_S * mean_bytes)) + 1
        certain = lost - on_the_link
        return Loss(certain, sent) if certain >= self._limits.loss_ratio * sent else None

    def _slowness(self, last: Reading, now: Reading) -> Slowness | None:
        duration_ps = now.time_ps - last.time_ps
        if self._limits.slow_ratio is None or duration_ps <= 0:
            return None
        packets = now.sent_packets - last.sent_packets
        if packets < _LEAST_PACKETS_OF_AN_INTERVAL or now.marked_packets == last.marked_packets:
            self._intervals.clear()
            return None
        self._intervals.append((now.sent_bytes - last.sent_bytes) * 8 * _PS_PER_S // duration_ps)
        least, most = min(self._intervals), max(self._intervals)
        if (
            len(self._intervals) < _SLOW_INTERVALS
            or most >= self._limits.slow_ratio * self._rate_bps
            or most - least > _LARGEST_SPREAD * most
        ):
            return None
        mean_bps = sum(self._intervals) // len(self._intervals)
        self._intervals.clear()
        return Slowness(mean_bps, self._rate_bps)
