"""NICs that pause too much: the share of time for which each host's port is held by PFC, compared with other hosts'.

Only ports to hosts are judged. A switch pauses its neighbours because something behind it does; a host is the last
behind them, so pauses begin there or do not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from weft.controller.noise.evidence import Evidence
from weft.controller.noise.limits import LEAST_PAUSED, PAUSE_WINDOW, TIMES_PEERS_PAUSED

_Name = TypeVar("_Name")


@dataclass(frozen=True)
class Paused:
    """How long a port's classes were held, each up to its last change, and whether they are at the moment."""

    time_ps: int
    paused_ps: tuple[int, ...]
    is_paused: tuple[bool, ...]


class PauseWatch:
    """Follows one port over the last PAUSE_WINDOW readings."""

    def __init__(self) -> None:
        self._last: Paused | None = None
        self._intervals: deque[tuple[int, int]] = deque(maxlen=PAUSE_WINDOW)

    def take(self, now: Paused) -> None:
        """Take a reading; the class that was held for longest counts."""
        last, self._last = self._last, now
        if last is None or now.time_ps <= last.time_ps:
            return
        took_ps = now.time_ps - last.time_ps
        held_ps = 0
        for before, after, was, still in zip(last.paused_ps, now.paused_ps, last.is_paused, now.is_paused, strict=True):
            # A pause counts when it ends, so one that lasts may show no more than that it is there.
            whole = was and still and before == after
            held_ps = max(held_ps, took_ps if whole else min(took_ps, after - before))
        self._intervals.append((held_ps, took_ps))

    @property
    def share(self) -> float | None:
        """Share of the window in which the port was held; None before there is a whole one."""
        if len(self._intervals) < PAUSE_WINDOW:
            return None
        return sum(held for held, _ in self._intervals) / sum(took for _, took in self._intervals)


def pausing_ports(watches: Mapping[_Name, PauseWatch]) -> Iterator[tuple[_Name, Evidence]]:
    """Yield the ports that are held for much longer than the others."""
    shares = {name: share for name, watch in watches.items() if (share := watch.share) is not None}
    for name, share in shares.items():
        others = sorted(each for other, each in shares.items() if other != name)
        usual = others[len(others) // 2] if others else 0.0
        if share >= LEAST_PAUSED and share >= TIMES_PEERS_PAUSED * usual:
            words = f"paused its switch {100 * share:.0f} % of the time, other hosts {100 * usual:.2g} %"
            yield name, Evidence("pausing", share, usual, words)
