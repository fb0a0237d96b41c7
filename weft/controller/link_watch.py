"""Finds lossy and slow links from counters alone: what one end sent, the other received, and how often it marked.

One direction of a link at a time, from one reading of its counters to the next; time is passed in.

**Lossy**: packets that one end sent and the other did not receive, as a share of those that were sent. Packets that are
on the link are neither. So the sender is read before the receiver, by at least the time that a packet needs from one
to the other, and once more after it. What the sender had sent by its first reading has then arrived or is lost: of
all that was ever sent, *at least* that less what was received is lost. And what was received had been sent by the
sender's second reading: *at most* that less what was received is lost. How large packets are does not matter.
A link has lost at least the difference of the least now and the most at an earlier reading since then.

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
_STARTS_AT_ONCE = 16
"""Readings that the next ones wait to be compared with, spread over `least_packets`, so that idle links add none."""


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
    """A direction's counters since its ends began to count.

    Attributes:
        time_ps: of the sender's second reading.
        certain_packets: that the sender had counted at its first reading, so early that they have arrived or are lost.
        received_packets: by the receiver, read after that.
        sent_packets, sent_bytes, marked_packets: by the sender, read at the same time or after the receiver.

    """

    time_ps: int
    certain_packets: int
    received_packets: int
    sent_packets: int
    sent_bytes: int = 0
    marked_packets: int = 0

    def is_before(self, other: Reading) -> bool:
        """Return whether no counter has fallen from this reading to another."""
        return (
            self.certain_packets <= other.certain_packets
            and self.sent_packets <= other.sent_packets
            and self.received_packets <= other.received_packets
        )


@dataclass
class _Start:
    """An earlier reading, with which later ones are compared.

    `most_lost` is the most that can have been lost by then. As the lost only become more, each later reading bounds it,
    too.
    """

    sent: int
    most_lost: int


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
    """Watches one direction of a link.

    Args:
        rate_bps: the link's.
        limits: what counts as lossy or slow.
        at_once: packets that the sender counts together, before the first of them is sent: one, or a segment's.

    """

    def __init__(self, rate_bps: int, limits: WatchLimits, at_once: int = 1) -> None:
        self._rate_bps = rate_bps
        self._limits = limits
        self._at_once = at_once
        # Before they counted anything, nothing was lost.
        self._starts: deque[_Start] = deque([_Start(0, 0)])
        self._start: _Start | None = None
        self._last: Reading | None = None
        self._intervals: deque[int] = deque(maxlen=_SLOW_INTERVALS)

    def restart(self) -> None:
        """Forget what was read, as after the link was down: what was lost then is known."""
        self._last = self._start = None
        self._starts.clear()
        self._intervals.clear()

    def take(self, reading: Reading) -> list[Loss | Slowness]:
        """Return what a new reading shows, nothing for a healthy direction.

        Counters that have fallen (the switch was restarted) start a new comparison.
        """
        last, self._last = self._last, reading
        # A switch that has started anew counts from 0: differences to earlier readings mean nothing.
        if last is not None and not last.is_before(reading):
            self.restart()
            last, self._last = None, reading
        found: list[Loss | Slowness] = []
        if self._limits.loss_ratio is not None and (loss := self._loss(reading, self._limits.loss_ratio)):
            found.append(loss)
        if last is not None and (slowness := self._slowness(last, reading)) is not None:
            found.append(slowness)
        return found

    def _loss(self, now: Reading, limit: float) -> Loss | None:
        """Return a loss since any earlier reading after which enough was sent.

        Of those readings one is kept: that since which most is lost beyond the limit, whatever comes.
        """
        sent, most_lost = now.certain_packets, now.sent_packets - now.received_packets
        while self._starts and sent - self._starts[0].sent >= self._limits.least_packets:
            start = self._starts.popleft()
            if self._start is None or limit * (start.sent - self._start.sent) >= (
                start.most_lost - self._start.most_lost
            ):
                self._start = start
        for each in (self._start, *self._starts):
            if each is not None:
                each.most_lost = min(each.most_lost, most_lost)
        if self._start is not None:
            # Of what the sender has counted, all may be on the way that it has not yet put on the link whole.
            lost = sent - now.received_packets - self._at_once - self._start.most_lost
            since = sent - self._start.sent
            if lost >= limit * since:
                self._start = None
                self._starts.clear()
                self._starts.append(_Start(sent, most_lost))
                return Loss(lost, since)
        spread = max(1, self._limits.least_packets // _STARTS_AT_ONCE)
        if not self._starts or sent - self._starts[-1].sent >= spread:
            self._starts.append(_Start(sent, most_lost))
        return None

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
