"""Lossy directions of links: a test of each one's losses against those of its peers.

Losses are counted between the two ends of a link (`weft.controller.link_watch`), so what a full queue drops is not among
them: the sender never sent it. Corruption does not depend on the load (Zhuo et al., "Understanding and Mitigating Packet
Corruption in Data Center Networks", SIGCOMM 2017), so losses of n packets are binomial, and directions are comparable
whatever they carry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from weft.controller.link_watch import Reading
from weft.controller.noise.evidence import Evidence
from weft.controller.noise.limits import LEAST_PEERS, LOSS_FLOOR, TIMES_PEERS, NoiseLimits
from weft.controller.noise.tails import log_binomial_tail

_Name = TypeVar("_Name")
_WORST_PEERS = 0.25
"""Share of the peers, the worst, that do not say what is usual: they may be noisy themselves."""


@dataclass(frozen=True)
class Lost:
    """Packets that a direction has certainly lost, of those sent."""

    packets: int = 0
    sent: int = 0

    @property
    def ratio(self) -> float:
        """Share of the packets sent; 0 without any."""
        return self.packets / self.sent if self.sent else 0.0


class LossCount:
    """Counts what one direction has lost, from successive readings of its counters.

    Args:
        at_once: packets that the sender counts together before it sends the first one.

    """

    def __init__(self, at_once: int = 1) -> None:
        self._at_once = at_once
        self._sent_before, self._most_lost_before = 0, 0
        self._last: Reading | None = None
        self._is_new = False

    def restart(self) -> None:
        """Begin anew with the next reading, as after a failure of the link, which explains its losses."""
        self._is_new = True

    def take(self, reading: Reading) -> Lost:
        """Return what was certainly lost since the beginning. Decreased counters begin anew."""
        most_lost = reading.sent_packets - reading.received_packets
        if self._is_new or (self._last is not None and not self._last.is_before(reading)):
            self._sent_before, self._most_lost_before, self._is_new = reading.certain_packets, most_lost, False
        self._last = reading
        # What had been lost by then can only be less than what has been lost by now.
        self._most_lost_before = min(self._most_lost_before, most_lost)
        lost = reading.certain_packets - reading.received_packets - self._at_once - self._most_lost_before
        return Lost(max(0, lost), max(0, reading.certain_packets - self._sent_before))


def lossy_directions(
    counts: Mapping[_Name, Lost], limits: NoiseLimits, test: int
) -> Iterator[tuple[_Name, Evidence]]:
    """Yield the directions that lose more than their peers may, given all directions of one role.

    `test` is the number of this test of them, from 1.
    """
    log_chance = limits.log_chance(len(counts), test)
    usual = _usual_ratio(list(counts.values()))
    for name, lost in counts.items():
        if lost.ratio < limits.least_loss or lost.ratio < TIMES_PEERS * usual:
            continue
        if log_binomial_tail(lost.packets, lost.sent, max(LOSS_FLOOR, TIMES_PEERS * usual)) > log_chance:
            continue
        words = f"{lost.packets:,} of {lost.sent:,} packets lost, {_percent(usual)} by its peers"
        yield name, Evidence("lossy", lost.ratio, usual, words)


def _usual_ratio(counts: Sequence[Lost]) -> float:
    """Return the loss ratio of directions without the worst of them; 0 if there are too few to say."""
    sending = sorted((each for each in counts if each.sent), key=lambda each: each.ratio)
    kept = sending[: len(sending) - max(1, int(len(sending) * _WORST_PEERS))]
    if len(kept) < LEAST_PEERS:
        return 0.0
    return sum(each.packets for each in kept) / sum(each.sent for each in kept)


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.2g} %"
