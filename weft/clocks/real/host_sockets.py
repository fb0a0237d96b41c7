"""Sockets between the processes of a host's ranks, which stand for the links inside the host."""

from __future__ import annotations

import contextlib
import itertools
import socket
from collections import defaultdict
from collections.abc import Mapping
from typing import Self

from weft.topologies import FabricSpec
from weft.traffic.host_config import ScaleUpConfig


class HostSockets:
    """A pair of sockets for each two ranks of a host. Use as a context manager, until the processes have theirs.

    They are passed on as descriptors, so they need no names and end with the processes.
    """

    def __init__(self, fabric: FabricSpec) -> None:
        self._fabric = fabric
        self._of: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Self:
        if self._fabric.scale_up is None:
            return self
        with contextlib.ExitStack() as stack:
            for ranks in self._fabric.scale_up.hosts(len(self._fabric.hosts)):
                for first, second in itertools.combinations(ranks, 2):
                    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
                    for rank, peer, end in ((first, second, ends[0]), (second, first, ends[1])):
                        self._of[rank][peer] = stack.enter_context(end).fileno()
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def of(self, rank: int) -> Mapping[int, int]:
        """Return the descriptors of a rank, by the rank at the other end."""
        return self._of.get(rank, {})


def scale_up_config(fabric: FabricSpec, rank: int, sockets: Mapping[int, int]) -> ScaleUpConfig | None:
    """Return a rank's links inside its host, None where hosts have one rank."""
    links = fabric.scale_up
    if links is None:
        return None
    ranks = next(ranks for ranks in links.hosts(len(fabric.hosts)) if rank in ranks)
    return ScaleUpConfig(ranks, links.rate_bps, links.latency_ps, sockets)
