"""How much longer a job runs that is spread over more of the cluster than it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from weft.scenario.schedule import SpreadSection
from weft.scheduling.cluster import Cluster
from weft.scheduling.placement import Spread


class Slowdowns(Protocol):
    """Gives the slow-down of a job by where it lies."""

    def of_job(self, accelerators: int, spread: Spread) -> float:
        """Return its run time over a packed job's."""


class NoSlowdown:
    """Jobs run equally fast wherever they lie."""

    def of_job(self, accelerators: int, spread: Spread) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True)
class GivenSlowdowns:
    """Factors of a scenario by leaves. A job that needs several leaves anyway is slower only by more of them."""

    communication: float
    spread: Sequence[SpreadSection]
    cluster: Cluster

    def factor(self, leaves: int) -> float:
        """Return the factor of so many leaves: the one that is given for the most of them that are reached."""
        reached = [each for each in self.spread if each.leaves <= leaves]
        return max(reached, key=lambda each: each.leaves).factor if reached else 1.0

    def of_job(self, accelerators: int, spread: Spread) -> float:
        """Return its run time over a packed job's."""
        packed = self.factor(self.cluster.fewest_leaves(accelerators))
        return 1 + self.communication * max(0.0, self.factor(spread.leaves) / packed - 1)


@dataclass(frozen=True)
class MeasuredSlowdowns:
    """Times of communication by shape, measured by packets (`weft.scheduling.measured`).

    A shape is a spread of which each number is rounded up to a power of two. A job with more hosts than were measured
    counts as one with as many hosts on each leaf; of a shape that the fabric does not have, the next smaller number of
    leaves or groups counts.
    """

    communication: float
    accelerators_per_host: int
    times_ps: Mapping[Spread, int]

    def factor(self, accelerators: int, spread: Spread) -> float:
        """Return the time of a job's communication over a packed job's."""
        hosts = power_of_two(-(-accelerators // self.accelerators_per_host))
        most = max((each.hosts for each in self.times_ps), default=1)
        times = max(1, hosts // most)
        alike = [each for each in self.times_ps if each.hosts == hosts // times]
        if not alike:
            return 1.0
        packed = min(alike, key=lambda each: (each.leaves, each.groups))
        leaves, groups = (-(-power_of_two(number) // times) for number in (spread.leaves, spread.groups))
        reached = [each for each in alike if each.leaves <= leaves and each.groups <= groups]
        own = max(reached, key=lambda each: (each.groups, each.leaves), default=packed)
        return max(1.0, self.times_ps[own] / self.times_ps[packed])

    def of_job(self, accelerators: int, spread: Spread) -> float:
        """Return its run time over a packed job's."""
        return 1 + self.communication * (self.factor(accelerators, spread) - 1)


def power_of_two(number: int) -> int:
    """Return the least power of two that is not smaller."""
    return 1 << (number - 1).bit_length()
