"""A fabric to run collectives and traffic on from Python, used by scripts, tests and the commands."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from numpy.typing import NDArray

from weft.clocks.environment import CIRCUITS_STAY
from weft.clocks.ev_control import (
    EvChoice,
    EvChoiceKeys,
    EvControl,
    EvEventRow,
    EvProfileKeys,
    EvProfileRow,
    EvRow,
)
from weft.clocks.exec_commands import ExecRun, HostCommand
from weft.clocks.lab import Progress, make_lab
from weft.clocks.virtual.processes import ALONE, Processes
from weft.clocks.watching import Watcher
from weft.controller.arrays import DirectCount
from weft.controller.circuits import CircuitChange
from weft.controller.counters import Count
from weft.error_translation import raised_as_weft_errors
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError
from weft.quantities.definitions import TIME
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_S, shown
from weft.recording.observations import Observations
from weft.results.exec import EXEC, ExecResult
from weft.results.flows import FlowsResult
from weft.results.kinds import R, ResultKind
from weft.results.link_events import LinkEventResult
from weft.results.model import Phase
from weft.results.rdma import RDMA, RdmaResult
from weft.results.run_result import RunResult
from weft.results.training_steps import TrainingStepResult
from weft.results.workloads import WorkloadResult
from weft.run.aggregation_job import AggregationJobs
from weft.run.collectives import CollectiveRequest, CollectiveRun
from weft.run.exchanges import Exchanges, Running
from weft.run.exec import known_hosts, run_commands
from weft.run.findings import Findings
from weft.run.jobs import CollectiveData, JobRun, PlacedJob
from weft.run.lint import findings_of
from weft.run.port_captures import PortCaptures
from weft.run.probes import Probes, probed_copy
from weft.run.rdma import RdmaRuns, host_programs
from weft.run.spec import RunSpec, fabric_run_spec
from weft.run.task import Ended, Task, check_timeout, require_all
from weft.run.task_maker import TaskMaker
from weft.run.tuner import Tuner
from weft.scenario import FabricKeywords, FabricOptions
from weft.scenario.circuits import DARK_TIME, require_configuration
from weft.scenario.keywords import with_fabric_keywords
from weft.system.signals import interruptions_first
from weft.topologies import FabricSpec
from weft.traffic.clear_to_send import ClearToSend
from weft.traffic.commands.evs import MOST_EV_EVENTS
from weft.traffic.control import EndpointGroup
from weft.traffic.extensions import TrafficPattern
from weft.traffic.flow_sizes import FlowSizes
from weft.traffic.jobs import Job
from weft.traffic.patterns import Flow
from weft.traffic.training import TrainingStep
from weft.visibility import internal

if TYPE_CHECKING:
    from weft.engine.records import ConservationCounts


class Fabric:
    """A running fabric. Use as a context manager; leaving it stops everything.

    ```
    with Fabric(topologies.leaf_spine(planes=2, leaves=4, spines=2), seed=1) as fabric:
        run = fabric.run(CollectiveRequest("allreduce", buffers, algorithm="in-network"))
    ```

    Args:
        topology: the fabric to build, or the description of a run with its options.
        progress: called with the current activity, in words.
        watcher: shown the progress of runs, from a separate thread; not with several processes.
        processes: processes that run the fabric together, under the virtual clock.
        runs_commands: whether `run_commands` is going to be called, which the virtual clock must know before.
        clock, target, …: the fields of `weft.scenario.FabricOptions`; None stands for the default of a section.

    Raises, on entering:
        EnvironmentLacksError: the machine cannot run it. BadInputError: the P4 program is wrong.
    """

    @with_fabric_keywords
    def __init__(
        self,
        topology: FabricSpec | RunSpec,
        *,
        progress: Progress = lambda _: None,
        watcher: Watcher | None = None,
        processes: Processes = ALONE,
        runs_commands: bool = False,
        **options: Unpack[FabricKeywords],
    ) -> None:
        if isinstance(topology, RunSpec):
            if options:
                raise BadInputError("the run's description has its options", place=", ".join(options))
            spec = topology
        else:
            spec = fabric_run_spec(topology, **options)
        self.topology = spec.fabric
        self.lab = make_lab(self.topology, spec.options, progress, processes)
        self.lab.reducing_key = next(
            (
                f"traffic[{number}].{item.kind}"
                for number, item in enumerate(spec.traffic)
                if item.reduces_in_network(spec.fabric)
            ),
            "",
        )
        parts = [part for item in spec.traffic for _, part in item.with_parts("")]
        self.lab.sends_any_packets = any(part.sends_any_packets for part in parts)
        self.lab.runs_commands = runs_commands or any(part.runs_commands for part in parts)
        self.first_collective_done_s: float | None = None
        """When the first collective ended, by the machine's monotonic clock; None before."""
        self.item_count = len(spec.traffic)
        """Number of traffic items in the scenario."""
        self.items_done = 0
        """Number of traffic items that have ended."""
        self._progress = progress
        self._jobs = AggregationJobs(self.lab)
        self._exchanges = Exchanges(self.lab, self._jobs, watcher, progress)
        self._rdma = RdmaRuns(self.lab, self._exchanges)
        self._announced: list[str] = []
        self._findings = Findings(self.lab, self._exchanges, spec.name, self._announced)
        self._spec = spec
        self._probed: Fabric | None = None
        own = weakref.proxy(self)  # so that a fabric is freed as soon as it is left
        probes = Probes(own, lambda: own._fabric_of_probes())
        tuner = Tuner(self.topology, self.options, probes, progress, lambda: own.lab.aggregates)
        self.tasks = TaskMaker(self.lab, self._exchanges, tuner)
        """Makes the tasks for `run_together`."""
        self._captures = PortCaptures(self.lab, lambda: own.hosts)
        self.lab.before_building = lambda: own._announce()
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Fabric:
        with interruptions_first(), contextlib.ExitStack() as stack:
            stack.enter_context(self.lab)
            with raised_as_weft_errors():
                self._findings.find_arrays()
            for line in self.lab.left_out():
                self._progress(line)
            self._progress("starting the hosts' endpoints")
            self._exchanges.start(stack.enter_context(self.lab.hosts()))
            with raised_as_weft_errors():
                self.lab.start_user_controller(stack)
            # Packets dropped or late before the switches had a program say nothing about the fabric.
            self.lab.reset_switch_stats()
            self.hosts.reset_stats()
            self._findings.start_recording()
            with raised_as_weft_errors():
                self.lab.link_events.start()
            self._exit = stack.pop_all()
        return self

    def _announce(self) -> None:
        """Say which settings cannot work together."""
        findings = findings_of(self._spec, self.lab.switch_configs)
        self._announced[:] = [finding.sentence for finding in findings]
        for finding in findings:
            self._progress(f"warning: {finding.located(self._spec.places).line}")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with interruptions_first(error):
            try:
                incomplete = self.end_captures() if error is None else []
                self._exit.close()
            finally:
                # Only a fabric's results are kept.
                self._exchanges.stop()
            if incomplete:
                raise EnvironmentLacksError("; ".join(incomplete))

    @property
    def options(self) -> FabricOptions:
        """The options in force; once the fabric is up, limited to those its switches' programs support."""
        return self.lab.options

    @property
    def hosts(self) -> EndpointGroup:
        """All hosts' endpoints. Raises NotRunningError outside the fabric's `with`."""
        return self._exchanges.hosts

    @property
    def phases(self) -> list[Phase]:
        """The runs so far."""
        return self._exchanges.phases

    def running(self) -> list[Running]:
        """Return the tasks in progress and how far they are; may be called from any thread."""
        return self._exchanges.running()

    @property
    def slot_count(self) -> int:
        """Slots of an aggregation job: the option, or two bandwidth-delay products."""
        return self._jobs.slot_count

    @raised_as_weft_errors()
    def run(self, request: CollectiveRequest, timeout_s: float = 300.0) -> CollectiveRun:
        """Run a collective and verify its result against NumPy.

        Args:
            request: the collective and its data; see `CollectiveRequest`.
            timeout_s: seconds after which a run has failed: real ones, or of the virtual clock.

        Raises:
            BadInputError: unknown names, or buffers that do not fit together.
            CheckFailedError: the run failed or did not end in time.
        """
        task = self.tasks.collective(request)
        figures, ended = self._run(task, timeout_s)
        return CollectiveRun([] if request.buffers is None else task.arrays(ended[-1].outputs), figures)

    @raised_as_weft_errors()
    def training_step(
        self,
        step: TrainingStep,
        algorithm: str = "ring",
        gradients: Sequence[NDArray[Any]] | None = None,
        *,
        dtype: str = "float32",
        tenant: str = "",
        clear_to_send: ClearToSend | None = None,
        timeout_s: float = 300.0,
    ) -> TrainingStepResult:
        """Run a step of data-parallel training; all-reduces overlap with the backward pass.

        Args:
            step: layers, buckets and compute times.
            algorithm: algorithm of the all-reduces.
            gradients: every host's gradients, flat, in the order of the backward pass (last layer first); their sums
                are verified against NumPy. None: packets carry lengths for elements of `dtype`.
            dtype: element type if `gradients` is None.
            tenant: as `run`.
            clear_to_send: how much receivers clear; None: senders do not wait for them.
            timeout_s: as `run`, in addition to the compute times.

        Raises:
            BadInputError, CheckFailedError: as `run`.
        """
        check_timeout(timeout_s)
        task = self.tasks.training_step(
            step, algorithm, gradients, dtype=dtype, tenant=tenant, clear_to_send=clear_to_send
        )
        return self._run(task, timeout_s + step.compute_ps / PS_PER_S * self.options.dilation)[0]

    @raised_as_weft_errors()
    def incast(
        self,
        receiver: str,
        bytes_per_sender: int,
        plane: int = 0,
        timeout_s: float = 300.0,
        *,
        data: str = "zeros",
        queue_pairs: int = 1,
        tenant: str = "",
    ) -> FlowsResult:
        """Have every other host write to one host at the same time, in one plane.

        Args:
            receiver: name of the host that receives.
            bytes_per_sender: bytes that each other host writes.
            plane: plane of the flows.
            timeout_s: seconds after which the run has failed, in real time or of the virtual clock.
            data: "zeros", or "lengths": under the virtual clock packets then carry only their payload's length, at the
                same times, which large runs need.
            queue_pairs: number of queue pairs over which each flow is divided.
            tenant: whose share of links its packets have, a name of the option `tenants`; "" for nobody.

        Raises:
            BadInputError: unknown host, plane or data, no other host, or an invalid size.
            CheckFailedError: the run failed or did not end in time.
        """
        task = self.tasks.incast(receiver, bytes_per_sender, plane, data=data, queue_pairs=queue_pairs, tenant=tenant)
        return self._run(task, timeout_s)[0]

    @raised_as_weft_errors()
    def permutation(
        self,
        bytes_per_host: int,
        timeout_s: float = 300.0,
        *,
        data: str = "zeros",
        queue_pairs: int = 1,
        tenant: str = "",
    ) -> FlowsResult:
        """Have every host write to one other, drawn from the seed, in every plane.

        `data`, `queue_pairs`, `tenant` and errors as `incast`.
        """
        task = self.tasks.permutation(bytes_per_host, data=data, queue_pairs=queue_pairs, tenant=tenant)
        return self._run(task, timeout_s)[0]

    @raised_as_weft_errors()
    def pattern(self, pattern: TrafficPattern, timeout_s: float = 300.0, *, tenant: str = "") -> FlowsResult:
        """Run the flows of a user's traffic pattern; `tenant` as `incast`.

        Raises:
            BadInputError: the pattern raised, or one of its flows cannot run here; says which and why.
            CheckFailedError: the run failed or did not end in time.
        """
        return self._run(self.tasks.pattern(pattern, tenant), timeout_s)[0]

    @raised_as_weft_errors()
    def run_flows(
        self, name: str, flows: Sequence[Flow], timeout_s: float = 300.0, data: str = "zeros", tenant: str = ""
    ) -> FlowsResult:
        """Run flows to the end and record the result under `name`; `data`, `tenant` and errors as `incast`."""
        return self._run(self.tasks.flows(name, flows, data, tenant), timeout_s)[0]

    def run_job(
        self,
        job: Job,
        ranks: Sequence[int] | None = None,
        tenant: str = "",
        timeout_s: float = 300.0,
        *,
        data: CollectiveData = "lengths",
    ) -> JobRun:
        """Run a job on `ranks` of the fabric; `data` is the data of its collectives. Otherwise as `run_jobs`."""
        placed = PlacedJob(job, None if ranks is None else tuple(ranks), data=data)
        return self.run_jobs([placed], timeout_s)[0]

    def run_jobs(self, jobs: Sequence[PlacedJob], timeout_s: float = 300.0) -> list[JobRun]:
        """Run jobs concurrently.

        Args:
            jobs: jobs, each with its ranks and its start.
            timeout_s: as `run`, in addition to the latest start.

        Raises:
            BadInputError: a job cannot finish, does not fit on the fabric, or has an invalid collective.
            CheckFailedError: as `run`.
        """
        check_timeout(timeout_s)
        require_all(jobs, PlacedJob, "run_jobs", "a PlacedJob, such as PlacedJob(job)")
        tasks = [self.tasks.job(each.job, each.ranks, each.data).at(each.start_ps) for each in jobs]
        latest_ps = max((each.start_ps for each in jobs), default=0)
        return self.run_together(tasks, timeout_s + latest_ps / PS_PER_S * self.options.dilation)

    @raised_as_weft_errors()
    def run_together(self, tasks: Sequence[Task[Any]], timeout_s: float = 300.0) -> list[Any]:
        """Run tasks (`self.tasks`) concurrently, each from its `at_ps` on, and return their results in this order.

        Counts of hosts and switches (retransmissions, congestion notifications) include all tasks.

        Raises:
            BadInputError: no task, or one with repetitions. JobError: switches have no room for the reductions.
                CheckFailedError: one failed, or not all ended in time.
        """
        require_all(tasks, Task, "run_together", "a task, such as fabric.tasks.job(job)")
        if not tasks:
            raise BadInputError("nothing to run together", valid="one task or more")
        for task in tasks:
            TIME.check(task.at_ps, f"the start of {task.name}")
            if not task.repetitions.is_one:
                raise BadInputError(
                    f"{task.name} runs several times, so nothing else can run at the same time", valid="once"
                )
        return self._ended(tasks, [[each] for each in self._exchanges.run(tasks, timeout_s)])

    @internal
    def run_unnoted(self, task: Task[Any], timeout_s: float, label: str) -> int:
        """Run a task once without recording its result; return how long it took, in ps."""
        (ended,) = self._exchanges.run([task], timeout_s, label=label)
        return ended.outcome.duration_ps

    def _fabric_of_probes(self) -> Fabric:
        """Return a copy of the fabric for probes, which runs as long as this one."""
        if self._probed is None:
            self._probed = self._exit.enter_context(Fabric(probed_copy(self._spec)))
        return self._probed

    def _run(self, task: Task[R], timeout_s: float) -> tuple[R, list[Ended]]:
        """Run a task with its repetitions; return its result and each run."""
        runs, ended = task.repetitions, list[Ended]()
        for number, draw in runs.draws():
            # Keep data of the last repetition only, as it may be large.
            ended = [replace(each, outputs=[]) for each in ended]
            ended += self._exchanges.run([task], timeout_s, draw, runs.label(number))
        return self._ended([task], [ended])[0], ended

    def _ended(self, tasks: Sequence[Task[Any]], ended: Sequence[Sequence[Ended]]) -> list[Any]:
        """Record the results of tasks, and return them."""
        results = []
        for task, runs in zip(tasks, ended, strict=True):
            if task.collective:
                self._findings.add_collective(task.collective)
                self.first_collective_done_s = self.first_collective_done_s or time.monotonic()
            results.append(task.result(runs))
            if task.kind is not None:
                self.add_result(task.kind, results[-1])
        return results

    @internal
    def add_result(self, kind: ResultKind[R], result: R) -> None:
        """Record a result of a run, for `summary` and tables."""
        self._findings.add(kind, result)

    @raised_as_weft_errors()
    def workload(
        self, flow_sizes: str | FlowSizes, load: float, duration_ps: int, timeout_s: float = 300.0
    ) -> WorkloadResult:
        """Have hosts start flows at random times, drawn from the seed, and wait for the last to end.

        Args:
            flow_sizes: "websearch", "fb_hadoop", "alibaba_storage", or your own distribution.
            load: load of a host's ports, as a share of their total rate.
            duration_ps: the time during which flows start.
            timeout_s: as `incast`.

        Raises:
            BadInputError, CheckFailedError: as `incast`.
        """
        return self._run(self.tasks.workload(flow_sizes, load, duration_ps), timeout_s)[0]

    @raised_as_weft_errors()
    def rdma(
        self,
        programs: Mapping[str, object],
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        timeout_s: float = 300.0,
    ) -> RdmaResult:
        """Run programs on hosts, from a common start until all have returned (docs/rdma.md).

        Args:
            programs: by host, path/to/file.py:Name of a `weft.rdma.Program` or of an `async def` function; under the
                virtual clock also such an object itself. "others" stands for all hosts not named.
            parameters: by host, keyword arguments of the program.
            timeout_s: as `incast`.

        Raises:
            BadInputError: no such host or program, or a file's program raised; an object's exceptions pass through.
            CheckFailedError: they did not return in time.
            EnvironmentLacksError: objects under the real clock.
        """
        check_timeout(timeout_s)
        hosts = [host.name for host in self.topology.hosts]
        result = self._rdma.run(host_programs(programs, parameters or {}, hosts), timeout_s)
        self.add_result(RDMA, result)
        return result

    @raised_as_weft_errors()
    def run_commands(
        self, commands: Sequence[HostCommand], *, more_hosts: Sequence[str] = (), timeout_s: float = 300.0
    ) -> ExecResult:
        """Run command lines in hosts, as `weft exec` does (docs/verbs.md).

        Args:
            commands: each begins when all before it wait or have ended.
            more_hosts: hosts without a command that commands may enter by `weft exec`.
            timeout_s: as `incast`.

        Raises:
            BadInputError: no such host.
            CheckFailedError: they did not end in time, or one with a status other than 0.
            EnvironmentLacksError: this machine cannot run them.
        """
        check_timeout(timeout_s)
        known_hosts([*(each.host for each in commands), *more_hosts], self.topology)
        if not commands:
            raise BadInputError("no commands", valid="one or more")
        if not self.lab.runs_commands and self.options.clock == "virtual":
            raise BadInputError("a fabric in virtual time must know before: Fabric(…, runs_commands=True)")
        result = run_commands(self.lab, self._exchanges, ExecRun(commands, timeout_s, more_hosts))
        self.add_result(EXEC, result)
        return result

    @raised_as_weft_errors()
    def change_circuits(
        self, configuration: str, drain: bool | None = None, dark_time_ps: int | None = None
    ) -> CircuitChange:
        """Change the configuration of the fabric's circuits, and wait until routes have been updated.

        Args:
            configuration: name of the configuration.
            drain: whether to drain circuits before removing them; by default as in the option `circuits`.
            dark_time_ps: time between removing circuits and setting up new ones; by default as in `circuits`.

        Raises:
            BadInputError: no such configuration, `drain` not a bool, or a dark time out of range; the message has the
                valid values.
            EnvironmentLacksError: the clock is real.
            CheckFailedError: packets still used circuits to be removed after `controller.drain_timeout`, so nothing was
                changed.
        """
        circuits, section = self.lab.circuits, self.options.circuits
        require_configuration(self.topology, configuration, "configuration")
        if drain not in (None, True, False):
            raise BadInputError(f"drain: {shown(drain)}", valid="True, False, None")
        if dark_time_ps is not None:
            DARK_TIME.check(dark_time_ps, "dark_time_ps")
        if circuits is None:
            raise EnvironmentLacksError(CIRCUITS_STAY)
        change = self.lab.controller.call(
            circuits.change(
                configuration,
                section.drain if drain is None else drain,
                section.dark_time if dark_time_ps is None else dark_time_ps,
            )
        )
        if not change.ok:
            raise CheckFailedError(f"circuits are not {configuration}: those that were to go are still busy")
        return change

    @raised_as_weft_errors()
    def schedule_link(self, a: str, b: str, state: str, after_ps: int = 0) -> LinkEventResult:
        """Have a link fail ("down") or come back ("up"), `after_ps` of the fabric's time from now.

        `a` and `b` are the nodes at its ends, or their ports ("p0l0:3") if several links join the nodes.

        Packets on a failing link and in the queues of its ports are lost. After `control.detection` and the control
        latency the controller reprograms the switches. The result is filled in as things happen, and is also part of
        `summary`.

        Raises:
            BadInputError: no such link or state, or the real clock cannot bring it down (`links: internal`).
        """
        return self.lab.link_events.schedule(a, b, state, after_ps, self._since_up_ps() + after_ps)

    @raised_as_weft_errors()
    def evs(self, host: str, **choice: Unpack[EvChoiceKeys]) -> list[EvRow]:
        """Return the entropy values (EVs) of a host's queue pairs of MRC.

        Queue pairs end with a flow of a workload, or with an item of the traffic unless `transport.connections` is
        `kept`.

        Args:
            host: name of the host.
            choice: only those to the host `peer`, of the `value`, of the `plane`, or with a path over the `link`
                ("p0l0-p0s1") or the `switch`, where `routing.kind` has EVs name paths.

        Returns:
            A dictionary for each: `queue_pair` (None: denied, and no queue pair has it now), `peer` (an address),
            `peer_host`, `plane`, `value`, `nodes` of the path (empty where switches hash EVs), `outer_destination`,
            `state` (good, skip, assumed_bad, denied), `active` (False: in reserve or out of use), `turns`, how often a
            packet took it, `probed` and `round_trip_ps`, see `probe_evs`.

        Raises:
            BadInputError: no such host, peer, value, plane, link or switch, or a transport without EVs.
        """
        return self._ev_control().rows(host, EvChoice(**choice))

    @raised_as_weft_errors()
    def deny_evs(self, host: str, **choice: Unpack[EvChoiceKeys]) -> int:
        """Have a host's queue pairs not use EVs, chosen as `evs` does, and return how many.

        Queue pairs to the same peer that are made later do not use the same values; nor do flows, where EVs name paths.

        Raises:
            BadInputError: as `evs`, and if no EV is chosen.
            WeftError: a queue pair would have no EV left; nothing has changed.
        """
        return self._ev_control().set_denied(host, EvChoice(**choice), denied=True)

    @raised_as_weft_errors()
    def allow_evs(self, host: str, **choice: Unpack[EvChoiceKeys]) -> int:
        """Undo `deny_evs`, and return how many EVs are chosen, even if no queue pair has them now.

        Raises:
            BadInputError: as `deny_evs`.
            WeftError: an EV passes what is drained or cordoned.
        """
        return self._ev_control().set_denied(host, EvChoice(**choice), denied=False)

    @raised_as_weft_errors()
    def probe_evs(self, host: str, **choice: Unpack[EvChoiceKeys]) -> list[EvRow]:
        """Send an EV probe over each EV, denied ones included, and return those with an outcome.

        `round_trip_ps` is None for a probe that is not answered. Choice and errors as `deny_evs`.
        """
        return self._ev_control().probe(host, EvChoice(**choice))

    @raised_as_weft_errors()
    def ev_profiles(self, host: str) -> list[EvProfileRow]:
        """Return a host's EV profiles (docs/mrc.md), those in the state init left out.

        Raises:
            BadInputError: no such host, or a transport without EVs.
        """
        return self._ev_control().profiles(host)

    @raised_as_weft_errors()
    def modify_ev_profile(self, host: str, profile_id: int, **attributes: Unpack[EvProfileKeys]) -> None:
        """Change an EV profile of a host: its `state` (init, offline, online) and attributes (docs/mrc.md).

        Raises:
            BadInputError: as `ev_profiles`, and for an id or attribute of another type.
            WeftError: an attribute or state that cannot be now.
        """
        self._ev_control().modify_profile(host, profile_id, attributes)

    @raised_as_weft_errors()
    def assign_ev_profile(self, host: str, profile_id: int) -> None:
        """Have a host's queue pairs that are made from now on take an EV profile.

        Raises:
            BadInputError: as `ev_profiles`, and for an id of another type. WeftError: the profile is not online.
        """
        self._ev_control().assign_profile(host, profile_id)

    @raised_as_weft_errors()
    def ev_events(self, host: str, most: int = MOST_EV_EVENTS) -> list[EvEventRow]:
        """Take a host's oldest EV events that nobody has taken, at most so many.

        An event is a change of an EV to a state that its profile's `ev_event_mask` names. `drop_count` counts the
        events before it that were dropped, because 4,096 waited.

        Raises:
            BadInputError: as `ev_profiles`, and for a `most` that is no whole number from 1 to 4,096.
        """
        return self._ev_control().take_events(host, most)

    def _ev_control(self) -> EvControl:
        protocol = self.options.transport.protocol
        return EvControl(self.topology, protocol, self.hosts.ask_hosts, self.lab.let_answers_arrive)

    @raised_as_weft_errors()
    def packet_conservation(self) -> ConservationCounts:
        """Return the fate of all packets so far.

        Raises:
            CheckFailedError: the counts do not balance. EnvironmentLacksError: the clock is real.
        """
        return self._findings.packet_conservation()

    @raised_as_weft_errors()
    def read(self, switch: str, entities: Iterable[Any]) -> list[Any]:
        """Read a switch's entities over P4Runtime, given and returned as finsy's classes.

        `fabric.read("p0l0", [finsy.P4TableEntry("ipv4_lpm")])`: unset fields are wildcards.

        Raises:
            BadInputError: no such switch, the program lacks the entity, or the switch refused.
        """
        return self.lab.controller.read(switch, entities)

    @raised_as_weft_errors()
    def read_counter(self, switch: str, counter: str, index: int) -> Count:
        """Return the counts of a cell of a P4 program's counter, by the counter's name in P4Info.

        Raises:
            BadInputError: no such switch, counter (the message has the valid ones) or cell.
        """
        return self.lab.controller.read_counter(switch, counter, index)[index]

    @raised_as_weft_errors()
    def read_counters(self, switch: str, counter: str) -> dict[int, Count]:
        """Return all cells of a counter by index; errors as `read_counter`."""
        return self.lab.controller.read_counter(switch, counter)

    @raised_as_weft_errors()
    def read_direct_counter(self, switch: str, counter: str) -> list[DirectCount]:
        """Return the counts of a table's entries, by the direct counter's name; errors as `read_counter`."""
        return self.lab.controller.read_direct_counter(switch, counter)

    @raised_as_weft_errors()
    def read_register(self, switch: str, register: str, index: int) -> int:
        """Return a cell of a P4 program's register, by the register's name in P4Info; errors as `read_counter`.

        BMv2 cannot read registers over P4Runtime, so there it raises BadInputError, too.
        """
        return self.lab.controller.read_register(switch, register, index)[index]

    @raised_as_weft_errors()
    def read_registers(self, switch: str, register: str) -> dict[int, int]:
        """Return all cells of a register by index; errors as `read_register`."""
        return self.lab.controller.read_register(switch, register)

    def capture(self, host: str, plane: int, path: Path | None) -> None:
        """Capture the frames that a host's RoCEv2 endpoint sends and receives in a plane to a pcap file; None ends it.

        The file has nanosecond timestamps of emulated time.
        """
        self._captures.of_host(host, plane, path)

    @raised_as_weft_errors()
    def capture_port(self, switch: str, port: int, path: Path | None) -> None:
        """Capture the frames that an embedded switch's port sends and receives to a pcap file; None ends it.

        The file has nanosecond timestamps of emulated time.

        Raises:
            BadInputError: no such switch or port. ChildError: the file cannot be written.
            EnvironmentLacksError: the fabric runs on BMv2.
        """
        self._captures.of_switch(switch, port, path)

    @raised_as_weft_errors()
    def capture_link(self, port: str, path: Path | None) -> None:
        """Capture the frames that a port, NODE:PORT of a switch or a host, sends and receives; None ends it.

        A path ending in .pcapng selects that format, with the port's name and rate; others are written as pcap.

        Raises:
            BadInputError: no such port. ChildError: the file cannot be written.
        """
        self._captures.of_port(port, path)

    def end_captures(self) -> list[str]:
        """End all captures; return, in words, which files are incomplete and why (a full disk)."""
        return self._captures.end()

    @raised_as_weft_errors()
    def observations(self) -> Observations:
        """Return the records so far that `options.observe` asks for (docs/results.md describes tables and columns)."""
        return self._findings.observations()

    @raised_as_weft_errors()
    def summary(self) -> RunResult:
        """Return all results so far, with the counters of all switches and hosts."""
        count = counted(len(self.topology.switches), "switch", "switches")
        self._progress(f"reading the counters of {count} and all hosts")
        return self._findings.all(self.slot_count)

    def _since_up_ps(self) -> int:
        return self.lab.operations.since_up_ps(self.hosts.now_ps())
