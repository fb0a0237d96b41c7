"""Makes the result of a finished job of remote reads, with closed forms for comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft.jobs.remote_memory import RemoteReadJob, RemoteReads
from weft.quantities.units import PS_PER_S
from weft.recording.ideal_times import READ_REQUEST, READ_RESPONSE
from weft.recording.operations import operations_table
from weft.results.latencies import latencies_of
from weft.results.remote_memory import RemoteMemoryResult
from weft.run.jobs import JobRun
from weft.run.message_times import MessageTimes, ServiceNetwork, Way, read_ps

if TYPE_CHECKING:
    from weft.run.fabric import Fabric


class RemoteReadTimes:
    """Closed forms for reads between clients and memories, both ranks of a fabric."""

    def __init__(self, fabric: Fabric, clients: Sequence[int], memories: Sequence[int]) -> None:
        self._network = ServiceNetwork(fabric.topology, fabric.options, clients, memories)

    def busiest_memory_ps(self, size_bytes: int) -> float:
        """Return how long a response to each client occupies the busiest memory's links.

        They are its links to the fabric, all of them, or its port within the host.
        """
        return self._network.busiest_server_ps(lambda way: _response_ps(size_bytes, way))

    def busiest_client_ps(self, size_bytes: int) -> float:
        """Return how long a response from each memory occupies the busiest client's links."""
        return self._network.busiest_client_ps(lambda way: _response_ps(size_bytes, way))

    def unloaded_ps(self, described: RemoteReads) -> float | None:
        """Return the latency of a single read, averaged over all pairs of ranks; None with cut-through switching."""
        if not self._network.has_round_trips:
            return None
        return described.access_ps + self._network.mean(lambda way: _network_ps(described, way))

    def expected_mean_ps(self, described: RemoteReads, load: float | None) -> float | None:
        """Return the mean latency of reads at random times, in ps; None if the closed form does not hold.

        Requests pass a link to the memory, responses a link from it: two queues in tandem with constant service times.
        The total wait is as long as in the slower queue alone (Friedman 1965, "Reduction methods for tandem queuing
        systems"), which is M/D/1: load · service / (2 · (1 - load)). With several memories responses also queue at
        clients, and with slower links between switches also there. Within a host responses take another link.
        """
        way = self._network.first
        if way is None or load is None or described.interval_ps is None or load >= 1 or described.memories > 1:
            return None
        if self._network.planes > 1 or self._network.has_slower_links:
            return None
        if not _waits_for_responses(described.size_bytes, way):
            return None
        alone_ps = self.unloaded_ps(described)
        if alone_ps is None:
            return None
        waiting_ps = load * _response_ps(described.size_bytes, way) / (2 * (1 - load))
        # Reads must not wait for other reads between the same two ranks.
        longest_ps = max(self._network.means(lambda way: _network_ps(described, way))) + waiting_ps
        under_way = longest_ps / described.interval_ps / described.memories
        is_held_back = under_way > self._network.reads_of_a_pair(described.size_bytes) / 2
        return None if is_held_back else alone_ps + waiting_ps

    def bounds_bytes_per_s(self, described: RemoteReads) -> dict[str, float]:
        """Return the upper bounds on throughput from links and from outstanding reads.

        The links' bound is left out if a client shares a host with a memory.
        """
        size_bytes = described.size_bytes
        bounds = {}
        if (first := self._network.first) is not None:
            ends = min(described.clients, described.memories)
            bounds["link"] = ends * size_bytes * PS_PER_S / _response_ps(size_bytes, first)
        if not self._network.has_round_trips:
            return bounds
        # A queue pair counts a read until its response arrives, the client also through the memory's access time.
        limit = self._network.reads_of_a_pair(size_bytes) * described.memories
        reads_per_ps = [limit * each for each in self._network.means(lambda way: 1 / _network_ps(described, way))]
        if described.interval_ps is None:
            under_way = min(described.outstanding, described.reads)
            by_client = self._network.means(lambda way: 1 / (described.access_ps + _network_ps(described, way)))
            reads_per_ps = [min(each, under_way * own) for each, own in zip(reads_per_ps, by_client, strict=True)]
        outstanding = size_bytes * PS_PER_S * sum(reads_per_ps)
        return bounds if math.isinf(outstanding) else bounds | {"outstanding": outstanding}


def _response_ps(size_bytes: int, way: Way) -> float:
    """Return how long a read's response occupies a memory's links of a path, all of them together."""
    return way.wire_bytes(size_bytes, READ_RESPONSE) * 8 * PS_PER_S / way.nic_rate_bps


def _waits_for_responses(size_bytes: int, way: MessageTimes) -> bool:
    """Return whether the slowest queue holds responses, of one packet, at the memory's link.

    The other direction carries requests and acknowledgements of responses.
    """
    to_memory = way.wire_bytes(0, READ_REQUEST) + way.acknowledgement_bytes
    return size_bytes <= way.framing.mtu_bytes and way.wire_bytes(size_bytes, READ_RESPONSE) >= to_memory


def _network_ps(described: RemoteReads, way: Way) -> int:
    # Links within hosts may have no latency, and a few bytes take them less than half a picosecond.
    return max(1, read_ps(described.size_bytes, way))


def remote_memory_result(
    made: RemoteReadJob, described: RemoteReads, load: float | None, closed: RemoteReadTimes, ran: JobRun
) -> RemoteMemoryResult:
    """Return the result of a job's reads."""
    alone_ps = closed.unloaded_ps(described)
    return RemoteMemoryResult(
        name=made.job.name,
        clients=described.clients,
        memory_ranks=described.memories,
        reads=described.clients * described.reads,
        size_bytes=described.size_bytes,
        time_ps=made.end_ps(ran.times),
        latency_ps=latencies_of(made.latencies_ps(ran.times)),
        unloaded_ps=None if alone_ps is None else round(alone_ps),
        expected_mean_ps=closed.expected_mean_ps(described, load),
        bounds_bytes_per_s=closed.bounds_bytes_per_s(described),
        retransmissions=ran.retransmissions,
        records=operations_table(made.job, ran.times),
    )
