"""A fabric to run collectives and traffic on, from Python: what scripts, tests and the commands use."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from numpy.typing import NDArray

from weft.clocks.endpoint_settings import path_round_trip_ps
from weft.clocks.environment import CIRCUITS_STAY
from weft.clocks.lab import Progress, make_lab
from weft.clocks.watching import Watcher
from weft.controller.arrays import DirectCount
from weft.controller.circuits import CircuitChange
from weft.controller.counters import Count
from weft.controller.features.depth_ages import DepthAges
from weft.error_translation import raised_as_weft_errors
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError
from weft.hints import did_you_mean
from weft.quantities.definitions import FLOW_SIZE, MESSAGE_SIZE, POSITIVE_TIME, QUEUE_PAIRS, TIME
from weft.quantities.units import shown
from weft.recording.ideal_times import IdealTimes
from weft.recording.observations import Observations, Recorded, merged, named_tables, ports_table
from weft.recording.places import Places
from weft.results.arrays import ObservedArrays
from weft.results.circuit_changes import CIRCUIT_CHANGES
from weft.results.collectives import COLLECTIVES, LENGTHS, CollectiveResult, collective_result
from weft.results.counters import (
    HostTotals,
    absorbed_totals,
    drop_totals,
    lateness_of,
    plane_results,
)
from weft.results.credits import credit_results
from weft.results.flows import FLOWS, FlowsResult, flows_result
from weft.results.kinds import R, ResultKind
from weft.results.link_events import LinkEventResult
from weft.results.link_faults import link_fault_results
from weft.results.model import Phase
from weft.results.packet_conservation import PacketConservation, checked_conservation
from weft.results.queue_depth_ages import queue_depth_ages
from weft.results.run_result import RunResult
from weft.results.switch_memory import memory_results
from weft.results.training_steps import TRAINING_STEPS, TrainingStepResult, verify_gradients
from weft.results.verification import Verdict, verify
from weft.results.workloads import WORKLOADS, WorkloadResult, workload_result
from weft.run.aggregation_job import AggregationJob
from weft.run.collectives import (
    CollectiveRun,
    Repetitions,
    checked_buffers,
    collective_spec,
    data_of_ranks,
    found_collective,
    results_of_ranks,
)
from weft.run.exchanges import Exchanges
from weft.run.made_by import made_by
from weft.run.spec import RunSpec, fabric_run_spec
from weft.scenario import FLOW_DATA, FabricKeywords
from weft.scenario.circuits import DARK_TIME, require_configuration
from weft.scenario.keywords import with_fabric_keywords
from weft.scenario.routing_checks import reordering_warning
from weft.system.child_processes import ChildError
from weft.system.signals import interruptions_first
from weft.topologies import FabricSpec
from weft.traffic.collectives import COLLECTIVE_KINDS, Collective
from weft.traffic.control import EndpointGroup, RankBuffer
from weft.traffic.extensions import TrafficPattern, flows_of
from weft.traffic.flow_sizes import FlowSizes
from weft.traffic.flow_sizes import flow_sizes as named_flow_sizes
from weft.traffic.messages import AS_BYTES, AS_LENGTHS, Payload
from weft.traffic.patterns import Flow, incast, permutation
from weft.traffic.schedule_nodes import ELEMENT_BYTES
from weft.traffic.schedules import CollectiveSpec
from weft.traffic.training import GRADIENT_COLLECTIVE, TrainingStep
from weft.traffic.workload import poisson_flows

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
        watcher: shown how far runs are, from a thread of its own.
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
        **options: Unpack[FabricKeywords],
    ) -> None:
        if isinstance(topology, RunSpec):
            if options:
                raise BadInputError(f"{', '.join(options)}: the run's description has its options")
            spec = topology
        else:
            spec = fabric_run_spec(topology, **options)
        self.topology = spec.fabric
        self.options = spec.options
        self._scenario = spec.name
        self.lab = make_lab(self.topology, self.options, progress)
        self._results: dict[str, list[Any]] = {}
        self._recorded: list[Recorded] = []
        # Kind, node and number of what is being captured, in order of their beginning.
        self._captures: dict[tuple[str, str, int], None] = {}
        self.first_collective_done_s: float | None = None
        """When the first one was, by the machine's monotonic clock."""
        self._progress = progress
        self._job = AggregationJob(self.lab)
        self._exchanges = Exchanges(self.lab, self._job, watcher, progress)
        # Where their definitions are, in order of the first run.
        self._collectives_run: dict[str, None] = {}
        self._arrays = ObservedArrays()
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Fabric:
        with interruptions_first(), contextlib.ExitStack() as stack:
            stack.enter_context(self.lab)
            with raised_as_weft_errors():
                self._arrays = ObservedArrays.of(self.options.observe, self.lab.program)
            self._progress("starting the hosts' endpoints")
            self._exchanges.start(stack.enter_context(self.lab.hosts()))
            # What was dropped or late while the switches had no program yet says nothing about the fabric.
            self.lab.reset_switch_stats()
            self.hosts.reset_stats()
            if self.options.observe.any:
                self.lab.start_recording()
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
    def hosts(self) -> EndpointGroup:
        """All hosts' endpoints. Raises NotRunningError outside the fabric's `with`."""
        return self._exchanges.hosts

    @property
    def phases(self) -> list[Phase]:
        """The runs so far."""
        return self._exchanges.phases

    @property
    def slot_count(self) -> int:
        """Slots of the aggregation job: the option, or two bandwidth-delay products."""
        return self._job.slot_count

    @raised_as_weft_errors()
    def collective(
        self,
        collective: str,
        buffers: Sequence[NDArray[Any]],
        algorithm: str = "ring",
        *,
        operation: str = "sum",
        root: int = 0,
        data: str = "given",
        timeout_s: float = 300.0,
        repetitions: int = 1,
        warmup: int = 0,
    ) -> CollectiveRun:
        """Run a collective over all hosts and verify its result against NumPy.

        Args:
            collective: "allreduce", "reducescatter", "allgather", "alltoall", "broadcast" or "reduce", or
                path/to/file.py:Class, a `weft.Collective` of yours.
            buffers: every host's input, all of one shape, int32 or float32; they are not changed. Those of a
                reduce-scatter and an all-to-all are cut into a chunk for each host (`CollectiveSpec.chunk`).
            algorithm: one of the collective's, see `weft.traffic.collectives`.
            operation: of an all-reduce, a reduce-scatter or a reduce: "sum", "max" or "min".
            root: rank of a broadcast's or a reduce's root.
            data: what the buffers are, for the result's table.
            timeout_s: seconds after which a run has failed: real ones, or of the virtual clock.
            repetitions: how often it is run; times are their mean, least and largest, the buffers the last one's.
            warmup: runs before these, which are verified, but whose times and packets do not count.

        Raises:
            BadInputError: unknown names, or buffers that do not fit together.
            CheckFailedError: the run failed or did not end in time.
        """
        ranks = self.topology.rank_count
        arrays = checked_buffers(buffers, ranks)
        found = found_collective(collective)
        elements = found.element_count(arrays[0].size, ranks)
        spec = self._spec(found, algorithm, elements, arrays[0].dtype.name, operation, root)
        inputs = data_of_ranks(found, spec, arrays)
        runs = Repetitions(repetitions, warmup)
        figures, outputs = self._run_collective(found, algorithm, spec, inputs, data, timeout_s, runs)
        shaped = [found.shaped(output, arrays[0].shape) for output in outputs]
        return CollectiveRun(shaped, figures)

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
        timeout_s: float = 300.0,
        repetitions: int = 1,
        warmup: int = 0,
    ) -> CollectiveResult:
        """Run a collective of nccl-tests' size with lengths in place of data: nothing is verified.

        What the network reduces carries data all the same, zeros. Otherwise as `collective`.
        """
        MESSAGE_SIZE.check(size_bytes, "a collective's size")
        ranks = self.topology.rank_count
        found = found_collective(collective)
        elements = found.element_count(found.input_elements(size_bytes, ranks), ranks)
        if not elements:
            raise BadInputError(f"{collective} of {size_bytes} B leaves {ranks} ranks nothing to exchange")
        spec = self._spec(found, algorithm, elements, dtype, operation, root)
        runs = Repetitions(repetitions, warmup)
        figures, _ = self._run_collective(found, algorithm, spec, None, LENGTHS, timeout_s, runs)
        return figures

    def _run_collective(
        self,
        collective: Collective,
        algorithm: str,
        spec: CollectiveSpec,
        inputs: list[NDArray[Any]] | None,
        data: str,
        timeout_s: float,
        repetitions: Repetitions,
    ) -> tuple[CollectiveResult, list[NDArray[Any]]]:
        """Run as often as asked, verify and write down a collective; returns every rank's result, none for lengths."""

        def prepare(buffers: Sequence[RankBuffer], results: list[Path]) -> int:
            return self.hosts.prepare_collective(
                self._over_planes_in_use(spec),
                algorithm,
                buffers,
                results,
                collective=collective.reference,
                telemetry=self.options.int_telemetry,
                payload=self._payload(LENGTHS),
            )

        self._collectives_run[collective.reference] = None
        chosen = collective.algorithm(algorithm)
        name = f"{collective.name} {spec.element_count * ELEMENT_BYTES} B, {algorithm}"
        verdicts: list[Verdict] = []
        times_ps: list[int] = []
        counts: list[HostTotals] = []
        results: list[NDArray[Any]] = []
        for number, draw in repetitions.draws():
            before = self._exchanges.begin(draw, chosen.in_network)
            outcome, outputs = self._exchanges.exchange(prepare, inputs, timeout_s)
            after = self._exchanges.end(f"{name}{repetitions.label(number)}", outcome, chosen.in_network)
            if inputs is not None:
                results = results_of_ranks(collective, spec, outputs)
                verdicts.append(verify(collective, chosen, spec, inputs, results))
            if not repetitions.is_warmup(number):
                times_ps.append(outcome.duration_ps)
                counts.append(after - before)
        figures = collective_result(
            collective, algorithm, spec, times_ps, counts, verdicts, warmup=repetitions.warmup, data=data
        )
        self.add_result(COLLECTIVES, figures)
        self.first_collective_done_s = self.first_collective_done_s or time.monotonic()
        return figures, results

    @raised_as_weft_errors()
    def training_step(
        self,
        step: TrainingStep,
        algorithm: str = "ring",
        gradients: Sequence[NDArray[Any]] | None = None,
        *,
        dtype: str = "float32",
        timeout_s: float = 300.0,
    ) -> TrainingStepResult:
        """Run a step of data-parallel training, whose all-reduces overlap with its backward pass.

        Args:
            step: layers, buckets and compute times.
            algorithm: of the all-reduces.
            gradients: every host's, flat, in the order in which the backward pass makes them (last layer first); their
                sums are verified against NumPy. None: lengths stand for them, of `dtype`.
            dtype: "float32" or "int32".
            timeout_s: as `collective`, beyond the compute times.

        Raises:
            BadInputError, CheckFailedError: as `collective`.
        """
        TIME.check(step.compute_ps, "the step's compute times")
        timeout_s += step.compute_ps / 10**12 * self.options.dilation
        arrays = checked_buffers(gradients, self.topology.rank_count) if gradients is not None else None
        inputs = None if arrays is None else [each.ravel() for each in arrays]
        count = step.gradient_count if inputs is None else inputs[0].size
        name = dtype if inputs is None else inputs[0].dtype.name
        all_reduce = COLLECTIVE_KINDS[GRADIENT_COLLECTIVE]
        spec = self._spec(all_reduce, algorithm, count, name)
        if count != step.gradient_count:
            raise BadInputError(f"buffers of {count} gradients for a step of {step.gradient_count}")
        before = self._exchanges.begin(in_network=all_reduce.algorithm(algorithm).in_network)

        def prepare(buffers: Sequence[RankBuffer], results: list[Path]) -> int:
            telemetry = self.options.int_telemetry
            return self.hosts.prepare_training_step(
                step,
                algorithm,
                self._over_planes_in_use(spec),
                buffers,
                results,
                telemetry=telemetry,
                payload=self._payload(LENGTHS),
            )

        outcome, outputs = self._exchanges.exchange(prepare, inputs, timeout_s)
        counted = (
            self._exchanges.end(f"training step of {count * ELEMENT_BYTES} B, {algorithm}", outcome) - before
        )
        verdict = verify_gradients(step, algorithm, spec, inputs, outputs) if inputs is not None else None
        result = TrainingStepResult(
            algorithm=algorithm,
            ranks=spec.rank_count,
            layers=len(step.layers),
            buckets=len(step.buckets()),
            gradient_bytes=count * ELEMENT_BYTES,
            dtype=name,
            step_ps=outcome.duration_ps,
            compute_ps=step.compute_ps,
            verified=verdict is not None,
            wrong=verdict.wrong if verdict else 0,
            identical=verdict.identical if verdict else True,
            retransmissions=counted.retransmissions,
        )
        self.add_result(TRAINING_STEPS, result)
        return result

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
        self._require_other_hosts("an incast")
        target = self.topology.host(receiver).index
        self.topology.host(receiver).nic(plane)
        senders = [host.index for host in self.topology.hosts]
        flows = incast(target, senders, bytes_per_sender, plane, queue_pairs=queue_pairs)
        name = f"incast on {receiver}, plane {plane}{_divided(queue_pairs)}"
        return self.run_flows(name, flows, timeout_s, data)

    @raised_as_weft_errors()
    def permutation(
        self, bytes_per_host: int, timeout_s: float = 300.0, *, data: str = "zeros", queue_pairs: int = 1
    ) -> FlowsResult:
        """Have every host write to one other, drawn from the seed, in every plane.

        `data`, `queue_pairs` and errors as `incast`.
        """
        self._require_other_hosts("a permutation")
        flows = [
            flow
            for plane in self._nics_in_use()
            for flow in permutation(
                len(self.topology.hosts), bytes_per_host, plane, self.options.seed, queue_pairs
            )
        ]
        return self.run_flows(f"permutation{_divided(queue_pairs)}", flows, timeout_s, data)

    @raised_as_weft_errors()
    def pattern(self, pattern: TrafficPattern, timeout_s: float = 300.0) -> FlowsResult:
        """Run the flows of a user's traffic pattern.

        Raises:
            BadInputError: the pattern raised, or one of its flows is not possible here; says which and why.
            CheckFailedError: the run failed or did not end in time.
        """
        flows = flows_of(pattern, self.topology, self.options.seed)
        return self.run_flows(type(pattern).__name__, flows, timeout_s)

    @raised_as_weft_errors()
    def run_flows(
        self, name: str, flows: Sequence[Flow], timeout_s: float = 300.0, data: str = "zeros"
    ) -> FlowsResult:
        """Run flows from beginning to end, and note the result under `name`; `data` and errors as `incast`."""
        if data not in FLOW_DATA:
            raise BadInputError(f"unknown data '{data}'; {did_you_mean(data, FLOW_DATA)}")
        self._require_no_spares("flows")
        in_use = self._nics_in_use()
        for flow in flows:
            FLOW_SIZE.check(flow.size_bytes, "a flow's size")
            TIME.check(flow.start_ps, "a flow's start")
            QUEUE_PAIRS.check(flow.queue_pairs, "a flow's queue pairs")
            if flow.queue_pairs > flow.size_bytes:
                raise BadInputError(
                    f"a flow of {flow.size_bytes} B over {flow.queue_pairs} queue pairs (valid: 1 to {flow.size_bytes})"
                )
            if flow.plane not in in_use and flow.plane < self.topology.nics_per_host:
                valid = ", ".join(map(str, in_use))
                raise BadInputError(f"a flow over {flow.plane}, whose plane is out of use (valid: {valid})")
        before = self._exchanges.begin()
        group = self.hosts
        self._progress(f"connecting the hosts of {len(flows)} flows")
        run = group.prepare_traffic(flows, telemetry=self.options.int_telemetry, payload=self._payload(data))
        self._progress(f"running {len(flows)} flows")
        with self._exchanges.watched(run, flows):
            outcome, records = group.run_flows(run, timeout_s)
        counted = self._exchanges.end(name, outcome) - before
        result = flows_result(
            name,
            self.topology,
            flows,
            records,
            outcome.duration_ps,
            retransmissions=counted.retransmissions,
            cnps=counted.cnps,
        )
        self.add_result(FLOWS, result)
        return result

    def add_result(self, kind: ResultKind[R], result: R) -> None:
        """Note what a run has found, of a kind of result that a kind of traffic names; `summary` and tables have it."""
        self._results.setdefault(kind.key, []).append(result)

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
        self._require_other_hosts("a workload")
        POSITIVE_TIME.check(duration_ps, "a workload's duration")
        try:
            sizes = named_flow_sizes(flow_sizes) if isinstance(flow_sizes, str) else flow_sizes
            flows = poisson_flows(
                len(self.topology.hosts), self._nic_rates_bps(), sizes, load, duration_ps, self.options.seed
            )
        except ValueError as error:
            raise BadInputError(str(error)) from None
        if not flows:
            raise BadInputError(
                f"no flow starts within {duration_ps} ps at a load of {load:g}; give the workload more time"
            )
        before = self._exchanges.begin()
        run = self.hosts.prepare_workload(
            flows, telemetry=self.options.int_telemetry, payload=self._payload(LENGTHS)
        )
        with self._exchanges.watched(run, flows):
            outcome, records = self.hosts.run_flows(run, timeout_s)
        counted = self._exchanges.end(f"{sizes.name} at a load of {load:g}", outcome) - before
        result = workload_result(
            sizes,
            load,
            duration_ps,
            flows,
            records,
            IdealTimes.of_fabric(self.lab.controller.controller.fabric, self.options),
            outcome.duration_ps,
            counted.cnps,
        )
        self.add_result(WORKLOADS, result)
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
        counts = self.lab.packet_conservation()
        if counts is None:
            raise EnvironmentLacksError("only the virtual clock counts what becomes of all packets")
        return checked_conservation(counts)

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
        spec = self.topology.host(host)
        spec.nic(plane)
        self._captures.pop(("host", host, plane), None)
        self.hosts.capture(spec.index, plane, path)
        if path is not None:
            self._captures["host", host, plane] = None

    @raised_as_weft_errors()
    def capture_port(self, switch: str, port: int, path: Path | None) -> None:
        """Record what an embedded switch's port sends and receives into a pcap file; None ends it.

        The file has nanosecond stamps of emulated time.

        Raises:
            BadInputError: no such switch or port. ChildError: the file cannot be written.
            EnvironmentLacksError: the fabric runs on BMv2.
        """
        self.topology.switch(switch).port(port)
        self._captures.pop(("switch", switch, port), None)
        self.lab.capture_port(switch, port, path)
        if path is not None:
            self._captures["switch", switch, port] = None

    @raised_as_weft_errors()
    def capture_link(self, port: str, path: Path | None) -> None:
        """Record what a port, NODE:PORT of a switch or a host, sends and receives; None ends it.

        A path that ends in .pcapng makes a file of that format, with the port's name and rate, else one in pcap.

        Raises:
            BadInputError: no such port. ChildError: the file cannot be written.
        """
        name = Places(self.topology).checked_ports("captures", [port])[0]
        node, _, number = name.rpartition(":")
        if any(node == host.name for host in self.topology.hosts):
            self.capture(node, int(number), path)
        else:
            self.capture_port(node, int(number), path)

    def end_captures(self) -> list[str]:
        """End all captures; returns, in words, which files are incomplete and why (a full disk)."""
        failures = []
        for kind, node, number in list(self._captures):
            try:
                (self.capture if kind == "host" else self.capture_port)(node, number, None)
            except (OSError, ChildError) as error:
                failures.append(str(error))
        return failures

    @raised_as_weft_errors()
    def observations(self) -> Observations:
        """Return what was recorded so far, as `options.observe` asks (docs/results.md has tables and columns)."""
        if not self.options.observe.any:
            return Observations(file_format=self.options.observe.format)
        recorded, rows_lost = self.lab.recorded()
        self._recorded.extend(recorded)
        tables = named_tables(self.topology, self.options, merged(self._recorded))
        return Observations(tables, rows_lost, self.options.observe.format)

    @raised_as_weft_errors()
    def summary(self) -> RunResult:
        """Return everything found so far, with the counters of all switches and hosts."""
        self._progress(f"reading the counters of {len(self.topology.switches)} switches and all hosts")
        counters = self.lab.controller.read_counters()
        switches = self.lab.switch_stats()
        endpoints = self.hosts.stats()
        totals = HostTotals.of(endpoints)
        path = self._exchanges.int_path
        observations = self.observations()
        observations.tables["ports"] = ports_table(self.topology, switches, endpoints)
        arrays = self._arrays.read(self.topology, self.lab.controller)
        observations.tables.update(arrays.tables(self.options.observe))
        lateness = None
        if self.options.clock == "real":
            rtt_ps = path_round_trip_ps(self.topology, self.lab.frame_bytes, self.options.switching.latency)
            lateness = lateness_of(switches, endpoints, rtt_ps, self.options.dilation)
        return RunResult(
            made_by=made_by(self.lab, self.hosts, self._scenario, self.slot_count, self._collectives_run),
            traffic={key: list(results) for key, results in self._results.items()} | self._circuit_changes(),
            planes=plane_results(self.topology, counters, switches),
            memory=memory_results(self.topology, switches, endpoints),
            int_paths=[path] if path is not None else [],
            credits=credit_results(self.topology, switches, endpoints),
            queue_depth_ages=queue_depth_ages(self.topology, self._queue_depth_ages()),
            link_faults=link_fault_results(self.topology, switches),
            counters=arrays.counters_in_results,
            registers=arrays.registers_in_results,
            rows_lost=observations.rows_lost,
            warnings=[warning] if (warning := reordering_warning(self.options)) else [],
            drops=drop_totals(counters, switches, endpoints),
            absorbed=absorbed_totals(counters),
            packet_conservation=None
            if self.options.clock == "real"
            else PacketConservation.of(self.packet_conservation()),
            link_events=self.lab.link_events.results_now(),
            unfinished_events=self.lab.link_events.unfinished(),
            controller_events=self.lab.link_events.controller_events(),
            retransmissions=totals.retransmissions,
            cnps=totals.cnps,
            dropped_packet_ins=self.lab.controller.dropped_packet_ins,
            lateness=lateness,
            phases=list(self.phases),
            observations=observations,
        )

    def _circuit_changes(self) -> dict[str, list[Any]]:
        """Scheduled ones too, which no item of the traffic has noted; nothing where there were none."""
        circuits = self.lab.circuits
        return {CIRCUIT_CHANGES.key: list(circuits.changes)} if circuits and circuits.changes else {}

    def _queue_depth_ages(self) -> dict[str, DepthAges]:
        """By switch name; nothing where no choice is made by depths."""
        return self.lab.controller.read_depth_ages() if self.options.load_balancing.is_adaptive else {}

    def _since_up_ps(self) -> int:
        return self.lab.operations.since_up_ps(self.hosts.now_ps())

    def _nics_in_use(self) -> list[int]:
        """Return the numbers of every host's NICs in planes that are in use."""
        planes = self.lab.operations.planes_in_use
        return [nic.number for nic in self.topology.hosts[0].nics if nic.plane in planes]

    def _nic_rates_bps(self) -> tuple[int, ...]:
        """Return the rate of each of a host's NICs, 0 in planes that are out of use."""
        in_use = self._nics_in_use()
        return tuple(nic.link.rate_bps if nic.number in in_use else 0 for nic in self.topology.hosts[0].nics)

    def _spec(
        self,
        collective: Collective,
        algorithm: str,
        element_count: int,
        dtype: str,
        operation: str = "sum",
        root: int = 0,
    ) -> CollectiveSpec:
        """Return the parameters of a collective over the planes that are in use; errors as `collective_spec`."""
        spec = collective_spec(self.topology, collective, algorithm, element_count, dtype, operation, root)
        return self._over_planes_in_use(spec)

    def _over_planes_in_use(self, spec: CollectiveSpec) -> CollectiveSpec:
        """Return what is to be run over the planes that are in use now, which may change from run to run."""
        return replace(spec, plane_rates_bps=self._nic_rates_bps())

    def _payload(self, data: str) -> Payload:
        """Return how zeros travel that stand for such data: over real interfaces always as bytes."""
        return AS_LENGTHS if data == LENGTHS and self.options.clock == "virtual" else AS_BYTES

    def _require_no_spares(self, what: str) -> None:
        if self.topology.spares:
            raise BadInputError(f"{what}: between hosts, not ranks, on a fabric with spares (valid: without)")

    def _require_other_hosts(self, what: str) -> None:
        self._require_no_spares(what)
        if len(self.topology.hosts) < 2:
            raise BadInputError(f"{what} needs 2 hosts or more; the fabric has 1")


def _divided(queue_pairs: int) -> str:
    """For the name of a pattern."""
    return f" over {queue_pairs} queue pairs a flow" if queue_pairs > 1 else ""
