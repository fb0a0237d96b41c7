"""Lossy directions of links: a test of each one's losses against its peers'.

Losses are counted between the two ends of a link (`weft.controller.link_watch`), so what a full queue drops is not
among them: the sender never sent it. Corruption does not depend on the load (Zhuo et al., "Understanding and Mitigating
Packet Corruption in Data Center Networks", SIGCOMM 2017), so losses of n packets are binomial, and directions are
comparable whatever they carry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from weft.controller.link_watch import Reading
from weft.controller.noise.evidence import Evidence
from weft.controller.noise.limits import LEAST_PEERS, LOSS_FLOOR, TIMES_PEERS, NoiseLimits
from weft.controller.noise.tails import log_binomial_tail

_Name = TypeVar("_Name")


_SETTLING = 4
"""Readings after which a reading is judged: meanwhile later ones show what was only on its way."""


@dataclass(frozen=True)
class Lost:
    """Losses of a direction.

    Attributes:
        packets: packets that it has certainly lost.
        sent: packets sent, of which these are.
        sent_bytes: bytes of them.
        most: packets that it may have lost, at most.

    """

    packets: int = 0
    sent: int = 0
    sent_bytes: int = 0
    most: int = 0

    @property
    def ratio(self) -> float:
        """Share of the packets sent; 0 without any."""
        return self.packets / self.sent if self.sent else 0.0

    def __add__(self, other: Lost) -> Lost:
        """Return the losses of both together."""
        return Lost(
            self.packets + other.packets,
            self.sent + other.sent,
            self.sent_bytes + other.sent_bytes,
            self.most + other.most,
        )

    def without(self, part: Lost) -> Lost:
        """Return the losses of the others of a sum."""
        return self + Lost(-part.packets, -part.sent, -part.sent_bytes, -part.most)


class LossCount:
    """Counts what one direction has lost, from successive readings of its counters.

    Args:
        at_once: packets that the sender counts together before it sends the first one.

    """

    def __init__(self, at_once: int = 1) -> None:
        self._at_once = at_once
        self._sent_before = self._sent_bytes_before = self._most_lost_before = 0
        self._last: Reading | None = None
        self._is_new = False
        self._settling: deque[Lost] = deque(maxlen=_SETTLING)

    def restart(self) -> None:
        """Begin anew with the next reading, as after a failure of the link, which explains its losses."""
        self._is_new = True

    def take(self, reading: Reading, overtaking: int = 0) -> Lost:
        """Return what was lost since the beginning, as of some readings before. Decreased counters begin anew.

        `overtaking` packets at most were sent after the first reading of the sender, and have arrived all the same.
        """
        most_lost = reading.sent_packets - reading.received_packets
        if self._is_new or (self._last is not None and not self._last.is_before(reading)):
            self._sent_before, self._sent_bytes_before = reading.certain_packets, reading.sent_bytes
            self._most_lost_before, self._is_new = most_lost, False
            self._settling.clear()
        self._last = reading
        # What had been lost by then can only be less than what has been lost by now.
        self._most_lost_before = min(self._most_lost_before, most_lost)
        missing = reading.certain_packets - reading.received_packets - self._most_lost_before
        now = Lost(
            max(0, missing - self._at_once),
            reading.certain_packets - self._sent_before,
            reading.sent_bytes - self._sent_bytes_before,
            max(0, missing) + overtaking,
        )
        earlier = [replace(each, most=min(each.most, now.most)) for each in self._settling]
        self._settling.clear()
        self._settling.extend([*earlier, now])
        return self._settling[0]


def lossy_directions(
    counts: Mapping[_Name, Lost], limits: NoiseLimits, test: int, others: Mapping[_Name, Lost] | None = None
) -> Iterator[tuple[_Name, Evidence]]:
    """Yield the directions that lose more than their peers may.

    Several noisy ones hide each other a little; the worst is found first, and callers leave it out from then on.

    Args:
        counts: directions of one role.
        limits: thresholds.
        test: number of this test of them, from 1.
        others: directions of all roles, which say what is usual where too few of the role carry packets.

    """
    everything = counts if others is None else others
    log_chance = limits.log_chance(len(everything), test)
    for name, lost in counts.items():
        if lost.ratio < limits.least_loss:
            continue
        usual = _of_others(counts, lost) or _of_others(everything, lost)
        if usual is None or lost.ratio < TIMES_PEERS * usual.ratio:
            continue
        # If all lose alike, each of the lost packets was this direction's with the share that it has of those sent: the
        # test of Przyborowski and Wilenski (Biometrika 1940), exact whatever the ratio and whoever sent how much. Wrong
        # bits hit long packets more often, so the share is that of packets or of bytes, whichever explains more.
        share = max(lost.sent / (lost.sent + usual.sent), lost.sent_bytes / max(1, lost.sent_bytes + usual.sent_bytes))
        of_peers = log_binomial_tail(lost.packets, lost.packets + usual.most, share)
        of_floor = log_binomial_tail(lost.packets, lost.sent, LOSS_FLOOR)
        if max(of_peers, of_floor) <= log_chance:
            words = f"{lost.packets:,} of {lost.sent:,} packets lost, by its peers {usual.packets:,} of {usual.sent:,}"
            yield name, Evidence("lossy", lost.ratio, usual.ratio, words)


def _of_others(counts: Mapping[_Name, Lost], one: Lost) -> Lost | None:
    """Return what all directions but one have lost together; None if too few of them have sent anything."""
    if sum(each.sent > 0 for each in counts.values()) <= LEAST_PEERS:
        return None
    return sum(counts.values(), Lost()).without(one)
