"""Accelerators that are free, what a job asks of them, and placements: which hosts give it how many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.quantities.arrays import Integers
from weft.quantities.readable import counted
from weft.scheduling.cluster import Cluster, Level


@dataclass(frozen=True)
class Need:
    """Accelerators of a job.

    Attributes:
        accelerators: all of them.
        whole: hosts that it takes whole.
        rest: accelerators that it takes of one more host, or of its only one.
        is_loose: whether any accelerators will do; there is no `whole` and no `rest` then.
    """

    accelerators: int
    whole: int
    rest: int
    is_loose: bool = False

    @classmethod
    def of(cls, accelerators: int, per_host: int, is_consolidated: bool) -> Need:
        """Return the need of a job on hosts with so many accelerators."""
        if not is_consolidated:
            return cls(accelerators, 0, 0, True)
        return cls(accelerators, *divmod(accelerators, per_host))

    def hosts(self, per_host: int) -> int:
        """Return the fewest hosts that can hold it."""
        return -(-self.accelerators // per_host)


@dataclass(frozen=True)
class Placement:
    """Hosts of a job, in the order in which they were chosen, and how many accelerators each gives."""

    hosts: Integers
    taken: Integers

    def spread(self, cluster: Cluster) -> Spread:
        """Return over how many hosts and domains it lies."""
        return Spread(len(self.hosts), *(len(set(level.of_host[self.hosts].tolist())) for level in cluster.levels[:2]))


@dataclass(frozen=True, order=True)
class Spread:
    """Hosts of a placement, and domains of the lowest and of the second level."""

    hosts: int
    leaves: int
    groups: int = 1

    @property
    def words(self) -> str:
        """Its numbers in words; one group is not mentioned."""
        words = f"{counted(self.hosts, 'host')} on {counted(self.leaves, 'leaf', 'leaves')}"
        return f"{words} in {self.groups} groups" if self.groups > 1 else words


class Free:
    """Free accelerators by host. `by_count[n]` is the number of hosts with n of them."""

    def __init__(self, cluster: Cluster, of_host: Integers | None = None) -> None:
        self.per_host = cluster.accelerators_per_host
        hosts = len(cluster.hosts)
        self.of_host = np.full(hosts, self.per_host, dtype=np.int64) if of_host is None else of_host
        self.by_count: list[int] = np.bincount(self.of_host, minlength=self.per_host + 1).tolist()
        self.total = int(self.of_host.sum())

    def copy(self, cluster: Cluster) -> Free:
        """Return a copy that changes by itself."""
        return Free(cluster, self.of_host.copy())

    def take(self, placement: Placement) -> None:
        """Give accelerators to a job."""
        self._change(placement.hosts, -placement.taken)

    def give(self, placement: Placement) -> None:
        """Take a job's accelerators back."""
        self._change(placement.hosts, placement.taken)

    def _change(self, hosts: Integers, by: Integers) -> None:
        before = self.of_host[hosts]
        after = before + by
        if after.min() < 0 or after.max() > self.per_host:
            raise AssertionError("a host has given more accelerators than it has, or got back more than it gave")
        self.of_host[hosts] = after
        for low, high in zip(before.tolist(), after.tolist(), strict=True):
            self.by_count[low] -= 1
            self.by_count[high] += 1
        self.total += int(by.sum())

    def may_hold(self, need: Need) -> bool:
        """Return whether the cluster as a whole has enough; which a single domain may still lack."""
        if self.total < need.accelerators:
            return False
        if need.is_loose:
            return True
        spare = self.by_count[self.per_host] - need.whole
        if spare < 0 or not need.rest:
            return spare >= 0
        return spare > 0 or any(self.by_count[need.rest : self.per_host])


class Room:
    """How much of a need each host and each domain can hold, for one choice of a placement.

    `units` are what a job counts by host: whole hosts, places for itself if it lies within a host, or accelerators.
    """

    def __init__(self, cluster: Cluster, free: Integers, need: Need) -> None:
        self.cluster, self.free, self.need = cluster, free, need
        if need.is_loose:
            self.units, self.count = free, need.accelerators
        elif need.whole:
            self.units, self.count = (free == cluster.accelerators_per_host).astype(np.int64), need.whole
        else:
            self.units, self.count = free // need.rest, 1

    @cached_property
    def _partial(self) -> Integers:
        """Hosts that could give the rest next to whole ones, as 1."""
        return ((self.free >= self.need.rest) & (self.free < self.cluster.accelerators_per_host)).astype(np.int64)

    def of_domains(self, level: Level) -> Integers:
        """Return the units of each domain."""
        return _sums(level, self.units)

    def fits(self, level: Level) -> Integers:
        """Return the numbers of the domains that can hold the need, in ascending order."""
        units = self.of_domains(level)
        enough = units >= self.count
        if self.need.whole and self.need.rest:
            enough &= (units > self.count) | (_sums(level, self._partial) > 0)
        return np.flatnonzero(enough)

    def placement(self, ordered: Integers) -> Placement:
        """Return the placement on the first hosts of an order that holds enough, and the rest near them."""
        need, per_host = self.need, self.cluster.accelerators_per_host
        if need.is_loose:
            given = np.cumsum(self.free[ordered])
            last = int(np.searchsorted(given, need.accelerators))
            hosts = ordered[: last + 1]
            taken = self.free[hosts].copy()
            taken[-1] -= int(given[last]) - need.accelerators
            return Placement(hosts, taken)
        if not need.whole:
            return Placement(ordered[:1].copy(), np.array([need.rest]))
        hosts = ordered[: need.whole]
        taken = np.full(need.whole, per_host)
        if need.rest:
            hosts = np.append(hosts, self._host_for_rest(hosts))
            taken = np.append(taken, need.rest)
        return Placement(hosts.copy(), taken)

    def _host_for_rest(self, chosen: Integers) -> int:
        """Return the fullest host that can give the rest, in the domain of the last host if possible."""
        able = self.free >= self.need.rest
        able[chosen] = False
        for level in self.cluster.levels:
            near = np.flatnonzero(able & (level.of_host == level.of_host[chosen[-1]]))
            if len(near):
                return int(near[np.argmin(self.free[near])])
        raise AssertionError("no host can give the rest, although the domain fits")


def _sums(level: Level, values: Integers) -> Integers:
    return np.bincount(level.of_host, weights=values, minlength=len(level.domains)).astype(np.int64)
