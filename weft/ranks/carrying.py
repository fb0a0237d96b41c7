"""Carries collectives of ranks over a fabric, and says when each rank had its result."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import CheckFailedError
from weft.quantities.units import PS_PER_S
from weft.ranks.calls import Call
from weft.ranks.meeting import Met
from weft.run.collectives import CollectiveRequest
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.collectives.registry import AUTO

if TYPE_CHECKING:
    from weft.run.fabric import Fabric


@dataclass(frozen=True)
class Carried:
    """A collective that was carried: each rank's result and when it had that, by the ranks' clocks."""

    began_ps: int
    results: list[NDArray[Any]]
    ended_ps: list[int]


class Carrier:
    """Runs collectives one after the other, each as if the fabric carried nothing else.

    A collective begins when the last rank of its group has called it, and the one before it in its stream has ended
    there. Under the virtual clock the fabric's own clock goes on to that moment first, so that what is scheduled to
    happen to the fabric happens between the same calls.
    """

    def __init__(self, fabric: Fabric, algorithm: str) -> None:
        self._fabric, self._algorithm = fabric, algorithm
        self._since_ps = fabric.hosts.now_ps()
        # By stream and group: when its last collective has ended, of each rank.
        self._ended_ps: dict[tuple[str, tuple[int, ...]], int] = defaultdict(int)

    def carry(self, met: Met, timeout_s: float) -> Carried:
        """Carry a collective that all ranks have called. Raises WeftError."""
        call, count = met.call, len(met.call.ranks)
        # Calls of one stream follow each other, as on a GPU; streams of other groups do not wait for this one.
        stream = call.stream, call.ranks
        began_ps = max(self._ended_ps[stream], *met.issued_ps.values())
        data = [met.data[place] for place in range(count)]
        # A group of one has nobody to exchange with, and no collective is defined for it.
        if count == 1:
            return Carried(began_ps, data, [began_ps])
        self._advance(began_ps)
        results, took_ps = self._run(call, data, timeout_s)
        ended_ps = [began_ps + each for each in took_ps]
        self._ended_ps[stream] = max(ended_ps)
        return Carried(began_ps, results, ended_ps)

    def _run(self, call: Call, data: list[NDArray[Any]], timeout_s: float) -> tuple[list[NDArray[Any]], list[int]]:
        """Return each rank's flat result, and how long after the common start it had it."""
        is_whole = call.ranks == tuple(range(self._fabric.topology.rank_count))
        names = [each.name for each in COLLECTIVE_KINDS[call.collective].algorithms]
        # What only passes between two needs no tree of switches.
        is_message = call.collective == "broadcast" and len(call.ranks) == 2
        is_known = not is_message and self._algorithm in (AUTO, *names)
        algorithm = self._algorithm if is_known else names[0]
        request = CollectiveRequest(
            call.collective,
            data,
            algorithm,
            operation=call.operation,
            root=call.root,
            ranks=None if is_whole else call.ranks,
        )
        task = self._fabric.tasks.collective(request)
        [(figures, ended)] = self._fabric.run_together([task.with_run()], timeout_s)
        if not figures.ok:
            raise CheckFailedError(f"{figures.wrong} elements are not what NumPy computes")
        # The fabric's clock is not the ranks': only the times since the common start are.
        start_ps = min(ended.outcome.started_ps)
        results = [np.ascontiguousarray(each).reshape(-1) for each in task.arrays(ended.outputs)]
        return results, [each - start_ps for each in ended.outcome.finished_ps]

    def _advance(self, until_ps: int) -> None:
        """Let the fabric's clock go on until it shows as much as a rank's."""
        ahead_ps = until_ps - (self._fabric.hosts.now_ps() - self._since_ps)
        if self._fabric.options.clock == "virtual" and ahead_ps > 0:
            self._fabric.lab.controller.call(asyncio.sleep(ahead_ps / PS_PER_S))
