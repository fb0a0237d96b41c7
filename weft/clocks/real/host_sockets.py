"""Sockets between the processes of a host's ranks, which stand for the links inside the host."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Mapping
from typing import Self

from weft.topologies import FabricSpec
from weft.traffic.host_config import ScaleUpConfig


class HostSockets:
    """A pair of sockets for each two ranks of a host. Use as a context manager while the processes are started.

    They are passed on as descriptors, so they need no names and end with the processes. An end is held no longer than
    until its process has it, because a large lab has thousands.
    """

    def __init__(self, fabric: FabricSpec) -> None:
        self._fabric = fabric
        self._numbers: dict[int, dict[int, int]] = {}
        self._held: defaultdict[int, dict[int, socket.socket]] = defaultdict(dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for rank in self._held:
            self.passed_on(rank)

    def of(self, rank: int) -> Mapping[int, int]:
        """Return the descriptors of a rank, by the rank at the other end; none where hosts have one rank."""
        if rank not in self._numbers:
            held = self._held[rank]
            for peer in ranks_of_host(self._fabric, rank):
                if peer != rank and peer not in held:
                    held[peer], self._held[peer][rank] = socket.socketpair()
            self._numbers[rank] = {peer: end.fileno() for peer, end in held.items()}
        return self._numbers[rank]

    def passed_on(self, rank: int) -> None:
        """Close a rank's ends, which its process has."""
        for end in self._held[rank].values():
            end.close()


def ranks_of_host(fabric: FabricSpec, rank: int) -> tuple[int, ...]:
    """Return the ranks of a rank's host, in order."""
    if fabric.scale_up is None:
        return (rank,)
    return next(ranks for ranks in fabric.scale_up.hosts(len(fabric.hosts)) if rank in ranks)


def scale_up_config(fabric: FabricSpec, rank: int, sockets: Mapping[int, int]) -> ScaleUpConfig | None:
    """Return a rank's links inside its host, None where hosts have one rank."""
    links = fabric.scale_up
    if links is None:
        return None
    return ScaleUpConfig(ranks_of_host(fabric, rank), links.rate_bps, links.latency_ps, sockets)
