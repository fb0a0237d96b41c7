"""A policy, as the rest of `weft.scheduling` uses it, and steps that policies share."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from weft.quantities.arrays import Integers
from weft.scenario.schedule import Order
from weft.scheduling.cluster import Level
from weft.scheduling.placement import Placement, Room

_MANY = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Wish:
    """Requests of a scenario for every choice.

    Attributes:
        level: number of the level in which a job shall lie.
        is_required: whether it waits until it fits there, if a domain of that level is large enough.
        random: draws what a policy chooses at random.
    """

    level: int
    is_required: bool
    random: np.random.Generator


@dataclass(frozen=True)
class Policy:
    """How jobs are placed.

    Attributes:
        name: in scenarios.
        summary: what it does, in a few words.
        order: of jobs, unless a scenario gives one.
        choose: returns a placement, or None if the job has to wait.
        knows_topology: whether it looks at the cluster's levels, so that `level`, `required` and `patience` count.
    """

    name: str
    summary: str
    order: Order
    choose: Callable[[Room, Wish], Placement | None]
    knows_topology: bool = False


def hosts_in(room: Room, level: Level, domain: int) -> Integers:
    """Return the hosts of a domain that have room, in their order."""
    return np.flatnonzero((level.of_host == domain) & (room.units > 0))


def best_fit(units: Integers, domains: Integers, count: int) -> int:
    """Return the domain with the least units that suffice for `count`, the first of equal ones."""
    own = units[domains]
    return int(domains[np.argmin(np.where(own >= count, own, _MANY))])


def fewest_domains(room: Room, level: Level, hosts: Integers) -> list[int]:
    """Return domains among those of `hosts` that hold the need together, in the order of their choice.

    The largest come first, and the last is the one that fits best (Slurm's and Kueue's way to use few); of equal ones
    the first.
    """
    units = np.bincount(level.of_host[hosts], weights=room.units[hosts], minlength=len(level.domains))
    able = np.flatnonzero(units)
    able = able[np.argsort(units[able], kind="stable")]
    domains: list[int] = able.tolist()
    sizes: list[float] = units[able].tolist()
    left: float = room.count
    chosen = []
    while left > 0:
        # The first that suffices or, if none does, the first of the largest.
        at = bisect_left(sizes, min(left, sizes[-1]))
        chosen.append(domains.pop(at))
        left -= sizes.pop(at)
    return chosen


def fullest_first(room: Room, hosts: Integers) -> Integers:
    """Return hosts in the order in which they are best used.

    For a job within a host, the fullest that has room comes first; for one that takes any accelerators, the emptiest,
    so that it lies on few hosts.
    """
    if room.need.is_loose:
        return hosts[np.argsort(-room.free[hosts], kind="stable")]
    return hosts if room.need.whole else hosts[np.argsort(room.free[hosts], kind="stable")]


def in_domains(room: Room, level: Level, hosts: Integers, domains: Iterable[int]) -> Integers:
    """Return the hosts that lie in some domains, domain by domain."""
    return np.concatenate([fullest_first(room, hosts[level.of_host[hosts] == domain]) for domain in domains])
