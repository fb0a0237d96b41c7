"""Finds lossy and slow links from counters alone: packets sent at one end, received at the other, and marked.

Each direction of a link is judged separately, from successive readings of its counters; callers pass the time.

**Lossy**: the loss ratio is the share of sent packets that the other end did not receive. Packets still on the link are
neither received nor lost. So the sender is read once before the receiver, by at least a packet's transit time, and once
after it. Packets sent by the first reading have arrived or are lost, so the lost packets are *at least* that count
minus the received count. Packets received were sent by the second reading, so the lost packets are *at most* that count
minus the received count. Packet sizes do not matter. Between two readings, a link has lost at least the lower bound now
minus the upper bound then.

**Slow**: a port with packets always waiting sends at its link's rate. Counters do not show the queue, but marks do: the
port marked packets (ECN) in each of several intervals, and sent the same amount in each, well below its link's rate.
Bursts also mark, but send different amounts in different intervals.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from weft.controller.errors import SettingError
from weft.quantities.units import PS_PER_S

_SLOW_INTERVALS = 8
_LARGEST_SPREAD = 0.05
"""Largest relative difference between a slow port's intervals, because a link's rate is steady."""
_LEAST_PACKETS_OF_AN_INTERVAL = 16
_STARTS_AT_ONCE = 16
"""Readings kept for later comparison, spaced by packets over `least_packets`, so that idle links add none."""


@dataclass(frozen=True)
class WatchLimits:
    """Thresholds for lossy and slow links.

    Attributes:
        loss_ratio: share of lost packets from which a link is lossy; None disables the check.
        least_packets: packets sent before a share is judged.
        slow_ratio: share of its link's rate below which a port with waiting packets is slow; None disables the check.

    Raises:
        SettingError: a value is out of range.

    """

    loss_ratio: float | None = None
    least_packets: int = 10_000
    slow_ratio: float | None = None

    def __post_init__(self) -> None:
        for name, ratio in (("loss_ratio", self.loss_ratio), ("slow_ratio", self.slow_ratio)):
            if ratio is not None and not 0 < ratio < 1:
                raise SettingError(f"{name} {ratio:g}", valid="above 0 and below 1")
        if self.least_packets < 1:
            raise SettingError(f"least_packets {self.least_packets}", valid="1 or more")

    @property
    def any(self) -> bool:
        """Return whether any check is enabled."""
        return self.loss_ratio is not None or self.slow_ratio is not None


@dataclass(frozen=True)
class Reading:
    """A direction's counters since its ends began to count.

    Attributes:
        time_ps: time of the sender's second reading.
        certain_packets: packets that the sender had counted at its first reading; all have arrived or are lost by now.
        received_packets: packets that the receiver counted, read after that.
        sent_packets, sent_bytes, marked_packets: the sender's counters, read with or after the receiver's.

    """

    time_ps: int
    certain_packets: int
    received_packets: int
    sent_packets: int
    sent_bytes: int = 0
    marked_packets: int = 0

    def is_before(self, other: Reading) -> bool:
        """Return whether no counter decreased from this reading to another."""
        return (
            self.certain_packets <= other.certain_packets
            and self.sent_packets <= other.sent_packets
            and self.received_packets <= other.received_packets
        )


@dataclass
class _Start:
    """An earlier reading, with which later ones are compared.

    `most_lost` is an upper bound on the packets lost by then. As losses only grow, later readings can only lower it.
    """

    sent: int
    most_lost: int


@dataclass(frozen=True)
class Loss:
    """A direction certainly lost this many of the packets sent."""

    lost_packets: int
    sent_packets: int

    @property
    def ratio(self) -> float:
        """Share of sent packets that were lost."""
        return self.lost_packets / self.sent_packets


@dataclass(frozen=True)
class Slowness:
    """A direction with waiting packets runs at a measured rate below its nominal rate."""

    measured_bps: int
    nominal_bps: int


class DirectionWatch:
    """Watches one direction of a link.

    Args:
        rate_bps: the link's rate.
        limits: thresholds for lossy and slow links.
        at_once: packets that the sender counts together before it sends the first one: 1, or a segment's packets.

    """

    def __init__(self, rate_bps: int, limits: WatchLimits, at_once: int = 1) -> None:
        self._rate_bps = rate_bps
        self._limits = limits
        self._at_once = at_once
        # When counting began, nothing was lost.
        self._starts: deque[_Start] = deque([_Start(0, 0)])
        self._start: _Start | None = None
        self._last: Reading | None = None
        self._intervals: deque[int] = deque(maxlen=_SLOW_INTERVALS)

    def restart(self) -> None:
        """Forget earlier readings, as after a failure of the link, which explains its losses."""
        self._last = self._start = None
        self._starts.clear()
        self._intervals.clear()

    def take(self, reading: Reading) -> list[Loss | Slowness]:
        """Return the findings of a new reading; empty for a healthy direction.

        Decreased counters (the switch was restarted) start a new comparison.
        """
        last, self._last = self._last, reading
        # A restarted switch counts from 0, so differences from earlier readings are meaningless.
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

        Only one of those readings is kept: the one since which the loss exceeds the limit most, whatever follows.
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
            # Packets that the sender counts at once may not all be on the link yet.
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
        self._intervals.append((now.sent_bytes - last.sent_bytes) * 8 * PS_PER_S // duration_ps)
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
