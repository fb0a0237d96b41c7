"""In-network barriers and counters as tasks of a fabric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weft.controller.services import ServiceGroup, ServiceUse, service_memberships
from weft.jobs.host_barriers import HostBarrierJob
from weft.quantities.arrays import Integers
from weft.results.latencies import latencies_of
from weft.results.synchronisation import BARRIERS, COUNTERS, BarrierResult, CounterResult
from weft.run.jobs import JobRun
from weft.run.service_times import ServiceTimes
from weft.run.spare_hosts import members
from weft.run.task import Ended, Task
from weft.traffic.answers import ServiceRecords
from weft.traffic.commands.services import ServicePart, ServiceRequests
from weft.traffic.mapped_data import RankBuffer

if TYPE_CHECKING:
    from weft.run.fabric import Fabric

IN_NETWORK = "in_network"


class _Asked:
    """Requests of some ranks to the fabric's switches; preparing the run joins the ranks to a group."""

    def __init__(self, fabric: Fabric, ranks: Sequence[int], requests: ServiceRequests) -> None:
        self._fabric = fabric
        self._ranks = list(ranks)
        self._requests = requests
        self._group: ServiceGroup | None = None

    def prepare(self, _buffers: Sequence[RankBuffer], _results: list[Path], _jobs: Sequence[int]) -> int:
        """Have switches serve the ranks and hosts prepare. Raises JobError if no tree reaches them."""
        lab, hosts = self._fabric.lab, self._fabric.hosts
        names = members(lab.fabric, hosts)
        use = ServiceUse(
            hosts=tuple(names[rank] for rank in self._ranks),
            plane=lab.operations.planes_in_use[0],
            cell_count=self._requests.cells,
            window=self._requests.window,
            ip_version=lab.options.ip_version,
        )
        self._group = lab.controller.serve(use)
        parts = {
            rank: ServicePart(
                nic=each.nic,
                group_id=each.group_id,
                epoch=each.epoch,
                q_key=each.q_key,
                rank=each.rank,
                client=each.client,
                service_address=str(each.service_address),
                service_mac=each.service_mac,
                group_address=str(each.group_address),
            )
            for rank, each in zip(self._ranks, service_memberships(lab.controller.fabric, self._group), strict=True)
        }
        return hosts.prepare_service(parts, self._requests)

    def times(self) -> ServiceTimes:
        """Return the closed forms for the group."""
        assert self._group is not None  # results come after runs
        topology = self._fabric.lab.controller.fabric
        return ServiceTimes(topology, self._fabric.options, self._group.tree, self._group.hosts)


def _answers(ended: Ended) -> list[ServiceRecords]:
    return [each for each in ended.answers if isinstance(each, ServiceRecords)]


def _columns(ended: Ended) -> tuple[Integers, Integers]:
    """Return when each rank's requests began and ended: arrays of shape (ranks, requests)."""
    answers = _answers(ended)
    started = np.array([each.started_ps for each in answers], np.int64)
    return started, np.array([each.finished_ps for each in answers], np.int64)


def barrier_task(fabric: Fabric, ranks: Sequence[int], rounds: int) -> Task[BarrierResult]:
    """Return a task of barriers that switches release."""
    asked = _Asked(fabric, ranks, ServiceRequests("barrier", rounds))

    def result(ended: Sequence[Ended]) -> BarrierResult:
        (run,) = ended
        return _barrier_result(IN_NETWORK, *_columns(run), asked.times().barrier_ps(), run.counted.retransmissions)

    return Task(f"{rounds} barriers, {IN_NETWORK}", BARRIERS, asked.prepare, result, asks="service")


def host_barrier_task(fabric: Fabric, ranks: Sequence[int], made: HostBarrierJob) -> Task[BarrierResult]:
    """Return a task of barriers made of messages between hosts."""

    def result(ran: JobRun) -> BarrierResult:
        came, went = made.rounds_ps(ran.times)
        return _barrier_result(made.algorithm, came, went, None, ran.retransmissions)

    return fabric.tasks.job(made.job, list(ranks)).noted(BARRIERS, result)


def _barrier_result(
    algorithm: str, came: Integers, went: Integers, unloaded_ps: int | None, retransmissions: int
) -> BarrierResult:
    """Return the result, given when each rank entered and left each barrier: arrays of shape (ranks, rounds)."""
    last_came = came.max(axis=0)
    return BarrierResult(
        algorithm=algorithm,
        ranks=came.shape[0],
        rounds=came.shape[1],
        time_ps=int(went.max() - came.min()),
        latency_ps=latencies_of(went.max(axis=0) - last_came),
        unloaded_ps=unloaded_ps,
        early=int((went < last_came).sum()),
        retransmissions=retransmissions,
    )


def counter_task(fabric: Fabric, ranks: Sequence[int], requests: ServiceRequests) -> Task[CounterResult]:
    """Return a task of all ranks' additions to a switch's counters."""
    asked = _Asked(fabric, ranks, requests)

    def result(ended: Sequence[Ended]) -> CounterResult:
        (run,) = ended
        started, finished = _columns(run)
        found = np.array([each.value for each in _answers(run)], np.uint64)
        return CounterResult(
            operation=requests.operation,
            clients=len(ranks),
            additions=found.size,
            counters=requests.cells,
            outstanding=requests.window,
            attempts=sum(sum(each.attempts) for each in _answers(run)),
            time_ps=int(finished.max() - started.min()),
            latency_ps=latencies_of((finished - started).ravel()),
            unloaded_ps=asked.times().counter_ps(),
            wrong=wrong_values(found, requests.cells, requests.addend),
            retransmissions=run.counted.retransmissions,
        )

    return Task(
        f"{requests.requests} additions of each client, {requests.operation}",
        COUNTERS,
        asked.prepare,
        result,
        asks="service",
    )


def wrong_values(found: NDArray[np.uint64], counters: int, addend: int) -> int:
    """Return how many of the values that exactly-once additions would find are missing in `found`.

    `found` has shape (clients, requests); requests use the counters in turn, which start at 0.
    """
    wrong = 0
    for counter in range(counters):
        values = found[:, counter::counters].ravel()
        expected = np.arange(values.size, dtype=np.uint64) * np.uint64(addend)
        wrong += int(expected.size - np.intersect1d(values, expected).size)
    return wrong
