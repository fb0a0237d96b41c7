"""Barriers: ranks wait for each other, through switches or by messages between hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from weft.clocks.lab import Progress
from weft.jobs.host_barriers import host_barrier_job
from weft.quantities.definitions import whole
from weft.quantities.readable import counted
from weft.results.synchronisation import BARRIERS
from weft.run.service_ranks import FabricRank, check_ranks_of_group
from weft.run.synchronisation import IN_NETWORK, barrier_task, host_barrier_task
from weft.run.traffic_kinds.base import TrafficItem
from weft.scenario.options import Service
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import NOTHING
from weft.topologies.kinds.base import TopologySection

if TYPE_CHECKING:
    from weft.run.fabric import Fabric

BarrierAlgorithm = Literal["in_network", "dissemination", "ring"]


class BarrierTraffic(TrafficItem):
    """Ranks pass consecutive barriers."""

    kind = "barrier"
    results: ClassVar = BARRIERS

    barrier: Annotated[int, whole(1, 100_000)]
    """Number of barriers."""
    algorithms: list[BarrierAlgorithm] = Field(["in_network"], min_length=1)
    """Algorithms, run one after the other. `in_network`: switches count ranks and release them, which needs
    `synchronisation` in `services`. `dissemination`: in step k each rank notifies the rank 2^k further on. `ring`: a
    token goes round twice."""
    ranks: list[FabricRank] | None = Field(None, min_length=1)
    """The fabric's ranks that wait for each other; by default all."""

    def posted_operations(self, key: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield what its algorithms post: nothing where switches alone count ranks."""
        yield key, NOTHING if set(self.algorithms) == {IN_NETWORK} else self.operations

    @property
    def services(self) -> tuple[Service, ...]:
        """Services that switches must have."""
        return ("synchronisation",) if IN_NETWORK in self.algorithms else ()

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that the ranks exist and are distinct, and that host algorithms have at least two."""
        ranks = check_ranks_of_group(fabric, self.ranks, key)
        if ranks < 2 and set(self.algorithms) != {IN_NETWORK}:
            raise KeyProblem(f"{key}.algorithms", "a single rank sends no messages", valid="in_network")

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run each algorithm."""
        ranks = self.ranks or list(range(fabric.topology.rank_count))
        for algorithm in self.algorithms:
            progress(f"{counted(self.barrier, 'barrier')} of {counted(len(ranks), 'rank')}, {algorithm}")
            if algorithm == IN_NETWORK:
                task = barrier_task(fabric, ranks, self.barrier)
            else:
                task = host_barrier_task(fabric, ranks, host_barrier_job(algorithm, len(ranks), self.barrier))
            fabric.run_together([task])
