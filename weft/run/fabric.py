"""A fabric to run collectives and traffic on, from Python: what scripts, tests and the commands use."""

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
from weft.quantities.units import shown
from weft.recording.observations import Observations
from weft.results.collectives import CollectiveResult
from weft.results.flows import FlowsResult
from weft.results.kinds import R, ResultKind
from weft.results.link_events import LinkEventResult
from weft.results.model import Phase
from weft.results.rdma import RDMA, RdmaResult
from weft.results.run_result import RunResult
from weft.results.training_steps import TrainingStepResult
from weft.results.workloads import WorkloadResult
from weft.run.aggregation_job import AggregationJobs
from weft.run.collectives import (
    CollectiveRun,
)
from weft.run.exchanges import Exchanges, Running
from weft.run.findings import Findings
from weft.run.jobs import CollectiveData, JobRun, PlacedJob
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
from weft.traffic.control import EndpointGroup
from weft.traffic.extensions import TrafficPattern
from weft.traffic.flow_sizes import FlowSizes
from weft.traffic.jobs import Job
from weft.traffic.patterns import Flow
from weft.traffic.training import TrainingStep

if TYPE_CHECKING:
    from weft.engine.records import ConservationCounts


class Fabric:
    """A running fabric. Use as a context manager; leaving it leaves nothing behind.

    ```
    with Fabric(topologies.leaf_spine(planes=2, leaves=4, spines=2), seed=1) as fabric:
        run = fabric.collective("allreduce", buffers, algorithm="in-network")
    ```

    Args:
        topology: what to build; or the description of a run, which has the options.
        progress: called with what is being done, in words.
        watcher: shown how far runs are, from a thread of its own; not of several processes.
        processes: which serve the fabric together, under the virtual clock.
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
        **options: Unpack[FabricKeywords],
    ) -> None:
        if isinstance(topology, RunSpec):
            if options:
                raise BadInputError(f"{', '.join(options)}: the run's description has its options")
            spec = topology
        else:
            spec = fabric_run_spec(topology, **options)
        self.topology = spec.fabric
        self.lab = make_lab(self.topology, spec.options, progress, processes)
        self.lab.reducing_key = next(
            (
                f"traffic[{number}].{item.kind}"
                for number, item in enumerate(spec.traffic)
                if item.reduces_in_network
            ),
            "",
        )
        self.first_collective_done_s: float | None = None
        """When the first one was, by the machine's monotonic clock."""
        self.item_count = len(spec.traffic)
        """Items of the traffic that a scenario describes."""
        self.items_done = 0
        """How many of them have ended."""
        self._progress = progress
        self._jobs = AggregationJobs(self.lab)
        self._exchanges = Exchanges(self.lab, self._jobs, watcher, progress)
        self._rdma = RdmaRuns(self.lab, self._exchanges)
        self._findings = Findings(self.lab, self._exchanges, spec.name)
        self._spec = spec
        self._probed: Fabric | None = None
        own = weakref.proxy(self)  # so that a fabric that was left is free at once
        probes = Probes(own, lambda: own._fabric_of_probes())
        tuner = Tuner(self.topology, self.options, probes, progress, lambda: own.lab.aggregates)
        self.tasks = TaskMaker(self.lab, self._exchanges, tuner)
        """Makes what `run_together` runs."""
        self._captures = PortCaptures(self.lab, lambda: own.hosts)
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
            # What was dropped or late while the switches had no program yet says nothing about the fabric.
            self.lab.reset_switch_stats()
            self.hosts.reset_stats()
            self._findings.start_recording()
            with raised_as_weft_errors():
                self.lab.link_events.start()
            self._exit = stack.pop_all()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with interruptions_first(error):
            try:
                incomplete = self.end_captures() if error is None else []
                self._exit.close()
            finally:
                # What is kept of a fabric are its results.
                self._exchanges.stop()
            if incomplete:
                raise EnvironmentLacksError("; ".join(incomplete))

    @property
    def options(self) -> FabricOptions:
        """How it is run; once it is up, as its switches' programs allow."""
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
        """Return what runs now, and how far it is; to be called from any thread."""
        return self._exchanges.running()

    @property
    def slot_count(self) -> int:
        """Slots of an aggregation job: the option, or two bandwidth-delay products."""
        return self._jobs.slot_count

    @raised_as_weft_errors()
    def collective(
        self,
        collective: str,
        buffers: Sequence[NDArray[Any]],
        algorithm: str = "ring",
        *,
        operation: str = "sum",
        root: int = 0,
        ranks: Sequence[int] | None = None,
        tenant: str = "",
        data: str = "given",
        timeout_s: float = 300.0,
        repetitions: int = 1,
        warmup: int = 0,
    ) -> CollectiveRun:
        """Run a collective over all hosts and verify its result against NumPy.

        Args:
            collective: "allreduce", "reducescatter", "allgather", "alltoall", "broadcast" or "reduce", or
                path/to/file.py:Class, a `weft.Collective` of yours.
            buffers: every rank's input, all of one shape and of one of the types in `weft.traffic.data_types`, of which
                uint16 holds bfloat16; they are not changed. Those of a reduce-scatter and an all-to-all are cut into a
                chunk for each host (`CollectiveSpec.chunk`).
            algorithm: one of the collective's, see `weft.traffic.collectives`; "auto": the one that is predicted to be
                the fastest (docs/traffic.md).
            operation: of an all-reduce, a reduce-scatter or a reduce: "sum", "average", "max" or "min"; of integers
                "and", "or" or "xor", too.
            root: rank of a broadcast's or a reduce's root.
            ranks: the fabric's ranks that take part, with a buffer each; by default all.
            tenant: whose quotas a reduction in the network has, a name of the option `tenants`; "" nobody's.
            data: what the buffers are, for the result's table.
            timeout_s: seconds after which a run has failed: real ones, or of the virtual clock.
            repetitions: how often it is run; times are their mean, least and largest, the buffers the last one's.
            warmup: runs before these, which are verified, but whose times and packets do not count.

        Raises:
            BadInputError: unknown names, or buffers that do not fit together.
            CheckFailedError: the run failed or did not end in time.
        """
        task = self.tasks.collective(
            collective,
            buffers,
            algorithm,
            operation=operation,
            root=root,
            ranks=ranks,
            tenant=tenant,
            data=data,
            repetitions=repetitions,
            warmup=warmup,
        )
        figures, ended = self._run(task, timeout_s)
        return CollectiveRun(task.arrays(ended[-1].outputs), figures)

    @raised_as_weft_errors()
    def collective_of_lengths(
        self,
        collective: str,
        size_bytes: int,
        algorithm: str = "ring",
        *,
        dtype: str = "float32",
        operation: str = "sum",
        root: int = 0,
        ranks: Sequence[int] | None = None,
        tenant: str = "",
        timeout_s: float = 300.0,
        repetitions: int = 1,
        warmup: int = 0,
    ) -> CollectiveResult:
        """Run a collective of nccl-tests' size with lengths in place of data: nothing is verified.

        What the network reduces carries data all the same, zeros. Otherwise as `collective`.
        """
        task = self.tasks.collective_of_lengths(
            collective,
            size_bytes,
            algorithm,
            dtype=dtype,
            operation=operation,
            root=root,
            ranks=ranks,
            tenant=tenant,
            repetitions=repetitions,
            warmup=warmup,
        )
        return self._run(task, timeout_s)[0]

    @raised_as_weft_errors()
    def training_step(
        self,
        step: TrainingStep,
        algorithm: str = "ring",
        gradients: Sequence[NDArray[Any]] | None = None,
        *,
        dtype: str = "float32",
        tenant: str = "",
        timeout_s: float = 300.0,
    ) -> TrainingStepResult:
        """Run a step of data-parallel training, whose all-reduces overlap with its backward pass.

        Args:
            step: layers, buckets and compute times.
            algorithm: of the all-reduces.
            gradients: every host's, flat, in the order in which the backward pass makes them (last layer first); their
                sums are verified against NumPy. None: lengths stand for them, of `dtype`.
            dtype: of the gradients, if there are none.
            tenant: as `collective`.
            timeout_s: as `collective`, beyond the compute times.

        Raises:
            BadInputError, CheckFailedError: as `collective`.
        """
        check_timeout(timeout_s)
        task = self.tasks.training_step(step, algorithm, gradients, dtype=dtype, tenant=tenant)
        return self._run(task, timeout_s + step.compute_ps / 10**12 * self.options.dilation)[0]

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
    ) -> FlowsResult:
        """Have every other host write to one at the same time, in one plane.

        Args:
            receiver: whose name.
            bytes_per_sender: that each of the others writes.
            plane: over which.
            timeout_s: seconds after which the run has failed: real ones, or of the virtual clock.
            data: "zeros", or "lengths": under the virtual clock packets then carry the number of payload bytes only,
                at the same times, which large runs need.
            queue_pairs: among which each flow is divided.

        Raises:
            BadInputError: unknown host, plane or data, no other host, or a size that no flow can have.
            CheckFailedError: the run failed or did not end in time.
        """
        task = self.tasks.incast(receiver, bytes_per_sender, plane, data=data, queue_pairs=queue_pairs)
        return self._run(task, timeout_s)[0]

    @raised_as_weft_errors()
    def permutation(
        self, bytes_per_host: int, timeout_s: float = 300.0, *, data: str = "zeros", queue_pairs: int = 1
    ) -> FlowsResult:
        """Have every host write to one other, drawn from the seed, in every plane.

        `data`, `queue_pairs` and errors as `incast`.
        """
        return self._run(
            self.tasks.permutation(bytes_per_host, data=data, queue_pairs=queue_pairs), timeout_s
        )[0]

    @raised_as_weft_errors()
    def pattern(self, pattern: TrafficPattern, timeout_s: float = 300.0) -> FlowsResult:
        """Run the flows of a user's traffic pattern.

        Raises:
            BadInputError: the pattern raised, or one of its flows is not possible here; says which and why.
            CheckFailedError: the run failed or did not end in time.
        """
        return self._run(self.tasks.pattern(pattern), timeout_s)[0]

    @raised_as_weft_errors()
    def run_flows(
        self, name: str, flows: Sequence[Flow], timeout_s: float = 300.0, data: str = "zeros"
    ) -> FlowsResult:
        """Run flows from beginning to end, and note the result under `name`; `data` and errors as `incast`."""
        return self._run(self.tasks.flows(name, flows, data), timeout_s)[0]

    def run_job(
        self,
        job: Job,
        ranks: Sequence[int] | None = None,
        tenant: str = "",
        timeout_s: float = 300.0,
        *,
        data: CollectiveData = "lengths",
    ) -> JobRun:
        """Run a job; `ranks` are where its own are, `data` what its collectives work on. Otherwise as `run_jobs`."""
        placed = PlacedJob(job, None if ranks is None else tuple(ranks), data=data)
        return self.run_jobs([placed], timeout_s)[0]

    def run_jobs(self, jobs: Sequence[PlacedJob], timeout_s: float = 300.0) -> list[JobRun]:
        """Run jobs beside each other.

        Args:
            jobs: each with its place and its start.
            timeout_s: as `collective`, beyond the latest start.

        Raises:
            BadInputError: a job that cannot come to an end, for which the fabric has no place, or one of whose
                collectives cannot be. CheckFailedError: as `collective`.
        """
        check_timeout(timeout_s)
        require_all(jobs, PlacedJob, "run_jobs", "a PlacedJob, such as PlacedJob(job)")
        tasks = [self.tasks.job(each.job, each.ranks, each.data).at(each.start_ps) for each in jobs]
        latest_ps = max((each.start_ps for each in jobs), default=0)
        return self.run_together(tasks, timeout_s + latest_ps / 10**12 * self.options.dilation)

    @raised_as_weft_errors()
    def run_together(self, tasks: Sequence[Task[Any]], timeout_s: float = 300.0) -> list[Any]:
        """Run tasks (`self.tasks`) beside each other, each from its `at_ps` on, and return their results in this order.

        What hosts and switches count meanwhile (retransmissions, congestion notifications) is of all tasks together.

        Raises:
            BadInputError: no task, or one that is repeated. JobError: switches have no room for what they are to
                reduce. CheckFailedError: one failed, or not all ended in time.
        """
        require_all(tasks, Task, "run_together", "a task, such as fabric.tasks.job(job)")
        if not tasks:
            raise BadInputError("nothing to run together (valid: one task or more)")
        for task in tasks:
            TIME.check(task.at_ps, f"the start of {task.name}")
            if not task.repetitions.is_one:
                raise BadInputError(
                    f"{task.name} runs several times, which nothing can run beside (valid: once)"
                )
        return self._ended(tasks, [[each] for each in self._exchanges.run(tasks, timeout_s)])

    def run_unnoted(self, task: Task[Any], timeout_s: float, label: str) -> int:
        """Run a task once, whose result is no part of the fabric's, and return how long it took (ps)."""
        (ended,) = self._exchanges.run([task], timeout_s, label=label)
        return ended.outcome.duration_ps

    def _fabric_of_probes(self) -> Fabric:
        """Return a copy of the fabric, which runs as long as this one."""
        if self._probed is None:
            self._probed = self._exit.enter_context(Fabric(probed_copy(self._spec)))
        return self._probed

    def _run(self, task: Task[R], timeout_s: float) -> tuple[R, list[Ended]]:
        """Run a task as often as it is to be; returns its result, and each run."""
        runs, ended = task.repetitions, list[Ended]()
        for number, draw in runs.draws():
            # Of large data only the last repetition's are kept.
            ended = [replace(each, outputs=[]) for each in ended]
            ended += self._exchanges.run([task], timeout_s, draw, runs.label(number))
        return self._ended([task], [ended])[0], ended

    def _ended(self, tasks: Sequence[Task[Any]], ended: Sequence[Sequence[Ended]]) -> list[Any]:
        """Note the results of tasks, and return them."""
        results = []
        for task, runs in zip(tasks, ended, strict=True):
            if task.collective:
                self._findings.add_collective(task.collective)
                self.first_collective_done_s = self.first_collective_done_s or time.monotonic()
            results.append(task.result(runs))
            if task.kind is not None:
                self.add_result(task.kind, results[-1])
        return results

    def add_result(self, kind: ResultKind[R], result: R) -> None:
        """Note what a run has found, of a kind of result that a kind of traffic names; `summary` and tables have it."""
        self._findings.add(kind, result)

    @raised_as_weft_errors()
    def workload(
        self, flow_sizes: str | FlowSizes, load: float, duration_ps: int, timeout_s: float = 300.0
    ) -> WorkloadResult:
        """Have hosts start flows at random for a time, drawn from the seed, and wait for the last to end.

        Args:
            flow_sizes: "websearch", "fb_hadoop", "alibaba_storage", or a distribution of one's own.
            load: of all ports of a host, as a share of their rate.
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
                virtual clock also such an object itself. "others" stands for all hosts that are not named.
            parameters: by host, keyword arguments of what is named.
            timeout_s: as `incast`.

        Raises:
            BadInputError: no such host or program, or a file's program raised; what an object raises passes through.
            CheckFailedError: they did not return in time.
            EnvironmentLacksError: objects under the real clock.
        """
        check_timeout(timeout_s)
        hosts = [host.name for host in self.topology.hosts]
        result = self._rdma.run(host_programs(programs, parameters or {}, hosts), timeout_s)
        self.add_result(RDMA, result)
        return result

    @raised_as_weft_errors()
    def change_circuits(
        self, configuration: str, drain: bool | None = None, dark_time_ps: int | None = None
    ) -> CircuitChange:
        """Change the configuration of the fabric's circuits, and wait until routes have followed.

        Args:
            configuration: its name.
            drain: whether circuits that go are emptied first; by default as the option `circuits` says.
            dark_time_ps: from when circuits go until new ones are there; by default likewise.

        Raises:
            BadInputError: no such configuration, `drain` is no bool, or a dark time out of range; the message has what
                is valid.
            EnvironmentLacksError: the clock is the real one.
            CheckFailedError: packets used circuits that were to go until `controller.drain_timeout`, so that nothing
                was changed.
        """
        circuits, section = self.lab.circuits, self.options.circuits
        require_configuration(self.topology, configuration, "configuration")
        if drain not in (None, True, False):
            raise BadInputError(f"drain: {shown(drain)} (valid: True, False, None)")
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

        `a` and `b` are the nodes at its ends, or their ports ("p0l0:3") where several links join these.

        What is on the link, and in the queues of its ports, is lost when it fails. After `control.detection` and the
        control latency the controller programs the switches anew. The result, which is filled in as things happen, is
        among those of `summary`, too.

        Raises:
            BadInputError: no such link or state, or the real clock cannot bring it down (`links: internal`).
        """
        return self.lab.link_events.schedule(a, b, state, after_ps, self._since_up_ps() + after_ps)

    @raised_as_weft_errors()
    def packet_conservation(self) -> ConservationCounts:
        """Return what became of all packets so far.

        Raises:
            CheckFailedError: it does not balance. EnvironmentLacksError: the clock is the real one.
        """
        return self._findings.packet_conservation()

    @raised_as_weft_errors()
    def read(self, switch: str, entities: Iterable[Any]) -> list[Any]:
        """Read what a switch holds over P4Runtime, given and returned as finsy's entities.

        `fabric.read("p0l0", [finsy.P4TableEntry("ipv4_lpm")])`: fields that are not set are wildcards.

        Raises:
            BadInputError: no such switch, the program has not what was asked for, or the switch refused.
        """
        return self.lab.controller.read(switch, entities)

    @raised_as_weft_errors()
    def read_counter(self, switch: str, counter: str, index: int) -> Count:
        """Return what a cell of a counter of the P4 program has counted, by the counter's name in P4Info.

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
        """Return what the entries of a table have counted, by the direct counter's name; errors as `read_counter`."""
        return self.lab.controller.read_direct_counter(switch, counter)

    @raised_as_weft_errors()
    def read_register(self, switch: str, register: str, index: int) -> int:
        """Return a cell of a register of the P4 program, by the register's name in P4Info; errors as `read_counter`.

        BMv2 does not read registers over P4Runtime, so there it is a BadInputError, too.
        """
        return self.lab.controller.read_register(switch, register, index)[index]

    @raised_as_weft_errors()
    def read_registers(self, switch: str, register: str) -> dict[int, int]:
        """Return all cells of a register by index; errors as `read_register`."""
        return self.lab.controller.read_register(switch, register)

    def capture(self, host: str, plane: int, path: Path | None) -> None:
        """Record what a host's RoCEv2 endpoint sends and receives in a plane into a pcap file; None ends it.

        The file has nanosecond stamps of emulated time.
        """
        self._captures.of_host(host, plane, path)

    @raised_as_weft_errors()
    def capture_port(self, switch: str, port: int, path: Path | None) -> None:
        """Record what an embedded switch's port sends and receives into a pcap file; None ends it.

        The file has nanosecond stamps of emulated time.

        Raises:
            BadInputError: no such switch or port. ChildError: the file cannot be written.
            EnvironmentLacksError: the fabric runs on BMv2.
        """
        self._captures.of_switch(switch, port, path)

    @raised_as_weft_errors()
    def capture_link(self, port: str, path: Path | None) -> None:
        """Record what a port, NODE:PORT of a switch or a host, sends and receives; None ends it.

        A path that ends in .pcapng makes a file of that format, with the port's name and rate, else one in pcap.

        Raises:
            BadInputError: no such port. ChildError: the file cannot be written.
        """
        self._captures.of_port(port, path)

    def end_captures(self) -> list[str]:
        """End all captures; returns, in words, which files are incomplete and why (a full disk)."""
        return self._captures.end()

    @raised_as_weft_errors()
    def observations(self) -> Observations:
        """Return what was recorded so far, as `options.observe` asks (docs/results.md has tables and columns)."""
        return self._findings.observations()

    @raised_as_weft_errors()
    def summary(self) -> RunResult:
        """Return everything found so far, with the counters of all switches and hosts."""
        count = counted(len(self.topology.switches), "switch", "switches")
        self._progress(f"reading the counters of {count} and all hosts")
        return self._findings.all(self.slot_count)

    def _since_up_ps(self) -> int:
        return self.lab.operations.since_up_ps(self.hosts.now_ps())
