"""A cluster as schedulers see it: hosts with accelerators, and the domains of several levels that they lie in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from weft.errors import BadInputError
from weft.quantities.arrays import Integers
from weft.scenario.schedule import MOST_ACCELERATORS
from weft.topologies import FabricSpec

LEAF, GROUP, WHOLE = "leaf", "group", "cluster"
"""Names of a fabric's levels, from the lowest on."""


@dataclass(frozen=True)
class Level:
    """A level of a cluster: the name of each domain, and by host the number of its domain."""

    name: str
    domains: tuple[str, ...]
    of_host: Integers

    @cached_property
    def sizes(self) -> Integers:
        """Hosts of each domain."""
        return np.bincount(self.of_host, minlength=len(self.domains))


@dataclass(frozen=True)
class Cluster:
    """Hosts and levels, the lowest first. No job spans domains of the last level.

    Attributes:
        ranks: for a fabric, the ranks of each host; empty for a cluster that a file describes.
        notes: sentences on what a file's reader assumed.
    """

    hosts: tuple[str, ...]
    accelerators_per_host: int
    levels: tuple[Level, ...]
    ranks: tuple[tuple[int, ...], ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.accelerators > MOST_ACCELERATORS:
            raise BadInputError(f"{self.accelerators:,} accelerators", valid=f"up to {MOST_ACCELERATORS:,}")

    @property
    def accelerators(self) -> int:
        """All of the cluster's."""
        return len(self.hosts) * self.accelerators_per_host

    @property
    def top(self) -> Level:
        """The level of which no job spans several domains."""
        return self.levels[-1]

    @property
    def largest_job(self) -> int:
        """Accelerators of the largest job that can ever start."""
        return int(self.top.sizes.max()) * self.accelerators_per_host

    def fewest_leaves(self, accelerators: int) -> int:
        """Return the fewest domains of the lowest level that could hold a job."""
        hosts = -(-accelerators // self.accelerators_per_host)
        return int(np.searchsorted(self._hosts_of_leaves, hosts)) + 1

    @cached_property
    def _hosts_of_leaves(self) -> Integers:
        """Hosts of the largest leaf, of the two largest, and so on."""
        return np.cumsum(np.sort(self.levels[0].sizes)[::-1])

    def level_number(self, name: str | None) -> int:
        """Return the number of the level with this name; 0, the lowest, for None. Raises BadInputError."""
        names = [level.name for level in self.levels]
        if name is None:
            return 0
        if name not in names:
            raise BadInputError(f"the cluster has no level {name!r}", place="schedule.level", valid=names)
        return names.index(name)


def level_of(name: str, keys: Sequence[Hashable], shown: Mapping[Hashable, str] | None = None) -> Level:
    """Return a level by the key of each host's domain; domains are numbered in order of their first hosts."""
    numbers: dict[Hashable, int] = {}
    of_host = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    return Level(name, tuple((shown or {}).get(key, str(key)) for key in numbers), of_host)


def cluster_of_fabric(fabric: FabricSpec, accelerators_per_host: int | None = None) -> Cluster:
    """Return a fabric as a cluster. Hosts lie in one leaf if their ranks are on the same switches in plane 0.

    So a block of leaves that the rails of some hosts share counts as one. Spare hosts take no jobs.

    Raises:
        BadInputError: `accelerators_per_host` is no multiple of a host's ranks, or there are too many.
    """
    per_host = accelerators_per_host or fabric.ranks_per_host
    if per_host % fabric.ranks_per_host:
        raise BadInputError(
            f"{per_host}, of hosts of {fabric.ranks_per_host} ranks",
            place="schedule.accelerators_per_host",
            valid="a multiple of them",
        )
    numbers = fabric.host_numbers()
    ranks: list[list[int]] = [[] for _ in range(max(numbers) + 1)]
    for rank, number in enumerate(numbers):
        ranks[number].append(rank)
    leaves = [tuple(dict.fromkeys(fabric.hosts[rank].nics[0].switch for rank in of_host)) for of_host in ranks]
    levels = [level_of(LEAF, leaves, {key: "+".join(key) for key in leaves})]
    groups = [fabric.switch(of_host[0]).group for of_host in leaves]
    if len(set(groups)) > 1 and levels[0].sizes.max() < len(ranks):
        levels.append(level_of(GROUP, groups))
    levels.append(level_of(WHOLE, [WHOLE] * len(ranks)))
    first = [
        "+".join(fabric.hosts[rank].name for rank in dict.fromkeys((of_host[0], of_host[-1]))) for of_host in ranks
    ]
    return Cluster(tuple(first), per_host, tuple(levels), tuple(map(tuple, ranks)))
