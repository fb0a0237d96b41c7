"""The job of training with a parameter server: its pushes, updates and pulls, and their times in a run.

Only dependencies are known before a run, not the order of events. A server sends worker w the weights for step c + 1
when it has applied w's gradient of step c and all workers' gradients of step c − s: stale synchronous parallel (Ho et
al. 2013, section 2). Without a bound s the second condition does not apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.jobs.parameter_server.plan import ParameterServerPlan
from weft.quantities.arrays import Integers
from weft.traffic.jobs import NO_STREAM, Job, OperationsBuilder, RankPart
from weft.traffic.jobs.breakdown import Times

_WORKER_STREAM, _SERVER_STREAM = 0, 1


@dataclass(frozen=True, eq=False)
class ServerTimes:
    """When servers and workers finished their operations, in ps: [worker, step, server] unless noted.

    Attributes:
        computed_ps: end of the worker's computation, [worker, step].
        pushed_ps: arrival of its gradient at a server.
        updated_ps: when the server had added that gradient to its weights, or to the sum if synchronous.
        applying_ps, applied_ps: start and end of a synchronous server's update of its weights by the sum,
            [step, server]; None if asynchronous.
        answered_ps: when the server began to send weights.
        pulled_ps: arrival of these weights at the worker.
    """

    computed_ps: Integers
    pushed_ps: Integers
    updated_ps: Integers
    applying_ps: Integers | None
    applied_ps: Integers | None
    answered_ps: Integers
    pulled_ps: Integers


@dataclass(frozen=True, eq=False)
class ParameterServerJob:
    """A job, and the numbers of its operations, in arrays with the names and shapes of `ServerTimes`."""

    plan: ParameterServerPlan
    job: Job
    computed: Integers
    pushed: Integers
    updated: Integers
    applied: Integers
    answered: Integers
    pulled: Integers

    def times(self, of_ranks: Sequence[Times]) -> ServerTimes:
        """Return the times of servers and workers, given the operation times of each rank in a run."""
        finished = [each.finished_ps for each in of_ranks]
        started = [each.started_ps for each in of_ranks]
        is_synchronous = self.plan.mode == "synchronous"
        return ServerTimes(
            computed_ps=self._by_worker(finished, self.computed),
            pushed_ps=self._by_server(finished, self.pushed),
            updated_ps=self._by_server(finished, self.updated),
            applying_ps=self._by_server(started, self.applied) if is_synchronous else None,
            applied_ps=self._by_server(finished, self.applied) if is_synchronous else None,
            answered_ps=self._by_server(started, self.answered),
            pulled_ps=self._by_worker(finished, self.pulled),
        )

    def _by_worker(self, columns: Sequence[Integers], numbers: Integers) -> Integers:
        return np.stack([columns[worker][numbers[worker]] for worker in range(self.plan.workers)])

    def _by_server(self, columns: Sequence[Integers], numbers: Integers) -> Integers:
        ranks = [self.plan.server_rank(server) for server in range(self.plan.servers)]
        return np.stack([columns[rank][numbers[..., server]] for server, rank in enumerate(ranks)], axis=-1)


def parameter_server_job(plan: ParameterServerPlan) -> ParameterServerJob:
    """Return the job of all steps; the plan's mode must have servers."""
    return _Maker(plan).made()


class _Maker:
    """Adds operations to all ranks at once."""

    def __init__(self, plan: ParameterServerPlan) -> None:
        self._plan = plan
        self._ranks = [_Rank() for _ in range(plan.rank_count)]
        shape = (plan.workers, plan.steps, plan.servers)
        self._computed = np.zeros(shape[:2], np.int64)
        self._pushed, self._updated, self._answered, self._pulled = (np.zeros(shape, np.int64) for _ in range(4))
        self._applied = np.zeros(shape[1:], np.int64)

    def made(self) -> ParameterServerJob:
        """Return the job."""
        plan = self._plan
        times_ps = [plan.compute_times_ps(worker).tolist() for worker in range(plan.workers)]
        for step in range(plan.steps):
            for worker in range(plan.workers):
                self._compute(worker, step, times_ps[worker][step])
            for server in range(plan.servers):
                self._serve(server, step)
        job = Job(
            f"parameter server, {plan.title}",
            tuple(RankPart(rank.operations.build(), tuple(rank.peers)) for rank in self._ranks),
        )
        return ParameterServerJob(
            plan,
            job,
            self._computed,
            self._pushed,
            self._updated,
            self._applied,
            self._answered,
            self._pulled,
        )

    def _compute(self, worker: int, step: int, duration_ps: int) -> None:
        """Add a worker's step: it computes with all servers' weights and sends each server its part of the gradient."""
        before = self._pulled[worker, step - 1].tolist() if step else ()
        computed = self._ranks[worker].operations.compute(
            duration_ps, stream=_WORKER_STREAM, after=before, category="compute"
        )
        self._computed[worker, step] = computed
        for server, size_bytes in enumerate(self._plan.shard_bytes):
            self._pushed[worker, step, server] = self._moved(
                worker, self._plan.server_rank(server), size_bytes, computed, "push"
            )[1]

    def _serve(self, server: int, step: int) -> None:
        """Add a server's step: it adds arriving gradients to its weights or to the sum, and answers."""
        plan, own = self._plan, self._plan.server_rank(server)
        operations, update_ps = self._ranks[own].operations, plan.update_ps(plan.shard_bytes[server])
        for worker in range(plan.workers):
            self._updated[worker, step, server] = operations.compute(
                update_ps,
                stream=_SERVER_STREAM,
                after=[int(self._pushed[worker, step, server])],
                category="update",
            )
        if plan.mode == "synchronous":
            everybody = self._updated[:, step, server].tolist()
            self._applied[step, server] = operations.compute(
                update_ps, stream=_SERVER_STREAM, after=everybody, category="update"
            )
        elif plan.staleness is not None and step + plan.staleness < plan.steps:
            # One operation, instead of a dependency of each answer on each worker.
            everybody = self._updated[:, step, server].tolist()
            self._applied[step, server] = operations.compute(0, stream=NO_STREAM, after=everybody)
        for worker in range(plan.workers):
            sent, arrived = self._moved(
                own, worker, plan.shard_bytes[server], self._allowed_by(worker, step, server), "pull"
            )
            self._answered[worker, step, server], self._pulled[worker, step, server] = sent, arrived

    def _allowed_by(self, worker: int, step: int, server: int) -> list[int]:
        """Return the operations that must end before a server answers a worker's step."""
        if self._plan.mode == "synchronous":
            return [int(self._applied[step, server])]
        needed = [int(self._updated[worker, step, server])]
        staleness = self._plan.staleness
        if staleness is not None and step >= staleness:
            needed.append(int(self._applied[step - staleness, server]))
        return needed

    def _moved(
        self, source: int, destination: int, size_bytes: int, after: int | list[int], category: str
    ) -> tuple[int, int]:
        """Add a message; return its send and its receive. Within a rank, one empty operation stands for both."""
        followed = after if isinstance(after, list) else [after]
        sender, receiver = self._ranks[source], self._ranks[destination]
        if source == destination:
            alone = sender.operations.compute(0, stream=NO_STREAM, after=followed, category=category)
            return alone, alone
        # A pair's messages match in the order of their operations; a rank that both works and serves needs two tags.
        tag = 0 if category == "push" else 1
        sent = sender.operations.send(sender.slot(destination), size_bytes, tag, after=followed, category=category)
        arrived = receiver.operations.receive(receiver.slot(source), size_bytes, tag, category=category)
        return sent, arrived


class _Rank:
    """Operations of a rank, and its peer slots."""

    def __init__(self) -> None:
        self.operations = OperationsBuilder()
        self.peers: dict[int, int] = {}

    def slot(self, peer: int) -> int:
        return self.peers.setdefault(peer, len(self.peers))
