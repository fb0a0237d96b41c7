"""Remote memory: many small reads of other ranks' memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from weft.clocks.lab import Progress
from weft.errors import BadInputError
from weft.jobs.remote_memory import (
    MAX_READS,
    READ,
    RemoteReadJob,
    RemoteReads,
    last_arrival_ps,
    remote_read_job,
)
from weft.quantities.definitions import SIZE, ShortTime, number, whole
from weft.quantities.readable import counted, format_size
from weft.quantities.units import PS_PER_S
from weft.results.remote_memory import REMOTE_MEMORY, RemoteMemoryResult
from weft.run.jobs import JobRun
from weft.run.remote_memory_results import RemoteReadTimes, remote_memory_result
from weft.run.service_ranks import FabricRank, check_service_paths, check_service_ranks, clients_of
from weft.run.task import Task
from weft.run.traffic_kinds.base import JobItem
from weft.scenario.places import KeyProblem
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.jobs import OperationsError

if TYPE_CHECKING:
    from weft.run.fabric import Fabric


_ROUNDING = 1e-9
"""Relative error that the ratio of two occupancies may have."""


class RemoteMemoryTraffic(JobItem):
    """RDMA READs of the memory of passive ranks. Packets carry lengths in place of data."""

    kind = "remote_memory"
    results = REMOTE_MEMORY
    operations = ("READ",)

    remote_memory: list[FabricRank] = Field(min_length=1)
    """The fabric's ranks with the memory; reads are spread over them."""
    clients: list[FabricRank] | None = Field(None, min_length=1)
    """The fabric's ranks that read; by default all others."""
    size: Annotated[int, SIZE.between(1, 2**20, example="64B")] = 64
    """Size of a read."""
    reads: Annotated[int, whole(1, 100_000)] = 1000
    """Reads of each client."""
    outstanding: Annotated[int, whole(1, 4096)] = 16
    """Outstanding reads of a client, without `load`; between two ranks each plane carries up to
    `transport.max_outstanding_reads` at once."""
    load: Annotated[float, number(0, 1, above=True, example="0.5")] | None = None
    """In place of `outstanding`: reads begin at random times, at a rate that loads the memories' links with responses
    to this share, at the busiest memory. The clients' links must carry as much."""
    access_latency: ShortTime = 0
    """Access time of the memory itself, added to each read."""
    timeout: Annotated[int, whole(1, 10**6)] = 3600
    """Seconds, real or of the virtual clock, after which the run fails, in addition to the start of the last read."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that the ranks exist and are distinct, the number of reads, and the load."""
        clients = check_service_ranks(fabric, self.remote_memory, self.clients, None, key, "remote_memory")
        if clients * self.reads > MAX_READS:
            raise KeyProblem(
                f"{key}.reads", f"{self.reads} of {clients} clients", valid=f"up to {MAX_READS // clients}"
            )
        if self.load is not None and "outstanding" in self.model_fields_set:
            raise KeyProblem(f"{key}.outstanding", "excludes load", valid="one of them")
        # On hosts of several ranks it depends on who shares a host; see `_check_clients_links`.
        memories = len(self.remote_memory)
        if self.load is not None and fabric.ranks_per_host is None and self.load * memories > clients:
            raise KeyProblem(f"{key}.load", self._too_much(clients), valid=f"up to {clients / memories:.3g}")
        self.check_kinds((READ,), key)

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that clients reach all memories."""
        check_service_paths(topology, self._clients(topology), self.remote_memory, key)

    @property
    def title(self) -> str:
        """Size and rate of reads, in words."""
        how = f"{self.outstanding} outstanding" if self.load is None else f"at a load of {self.load:g}"
        return f"{format_size(self.size)}, {how}"

    def prepare_task(self, ranks: int, seed: int) -> Callable[[Fabric], Task[RemoteMemoryResult]]:
        """Return a function that makes the task; there is no data to prepare."""
        return self._task

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run all reads."""
        progress(f"remote memory: {self.title}, {counted(self.reads, 'read')} of each client")
        fabric.run_together([self._task(fabric)], self.time_limit_s(fabric))

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return `timeout` plus the start of the last read and a client's memory access times in sequence."""
        closed = RemoteReadTimes(fabric, self._clients(fabric.topology), self.remote_memory)
        beyond_ps = last_arrival_ps(self._described(fabric, closed)) + self.reads * self.access_latency
        return self.timeout + beyond_ps / PS_PER_S * fabric.options.dilation

    def _clients(self, topology: FabricSpec) -> list[int]:
        return clients_of(topology.rank_count, self.remote_memory, self.clients)

    def _described(self, fabric: Fabric, closed: RemoteReadTimes) -> RemoteReads:
        clients = self._clients(fabric.topology)
        return RemoteReads(
            clients=len(clients),
            memories=len(self.remote_memory),
            reads=self.reads,
            size_bytes=self.size,
            access_ps=self.access_latency,
            outstanding=self.outstanding,
            interval_ps=self._interval_ps(closed),
            seed=fabric.options.seed,
        )

    def _task(self, fabric: Fabric) -> Task[RemoteMemoryResult]:
        clients = self._clients(fabric.topology)
        closed = RemoteReadTimes(fabric, clients, self.remote_memory)
        self._check_clients_links(closed, len(clients))
        described = self._described(fabric, closed)
        try:
            made: RemoteReadJob = remote_read_job(self.title, described)
        except OperationsError as error:
            raise BadInputError(f"{self.load:g}: {error}", place="remote_memory.load") from None

        def result(ran: JobRun) -> RemoteMemoryResult:
            return remote_memory_result(made, described, self.load, closed, ran)

        ranks = [*clients, *self.remote_memory]
        return fabric.tasks.job(self.with_classes(made.job), ranks).noted(REMOTE_MEMORY, result)

    def _interval_ps(self, closed: RemoteReadTimes) -> float | None:
        """Return the mean time between reads of a client; None without a load."""
        if self.load is None:
            return None
        return closed.busiest_memory_ps(self.size) / (self.load * len(self.remote_memory))

    def _too_much(self, clients: int) -> str:
        memories = len(self.remote_memory)
        return (
            f"{self.load:g} of what the links of {memories} memories carry is more than "
            f"{counted(clients, 'client')} can take"
        )

    def _check_clients_links(self, closed: RemoteReadTimes, clients: int) -> None:
        """Raise BadInputError for a load beyond the capacity of a client's links."""
        most = closed.busiest_memory_ps(self.size) / closed.busiest_client_ps(self.size)
        if self.load is not None and self.load > most * (1 + _ROUNDING):
            raise BadInputError(self._too_much(clients), place="remote_memory.load", valid=f"up to {most:.3g}")
