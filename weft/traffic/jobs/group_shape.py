"""How the ranks of a group lie on hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class GroupShape(NamedTuple):
    """The fields of `CollectiveSpec` that say which ranks share a host."""

    ranks_per_host: int = 1
    rank_stride: int = 1
    hosts: tuple[int, ...] = ()


def group_shape(hosts: Sequence[int]) -> GroupShape:
    """Return the shape of a group, given the host of each of its ranks.

    Hosts with as many ranks each, at equal distances, are described by numbers alone; others rank by rank, numbered in
    order of their first rank, so that groups that lie alike have the same shape.
    """
    counts = Counter(hosts)
    size = counts[hosts[0]]
    if len(counts) == len(hosts):
        return GroupShape()
    if set(counts.values()) == {size}:
        stride = hosts.index(hosts[0], 1)
        block = size * stride
        if len(hosts) % block == 0 and all(
            host == hosts[rank - rank % block + rank % stride] for rank, host in enumerate(hosts)
        ):
            return GroupShape(size, stride)
    numbers = {host: number for number, host in enumerate(counts)}
    return GroupShape(hosts=tuple(numbers[host] for host in hosts))
