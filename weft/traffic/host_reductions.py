"""A host's part in aggregation jobs: a client of the engine for each job on each plane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft.engine import _core
from weft.traffic.answers import Contributed, StreamPositions
from weft.traffic.commands.aggregation import Membership, StreamPart

if TYPE_CHECKING:
    from weft.engine._core import AggregationStats
    from weft.traffic.host_config import HostConfig

_ERROR = "error"
_BACKOFF_LIMIT = 5
"""How often the time doubles after which a contribution is repeated."""


@dataclass(frozen=True)
class _Worker:
    """A client, and the executor's number for it; one that is stopped is not attached to the NIC."""

    client: _core.AggregationClient
    aggregator: int
    is_stopped: bool = False


REDUCTION_TOTALS = {
    "aggregation_retransmitted_packets": "retransmitted_packets",
    "aggregation_overflowed_packets": "overflowed_messages",
    "aggregation_repeated_messages": "repeated_messages",
}
"""Counters that are summed over all clients of a host, by the name of the sum."""


def _totals_of(client: _core.AggregationClient) -> dict[str, int]:
    counters = cast("Mapping[str, int]", client.stats())
    return {name: counters[counter] for name, counter in REDUCTION_TOTALS.items()}


def longest_repetition_ps(host: HostConfig) -> int:
    """Return the longest time after which a host repeats a contribution that has no result."""
    timeouts = (
        _core.retransmission_timeout_ps(
            nic.base_round_trip_ps, wall_clock_floor_ns=host.wall_clock_floor_ns, dilation=host.dilation
        )
        for nic in host.nics
    )
    return max(timeouts) << _BACKOFF_LIMIT


class HostReductions:
    """The jobs that a host has joined, by the number of the NIC (called plane here) and by name (`Membership.name`).

    A NIC tells the results of different jobs apart by their group address.
    """

    def __init__(self, nic: _core.Nic, executor: _core.ScheduleExecutor, planes: int) -> None:
        self._planes = planes
        self._left: Counter[str] = Counter()
        self._nic = nic
        self._executor = executor
        self._workers: dict[tuple[int, int], _Worker] = {}

    def join(self, membership: Membership, port: int, timeout_ps: int) -> None:
        """Take part in a job on a plane, in place of the job of that name there; `port` is the NIC's."""
        self.leave(membership.plane, membership.name)
        client = self.client(membership, port, timeout_ps)
        self._workers[membership.plane, membership.name] = _Worker(client, self._executor.add_aggregator(client))

    def client(self, membership: Membership, port: int, timeout_ps: int) -> _core.AggregationClient:
        """Return a client of the engine for a membership."""
        return _core.AggregationClient(
            self._nic,
            port,
            self._executor,
            job_id=membership.job_id,
            epoch=membership.epoch,
            q_key=membership.q_key,
            rank=membership.rank,
            rank_count=membership.worker_count,
            worker_rank=membership.worker_index,
            worker_numbers=list(membership.worker_numbers),
            slot_count=membership.slot_count,
            lane_count=membership.lane_count,
            destination_mac=membership.aggregation_mac,
            destination_ip=membership.aggregation_address,
            group_ip=membership.group_address,
            retransmission_timeout_ps=timeout_ps,
            timeout_backoff_limit=_BACKOFF_LIMIT,
            data_class=membership.traffic_class,
            rate_bps=membership.rate_bps,
        )

    def leave(self, plane: int, job_id: int) -> None:
        """Leave a job on a plane, if the host has joined it there."""
        worker = self._workers.pop((plane, job_id), None)
        if worker is not None:
            self._count(worker.client)
            self._executor.remove_aggregator(worker.aggregator)
            if not worker.is_stopped:
                self._nic.detach(worker.client)

    def _count(self, client: _core.AggregationClient) -> None:
        """Add what a client that goes has counted to the sums."""
        self._left.update(_totals_of(client))

    def stop(self, job_id: int) -> StreamPositions:
        """Stop sending and receiving for a job, and return where its streams stand."""
        streams = {key[0]: key for key in self._workers if key[1] == job_id}
        positions = []
        for key in streams.values():
            worker = self._workers[key]
            if not worker.is_stopped:
                self._nic.detach(worker.client)
                self._workers[key] = replace(worker, is_stopped=True)
            positions.append(worker.client.position())
        return StreamPositions(tuple(streams), *(zip(*positions, strict=True) if positions else ((), (), ())))

    def move(self, plane: int, job_id: int, first_message: int, client: _core.AggregationClient) -> None:
        """Have another client go on with a stream of a job at a message. Raises ValueError if it cannot."""
        before = self._stopped(plane, job_id)
        client.take_over(before, first_message)
        self._count(before)
        aggregator = self._workers[plane, job_id].aggregator
        self._executor.replace_aggregator(aggregator, client)
        self._workers[plane, job_id] = _Worker(client, aggregator)

    def leave_everywhere(self, job_ids: Iterable[int]) -> None:
        """Leave jobs on all planes."""
        for job_id in job_ids:
            for plane in range(self._planes):
                self.leave(plane, job_id)

    def write_contributions(self, part: StreamPart, path: str) -> Contributed:
        """Write what a stopped stream would send to a file. Raises ValueError if there is no such stream."""
        client = self._stopped(part.plane, part.job_id)
        lanes = client.contributions(part.first, part.end, part.operation.name.lower(), data_type=part.dtype.value)
        lanes.tofile(path)
        return Contributed(lanes.size)

    def read_results(self, part: StreamPart, path: str) -> None:
        """Take results of a stopped stream from a file. Raises ValueError if there is no such stream."""
        client = self._stopped(part.plane, part.job_id)
        results = np.fromfile(path, np.int32)
        client.take_results(part.first, part.end, part.operation.name.lower(), results, data_type=part.dtype.value)

    def end_messages(self, plane: int, job_id: int, end: int) -> None:
        """Complete what a stopped stream's messages complete. Raises ValueError if there is no such stream."""
        self._stopped(plane, job_id).skip_to(end)

    def _stopped(self, plane: int, job_id: int) -> _core.AggregationClient:
        worker = self._workers.get((plane, job_id))
        if worker is None or not worker.is_stopped:
            raise ValueError(f"job {job_id} on plane {plane} has not been stopped")
        return worker.client

    def joined(self, plane: int) -> list[int]:
        """Return the ids of the jobs that the host has joined on a plane."""
        return [job_id for number, job_id in self._workers if number == plane]

    def aggregators(self, job_ids: Sequence[int]) -> dict[int, int]:
        """Return the executor's numbers for jobs by tree (`CollectiveSpec.trees`): the first job's by plane."""
        return {
            plane + self._planes * job_ids.index(job): each.aggregator
            for (plane, job), each in self._workers.items()
            if job in job_ids
        }

    def stats(self, plane: int) -> AggregationStats | None:
        """Return the sums over the jobs of a plane, and the first error; None without a job."""
        found = [each.client.stats() for each in self._of_plane(plane)]
        if not found:
            return None
        first, *others = cast("list[dict[str, Any]]", found)
        sums = {name: value + sum(each[name] for each in others) for name, value in first.items() if name != _ERROR}
        errors = [each[_ERROR] for each in (first, *others) if each[_ERROR] != "success"]
        return cast("AggregationStats", {**sums, _ERROR: errors[0] if errors else "success"})

    def reset_stats(self) -> None:
        """Set all counters to zero."""
        self._left.clear()
        for worker in self._workers.values():
            worker.client.reset_stats()

    def totals(self) -> Mapping[str, int]:
        """Return sums over all clients, present and past ones, by the names of `REDUCTION_TOTALS`."""
        totals = Counter(self._left)
        for worker in self._workers.values():
            totals.update(_totals_of(worker.client))
        return totals

    def _of_plane(self, plane: int) -> Iterator[_Worker]:
        return (each for (number, _), each in self._workers.items() if number == plane)
