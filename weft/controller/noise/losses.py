"""Lossy directions of links: a test of each one's losses against those of its peers.

Losses are counted between the two ends of a link (`weft.controller.link_watch`), so what a full queue drops is not
among them: the sender never sent it. Corruption does not depend on the load (Zhuo et al., "Understanding and Mitigating
Packet Corruption in Data Center Networks", SIGCOMM 2017), so losses of n packets are binomial, and directions are
comparable whatever they carry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from weft.controller.link_watch import Reading
from weft.controller.noise.evidence import Evidence
from weft.controller.noise.limits import LEAST_PEERS, LOSS_FLOOR, TIMES_PEERS, NoiseLimits
from weft.controller.noise.tails import log_binomial_tail

_Name = TypeVar("_Name")


@dataclass(frozen=True)
class Lost:
    """Packets that a direction has certainly lost, of those sent, which had so many bytes."""

    packets: int = 0
    sent: int = 0
    sent_bytes: int = 0

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
        self._sent_before = self._sent_bytes_before = self._most_lost_before = 0
        self._last: Reading | None = None
        self._is_new = False

    def restart(self) -> None:
        """Begin anew with the next reading, as after a failure of the link, which explains its losses."""
        self._is_new = True

    def take(self, reading: Reading) -> Lost:
        """Return what was certainly lost since the beginning. Decreased counters begin anew."""
        most_lost = reading.sent_packets - reading.received_packets
        if self._is_new or (self._last is not None and not self._last.is_before(reading)):
            self._sent_before, self._sent_bytes_before = reading.certain_packets, reading.sent_bytes
            self._most_lost_before, self._is_new = most_lost, False
        self._last = reading
        # What had been lost by then can only be less than what has been lost by now.
        self._most_lost_before = min(self._most_lost_before, most_lost)
        lost = reading.certain_packets - reading.received_packets - self._at_once - self._most_lost_before
        sent, sent_bytes = reading.certain_packets - self._sent_before, reading.sent_bytes - self._sent_bytes_before
        return Lost(max(0, lost), sent, sent_bytes)


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
    log_chance = limits.log_chance(len(counts), test)
    of_role, of_all = _Sum.of(counts.values()), _Sum.of((counts if others is None else others).values())
    for name, lost in counts.items():
        if lost.ratio < limits.least_loss:
            continue
        usual = of_role.without(lost) or of_all.without(lost)
        if usual is None or lost.ratio < TIMES_PEERS * usual.ratio:
            continue
        # If all lose alike, each of the lost packets was this direction's with the share that it has of those sent: the
        # test of Przyborowski and Wilenski (Biometrika 1940), exact whatever the ratio and whoever sent how much. Wrong
        # bits hit long packets more often, so the share is that of packets or of bytes, whichever explains more.
        share = max(lost.sent / (lost.sent + usual.sent), lost.sent_bytes / max(1, lost.sent_bytes + usual.sent_bytes))
        of_peers = log_binomial_tail(lost.packets, lost.packets + usual.packets, share)
        of_floor = log_binomial_tail(lost.packets, lost.sent, LOSS_FLOOR)
        if max(of_peers, of_floor) <= log_chance:
            words = f"{lost.packets:,} of {lost.sent:,} packets lost, by its peers {usual.packets:,} of {usual.sent:,}"
            yield name, Evidence("lossy", lost.ratio, usual.ratio, words)


@dataclass(frozen=True)
class _Sum:
    """What directions have lost together, and how many of them have sent anything."""

    lost: Lost
    sending: int

    @classmethod
    def of(cls, counts: Collection[Lost]) -> _Sum:
        """Return the sum."""
        lost = Lost(*(sum(getattr(each, key.name) for each in counts) for key in fields(Lost)))
        return cls(lost, sum(each.sent > 0 for each in counts))

    def without(self, one: Lost) -> Lost | None:
        """Return what all but one have lost; None if too few of them have sent anything."""
        if self.sending <= LEAST_PEERS:
            return None
        return Lost(*(getattr(self.lost, key.name) - getattr(one, key.name) for key in fields(Lost)))
