"""Small RDMA READs of remote memory, as a processor's loads reach memory pooled behind CXL.

The rank with the memory has no operations. A client keeps a number of reads outstanding, or begins them at times of a
Poisson process, independently of completions.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.quantities import portable_math
from weft.quantities.arrays import Integers
from weft.quantities.readable import format_time
from weft.traffic.jobs import NO_STREAM, Job, OperationsBuilder, OperationsError, RankPart, RankTimes
from weft.traffic.jobs.operations import MAX_DURATION_PS
from weft.traffic.jobs.times import ready_ps

READ = "read"
"""Traffic category of the reads."""
MAX_READS = 500_000
"""Most reads of all clients together."""


@dataclass(frozen=True)
class RemoteReads:
    """The reads of all clients.

    Attributes:
        clients: number of clients.
        memories: number of ranks with memory, over which reads are spread.
        reads: reads of each client.
        size_bytes: size of each read.
        access_ps: access time of the memory itself, added to each read.
        outstanding: concurrent reads of a client, without `interval_ps`.
        interval_ps: mean time between reads of a client; None begins one when another has ended.
        seed: random seed of the times and memories, with `interval_ps`.
    """

    clients: int
    memories: int
    reads: int
    size_bytes: int
    access_ps: int = 0
    outstanding: int = 1
    interval_ps: float | None = None
    seed: int = 1


@dataclass(frozen=True, eq=False)
class RemoteReadJob:
    """A job of reads; clients are its first ranks, the memories its last.

    Attributes:
        job: READs, timers, and computations for the memory's access time.
        reads: operations that read, by client.
        ends: operations that end each read, by client.
    """

    job: Job
    reads: Sequence[Integers]
    ends: Sequence[Integers]

    def latencies_ps(self, times: Sequence[RankTimes]) -> Integers:
        """Return how long each read of all clients took, from when it could begin."""
        return np.concatenate(
            [
                times[client].finished_ps[ends] - ready_ps(self.job.parts[client].operations, times[client])[reads]
                for client, (reads, ends) in enumerate(zip(self.reads, self.ends, strict=True))
            ]
        )

    def end_ps(self, times: Sequence[RankTimes]) -> int:
        """Return when the last read ended."""
        return max(int(each.finished_ps[ends].max()) for each, ends in zip(times, self.ends, strict=False))


def last_arrival_ps(described: RemoteReads) -> int:
    """Return when the last read begins; 0 if reads wait for others. Raises OperationsError for too late a time."""
    if described.interval_ps is None:
        return 0
    return max(_drawn(described, client)[0][-1] for client in range(described.clients))


def remote_read_job(name: str, described: RemoteReads) -> RemoteReadJob:
    """Return the job. Raises OperationsError if reads begin too late for times in ps."""
    memories = tuple(range(described.clients, described.clients + described.memories))
    parts, reads, ends = [], [], []
    for client in range(described.clients):
        builder = OperationsBuilder()
        begun, ended = _add_reads(builder, described, client)
        parts.append(RankPart(builder.build(), memories))
        reads.append(np.array(begun, np.int64))
        ends.append(np.array(ended, np.int64))
    nothing = RankPart(OperationsBuilder().build())
    return RemoteReadJob(Job(name, (*parts, *[nothing] * described.memories)), reads, ends)


def _add_reads(builder: OperationsBuilder, described: RemoteReads, client: int) -> tuple[array[int], array[int]]:
    """Add a client's reads; return the operations that read, and the ones that end each read."""
    begun, ended = array("q"), array("q")
    is_open = described.interval_ps is not None
    times_ps, memories = _drawn(described, client)
    for number in range(described.reads):
        after = ended[number - described.outstanding : number - described.outstanding + 1]
        if is_open:
            after = array("q", [builder.timer(times_ps[number], category="arrival")])
        elif number < described.outstanding:
            after = array("q")
        memory = memories[number] % described.memories
        begun.append(builder.read(memory, described.size_bytes, after=after, category=READ))
        ended.append(begun[-1])
        if described.access_ps:
            ended[-1] = builder.compute(
                described.access_ps, stream=NO_STREAM, after=begun[-1:], category="memory access"
            )
    return begun, ended


def _drawn(described: RemoteReads, client: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return when a client's reads begin and which memory each reads. Raises OperationsError for too late a time."""
    if described.interval_ps is None:
        return [0] * described.reads, range(client, client + described.reads)
    generator = np.random.default_rng([described.seed, client])
    times_ps = np.cumsum(portable_math.exponential(generator, described.reads) * described.interval_ps)
    # Written so that it refuses NaN, too.
    if not times_ps[-1] <= MAX_DURATION_PS:
        raise OperationsError(
            f"client {client} begins its last read more than {format_time(MAX_DURATION_PS)} after the start",
            valid="a larger load, or fewer reads",
        )
    memories = generator.integers(0, described.memories, described.reads)
    return times_ps.astype(np.int64).tolist(), memories.tolist()
