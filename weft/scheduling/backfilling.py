"""The reservation of EASY backfill: when the first waiting job can start at the latest, and what is free then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.quantities.arrays import Integers
from weft.scheduling.cluster import Cluster, Level
from weft.scheduling.placement import Free, Need, Placement, Room


@dataclass(frozen=True)
class Reservation:
    """From `at_s` on a job has a place among what is then free, in a domain of `level`."""

    cluster: Cluster
    need: Need
    level: Level
    at_s: float
    free: Integers

    def bears(self, placement: Placement, end_s: float) -> bool:
        """Return whether another job may start: it ends before, or leaves the job its place."""
        if end_s <= self.at_s:
            return True
        left = self.free.copy()
        left[placement.hosts] -= placement.taken
        return len(Room(self.cluster, left, self.need).fits(self.level)) > 0

    def without(self, placement: Placement, end_s: float) -> Reservation:
        """Return the reservation after another job has started."""
        if end_s <= self.at_s:
            return self
        left = self.free.copy()
        left[placement.hosts] -= placement.taken
        return Reservation(self.cluster, self.need, self.level, self.at_s, left)


def reservation(
    cluster: Cluster, free: Free, need: Need, level: Level, running: Sequence[tuple[float, Placement]]
) -> Reservation:
    """Return the reservation of a job, given when running jobs will end and where they are.

    A job fits after so many ends if it fits after fewer, so their number is found by bisection.
    """
    by_end = sorted(running, key=lambda each: each[0])
    none = np.array([], dtype=np.int64)
    hosts = np.concatenate([none, *(placement.hosts for _, placement in by_end)])
    taken = np.concatenate([none, *(placement.taken for _, placement in by_end)])
    until = np.cumsum([len(placement.hosts) for _, placement in by_end])

    def free_after(ends: int) -> Integers:
        upto = int(until[ends - 1]) if ends else 0
        given = np.bincount(hosts[:upto], weights=taken[:upto], minlength=len(cluster.hosts))
        return free.of_host + given.astype(np.int64)

    low, high = 0, len(by_end)
    while low < high:
        middle = (low + high) // 2
        if len(Room(cluster, free_after(middle), need).fits(level)):
            high = middle
        else:
            low = middle + 1
    at_s = by_end[low - 1][0] if low else -np.inf
    return Reservation(cluster, need, level, at_s, free_after(low))
