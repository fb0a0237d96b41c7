"""Prepares each run on a fabric, carries it out, and records it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.clocks.lab import Lab, NotRunningError, Progress
from weft.clocks.watching import Sample, Watcher, watched
from weft.controller.demand import Demand
from weft.controller.errors import ControllerError
from weft.errors import BadInputError, CheckFailedError
from weft.quantities.readable import counted, format_time
from weft.quantities.units import PS_PER_S
from weft.results.counters import HostTotals
from weft.results.demand_routes import DemandRoutesResult
from weft.results.int_paths import IntPath, longest_int_path, more_telling
from weft.results.model import Phase
from weft.run.aggregation_job import AggregationJobs
from weft.run.fast_forward import reason_against
from weft.run.reducing_groups import ReducingGroup
from weft.run.spare_hosts import replace_hosts
from weft.run.task import Ended, Task, check_timeout
from weft.run.unfinished import unfinished
from weft.scenario.fidelity_checks import check_reduction
from weft.system.child_processes import ChildError
from weft.traffic.answers import (
    ApplicationRecords,
    EndedFlows,
    ParameterRecords,
    ServiceRecords,
    TcpRecords,
)
from weft.traffic.control import EndpointGroup
from weft.traffic.host_stats import HostStats
from weft.traffic.mapped_data import RankBuffer
from weft.traffic.patterns import Flow
from weft.traffic.prepared_runs import RunError
from weft.traffic.sent_bytes import SentBytes


def lease_s(chosen_ps: int | None, hosts: EndpointGroup) -> float:
    """Return the lease in seconds of the controller's clock.

    A reduction that waits for a worker is not idle: the other workers retransmit, after times that double up to a
    bound. A lease is at least twice that bound, so a job in the middle of a reduction never looks idle.

    Raises:
        BadInputError: the chosen lease is shorter.

    """
    least_ps = 2 * hosts.longest_repetition_ps()
    if chosen_ps is not None and chosen_ps < least_ps:
        least = f"{format_time(least_ps)} or more, twice the longest time after which a worker repeats itself"
        raise BadInputError(f"{format_time(chosen_ps)}", place="aggregation.lease", valid=least)
    return (chosen_ps or least_ps) * hosts.dilation / PS_PER_S


@dataclass(frozen=True)
class Running:
    """A task in progress: its name, number of ranks, and how many of its steps (or ends of flows) are done."""

    name: str
    rank_count: int
    steps_done: int
    step_count: int


class Exchanges:
    """Runs tasks on a lab's hosts, one run after the other; reports progress to `watcher` and, in words, to `progress`.

    `phases` are the runs so far, `int_path` the most informative path reported by INT, `demand_routes` the routes that
    were chosen by the runs' traffic.
    """

    def __init__(self, lab: Lab, jobs: AggregationJobs, watcher: Watcher | None, progress: Progress) -> None:
        self.phases: list[Phase] = []
        self.int_path: IntPath | None = None
        self.demand_routes: list[DemandRoutesResult] = []
        self._lab = lab
        self._jobs = jobs
        self._joined: list[int] = []
        self._running: tuple[tuple[str, int, int], ...] = ()
        self._watcher = watcher
        self._progress = progress
        self._hosts: EndpointGroup | None = None

    @property
    def hosts(self) -> EndpointGroup:
        """All hosts' endpoints. Raises NotRunningError before `start` and after `stop`."""
        if self._hosts is None:
            raise NotRunningError("the fabric was left, or not entered yet: use it within its 'with'")
        return self._hosts

    def start(self, hosts: EndpointGroup) -> None:
        """Begin to use hosts with started endpoints. Raises BadInputError if jobs' leases are too short for them."""
        self._hosts = hosts
        self._lab.controller.lease_s = lease_s(self._lab.options.aggregation.lease, hosts)
        self._lab.controller.dilation = hosts.dilation
        hosts.follow_trees(self._follow_trees)

    def _follow_trees(self) -> bool:
        return self._jobs.follow(self.hosts)

    def stop(self) -> None:
        """Stop using the hosts."""
        self._hosts = None

    def nics(self, jobs: Sequence[int] = (), *, storage: bool = False) -> tuple[int, ...]:
        """Return the numbers of a host's NICs in a run: its aggregation jobs' NICs, or all in planes in use.

        `storage`: those in a storage network, if there is one, even while it is lost.

        The planes in use may have changed since the jobs were joined; the jobs' streams move by themselves.
        """
        if jobs:
            return self._jobs.nics(jobs)
        fabric, in_use = self._lab.fabric, self._lab.operations.planes_in_use
        if storage and fabric.storage_plane is not None:
            in_use = fabric.storage_planes
        return tuple(nic.number for nic in fabric.hosts[0].nics if nic.plane in in_use)

    def running(self) -> list[Running]:
        """Return the tasks in progress, from any thread. Under the real clock their steps are up to two seconds old."""
        hosts = self._hosts
        if hosts is None:
            return []
        return [Running(name, ranks, *hosts.steps([run])) for name, run, ranks in self._running]

    def begin(self, draw: int = 0, reducing: Sequence[ReducingGroup] = ()) -> HostTotals:
        """Prepare a run; return the hosts' counts so far.

        Unless connections are kept, hosts close theirs, and the virtual clock resets the fabric to its state before the
        first run, so that earlier runs do not affect figures. `draw` seeds random choices. Spares take the ranks of
        hosts that are out of use. Ranks that reduce in the network join aggregation jobs.
        """
        self._replace_hosts()
        if self._lab.options.transport.connections == "fresh":
            # Packets of the run before would count as this one's, and take its place in queues.
            is_quiet = self._lab.settle(draw)
            self.hosts.disconnect(draw if is_quiet else None)
        if reducing:
            check_reduction(self._lab.options, "algorithm")
            self._joined = self._jobs.join(self.hosts, reducing)
        return self._totals(self.hosts.stats(), bool(reducing))

    def _replace_hosts(self) -> bool:
        """Give the ranks of hosts that are out of use to spares; return whether any moved."""
        # Jobs name hosts: with another host behind a rank they have to be joined again.
        replaced = replace_hosts(self._lab.fabric, self._lab.operations, self.hosts)
        if replaced:
            self._jobs.leave()
        return replaced

    def run(self, tasks: Sequence[Task[Any]], timeout_s: float, draw: int = 0, label: str = "") -> list[Ended]:
        """Run tasks concurrently to the end, and record the phase of each.

        `draw` seeds random choices, `label` distinguishes the phases of repetitions. If it fails because a host is lost
        and a spare can take its rank, all tasks run again from their inputs.

        Raises:
            BadInputError: an invalid timeout. CheckFailedError: as `weft.Fabric.collective`. RunError: a run failed or
                did not end in time.
        """
        check_timeout(timeout_s)
        reducing = [group for task in tasks for group in task.reducing]
        before: HostTotals | None = None
        while True:
            try:
                ready = self.begin(draw, reducing)  # a host may be lost here, too
                before = before or ready
                if self.hosts.repeated is not None:
                    ranks = range(self._lab.fabric.rank_count)
                    has_moved = any(self.hosts.host_of(rank) != rank for rank in ranks)
                    self.hosts.repeated.begin(reason_against(tasks, has_moved=has_moved))
                ended = self._run_once(tasks, timeout_s)
                break
            except (RunError, CheckFailedError) as error:
                # A host counts as lost once all its links are known to be down.
                self._lab.link_events.wait_for_repairs()
                if not self._replace_hosts():
                    raise
                self._progress(f"running again with a spare host: {error}")
        for task, each in zip(tasks, ended, strict=True):
            outcome = each.outcome
            began, done = min(outcome.started_ps), max(outcome.finished_ps)
            self.phases.append(Phase(f"{task.name}{label}", began, done, outcome.run))
        self._judge_computing(tasks, ended)
        counted = self._counted_since(before, bool(reducing))
        return [
            replace(each, counted=counted, verdict=task.verify(each.outputs) if task.verify else None)
            for task, each in zip(tasks, ended, strict=True)
        ]

    def _judge_computing(self, tasks: Sequence[Task[Any]], ended: Sequence[Ended]) -> None:
        """Compare the computing times of jobs' ranks, if the fabric looks for noisy parts."""
        noise = self._lab.link_events.noise
        if noise is None:
            return
        from weft.run.computing_peers import computing_peers  # it costs nothing where it is not used

        for task, each in zip(tasks, ended, strict=True):
            if task.job is not None:
                hosts = [self._lab.fabric.hosts[number].name for number in each.hosts]
                self._lab.controller.call(noise.judge_computing(computing_peers(task.job, hosts, each.times)))

    def end(self, name: str, span_ps: tuple[int, int], before: HostTotals) -> HostTotals:
        """Record the phase of a run since `begin`; return what hosts have counted since."""
        self.phases.append(Phase(name, *span_ps))
        return self._counted_since(before, False)

    def _counted_since(self, before: HostTotals, in_network: bool) -> HostTotals:
        # Raises what an event of the run has met: counters behind it would mean nothing.
        self._lab.link_events.results_now()
        stats = self.hosts.stats()
        controller = self._lab.controller
        path = longest_int_path(
            controller.fabric,
            stats,
            controller.planned_paths,
            coarse=self._lab.options.target == "bmv2",
        )
        self.int_path = more_telling(self.int_path, path)
        return self._totals(stats, in_network) - before

    def _totals(self, endpoint_stats: Sequence[HostStats], in_network: bool) -> HostTotals:
        aggregated = self._lab.controller.read_aggregated_packets() if in_network else 0
        return HostTotals.of(endpoint_stats, aggregated)

    def _watched(self, runs: Sequence[int], flows: Sequence[Flow]) -> contextlib.AbstractContextManager[None]:
        """Return a context in which the fabric's watcher sees the progress of runs, with these flows if any."""
        if self._watcher is None:
            return contextlib.nullcontext()
        began = self._lab.run_sample(self.hosts, runs)
        overhead_bytes = self._lab.frame_bytes - self._lab.options.mtu_bytes
        expected_bytes = sum(
            flow.size_bytes + -(-flow.size_bytes // self._lab.options.mtu_bytes) * overhead_bytes for flow in flows
        )

        def take() -> Sample:
            now = self._lab.run_sample(self.hosts, runs)
            return replace(
                now,
                emulated_ps=now.emulated_ps - began.emulated_ps,
                packets=None if now.packets is None else now.packets - (began.packets or 0),
                delivered_bytes=now.delivered_bytes - began.delivered_bytes,
                expected_bytes=expected_bytes,
            )

        return watched(self._watcher, take)

    def _run_once(self, tasks: Sequence[Task[Any]], timeout_s: float) -> list[Ended]:
        with contextlib.ExitStack() as stack:
            data = [self._data_of(task, stack) for task in tasks]
            self.hosts.sent = SentBytes() if self._lab.options.routing.follows_demand else None
            runs: list[int] = []
            joined = iter(self._joined)
            try:
                for task, each in zip(tasks, data, strict=True):
                    if task.flows:
                        self._progress(f"connecting the hosts of {counted(len(task.flows), 'flow')}")
                    own = list(islice(joined, len(task.reducing)))
                    runs.append(task.prepare(each.buffers, each.results, own))
                if self.hosts.sent is not None:
                    self._route_demand(tasks, self.hosts.sent)
                flows = [flow for task in tasks for flow in task.flows]
                if flows:
                    self._progress(f"running {counted(len(flows), 'flow')}")
                self._running = tuple(
                    (task.name, run, len(self.hosts.hosts_of(run))) for task, run in zip(tasks, runs, strict=True)
                )
                with self._watched(runs, flows):
                    starts = zip(runs, (task.at_ps for task in tasks), strict=True)
                    outcomes = self.hosts.run_together(list(starts), timeout_s)
                outputs = [
                    self._lab.outputs(each.outputs(), self.hosts.hosts_of(run)) if each.buffers else []
                    for run, each in zip(runs, data, strict=True)
                ]
                records = [
                    self.hosts.flow_records(run) if task.flows else EndedFlows()
                    for run, task in zip(runs, tasks, strict=True)
                ]
                times = [
                    self.hosts.operation_times(run) if task.job is not None else ()
                    for run, task in zip(runs, tasks, strict=True)
                ]
                hosts = [
                    self.hosts.hosts_of(run) if task.job is not None else ()
                    for run, task in zip(runs, tasks, strict=True)
                ]
                answers = [self._answers(task, run) for run, task in zip(runs, tasks, strict=True)]
            except BaseException as error:
                self._leave_job(error)
                if isinstance(error, RunError) and (waiting := self._waiting(tasks, runs)):
                    raise RunError(f"{error}; {waiting}") from error
                raise
            finally:
                self._running = ()
                for run in runs:
                    self.hosts.release(run)
            return [
                Ended(outcome, HostTotals(0, 0), each, of_flows, of_operations, of_ranks, of_service)
                for outcome, each, of_flows, of_operations, of_ranks, of_service in zip(
                    outcomes, outputs, records, times, hosts, answers, strict=True
                )
            ]

    def _route_demand(self, tasks: Sequence[Task[Any]], sent: SentBytes) -> None:
        """Have the controller choose routes for what prepared runs are going to send, and note their loads."""
        names = [host.name for host in self._lab.fabric.hosts]
        host_of = self.hosts.host_of
        matrix = tuple(
            sorted(
                Demand(names[host_of(each.source)], names[host_of(each.destination)], each.nic, each.size_bytes)
                for each in sent
                if host_of(each.source) != host_of(each.destination)
            )
        )
        self._progress(f"choosing routes for {counted(len(matrix), 'queue pair')}")
        phase = ", ".join(task.name for task in tasks)
        for loads in self._lab.controller.route_demand(matrix):
            self.demand_routes.append(DemandRoutesResult.of(phase, len(matrix), loads))

    def _answers(
        self, task: Task[Any], run: int
    ) -> Sequence[ServiceRecords | ParameterRecords | TcpRecords | ApplicationRecords]:
        if task.asks == "service":
            return self.hosts.service_records(run)
        if task.asks == "tcp":
            return self.hosts.tcp_records(run)
        if task.asks == "applications":
            return self.hosts.application_records(run)
        return self.hosts.parameter_records(run) if task.asks == "parameters" else ()

    def _waiting(self, tasks: Sequence[Task[Any]], runs: Sequence[int]) -> str:
        """Return, in words, the operations that ranks of jobs were waiting for when a run failed; "" if unknown."""
        found = []
        for task, run in zip(tasks, runs, strict=False):
            if task.job is not None:
                with contextlib.suppress(ChildError):
                    found.append(unfinished(task.job, self.hosts.operation_times(run)))
        return "; ".join(filter(None, found))

    def _data_of(self, task: Task[Any], stack: contextlib.ExitStack) -> _Data:
        """Return copies of a task's inputs: arrays, or files in a temporary directory that the stack removes."""
        inputs = task.inputs or []
        # A run works in place, and the caller's arrays are needed to verify the result.
        if self._lab.shares_memory:
            return _Data([array.copy() for array in inputs], [])
        directory = stack.enter_context(tempfile.TemporaryDirectory(dir=self._lab.directory))
        files = [Path(directory, f"rank{rank}.bin") for rank in range(len(inputs))]
        for file, array in zip(files, inputs, strict=True):
            # Ranks are other processes.
            array.tofile(file)
        return _Data(files, [file.with_suffix(".result") for file in files], [each.dtype for each in inputs])

    def _leave_job(self, error: BaseException) -> None:
        """Leave aggregation jobs after a failed run. Raises CheckFailedError if a link of a job's tree has failed."""
        hit = False
        # The job's slots hold half a reduction, so the next one starts in a new epoch. If the switches are
        # gone, too, the first error is raised.
        with contextlib.suppress(ControllerError):
            hit = self._jobs.has_moved()
            self._jobs.leave()
        if hit and isinstance(error, RunError):
            raise CheckFailedError(
                f"{error}; a link of the job's aggregation tree has failed meanwhile, and with it the "
                "reduction (the next one has other trees)"
            ) from error


@dataclass(frozen=True)
class _Data:
    """The ranks' buffers of a task; for files, also the result files and element types."""

    buffers: Sequence[RankBuffer]
    results: list[Path]
    dtypes: Sequence[np.dtype[Any]] = ()

    def outputs(self) -> list[NDArray[Any]]:
        """Return every rank's data after the run."""
        if not self.results:
            return [each for each in self.buffers if not isinstance(each, Path)]
        return [np.fromfile(file, dtype) for file, dtype in zip(self.results, self.dtypes, strict=True)]
