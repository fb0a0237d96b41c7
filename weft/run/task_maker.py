"""Makes tasks for a fabric's hosts: collectives, training steps, flows, workloads, jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from weft.clocks.lab import Lab
from weft.error_translation import raised_as_weft_errors
from weft.errors import BadInputError, InvalidValueError, translated
from weft.hints import did_you_mean
from weft.jobs.plain_jobs import collectives_job
from weft.quantities.definitions import FLOW_SIZE, POSITIVE_TIME, QUEUE_PAIRS, TIME
from weft.quantities.traffic_classes import DATA_CLASS
from weft.recording.ideal_times import IdealTimes
from weft.results.choices import AlgorithmChoice
from weft.results.clearances import clearances_of
from weft.results.collectives import COLLECTIVES, LENGTHS, CollectiveResult, collective_result
from weft.results.flows import FLOWS, FlowsResult, flows_result
from weft.results.training_steps import TRAINING_STEPS, TrainingStepResult, verify_gradients
from weft.results.verification import Verdict, verify
from weft.results.workloads import WORKLOADS, WorkloadResult, workload_result
from weft.run.algorithms import placed_group
from weft.run.clear_to_send import checked_clear_to_send
from weft.run.collectives import (
    CollectiveRequest,
    Repetitions,
    checked_buffers,
    data_of_ranks,
    data_type,
    found_collective,
    results_of_ranks,
)
from weft.run.exchanges import Exchanges
from weft.run.group_collectives import GroupCollective, collective_call
from weft.run.job_data import JobData
from weft.run.jobs import COLLECTIVE_DATA, CollectiveData, JobRun, job_run, placed_ranks, rank_places
from weft.run.nccl import chosen_by_nccl, objection_to_nccl
from weft.run.protocols import chosen_protocol
from weft.run.reducing_groups import ReducingGroup, groups_of, jobs_of_ranks
from weft.run.task import Ended, Task
from weft.run.tuner import Question, Tuner
from weft.scenario import FLOW_DATA, FabricOptions
from weft.scenario.tenant_shares import class_of_tenant
from weft.scenario.traffic import FLOW_OPERATIONS, MESSAGES
from weft.traffic.clear_to_send import ClearToSend
from weft.traffic.collectives import AUTO, CHOICES, COLLECTIVE_KINDS, NCCL, Collective
from weft.traffic.extensions import TrafficPattern, flows_of
from weft.traffic.flow_sizes import FlowSizes
from weft.traffic.flow_sizes import flow_sizes as named_flow_sizes
from weft.traffic.jobs import CollectiveCall, Job
from weft.traffic.jobs.classes import JobClasses
from weft.traffic.jobs.operations import Kind
from weft.traffic.jobs.placing import PlacedRanks, RankPlaces
from weft.traffic.mapped_data import RankBuffer
from weft.traffic.messages import AS_BYTES, AS_LENGTHS, Payload
from weft.traffic.nccl import NcclChoice
from weft.traffic.patterns import Flow, incast, permutation
from weft.traffic.protocols import NONE
from weft.traffic.schedule_nodes import ALL_PLANES
from weft.traffic.schedules import CollectiveSpec
from weft.traffic.striping import joined
from weft.traffic.training import GRADIENT_COLLECTIVE, STEP_NEEDS_LANES, TrainingStep
from weft.traffic.transports.registry import require_carried
from weft.traffic.workload import poisson_flows


def _as_chosen(
    request: CollectiveRequest, collective: Collective, choice: AlgorithmChoice | NcclChoice | None
) -> CollectiveRequest:
    """Return a request with the protocol and the algorithm of NCCL's choice, if there is one."""
    if not isinstance(choice, NcclChoice):
        return request
    reduces = collective.algorithm(choice.algorithm).in_network
    return replace(request, algorithm=choice.algorithm, protocol=NONE if reduces else choice.protocol)


class TaskMaker:
    """Checks arguments and returns tasks for the lab's hosts.

    Arguments and errors are as in the methods of `weft.Fabric` with the same names, which also run the task.
    """

    def __init__(self, lab: Lab, exchanges: Exchanges, tuner: Tuner) -> None:
        self._lab = lab
        self._exchanges = exchanges
        self._tuner = tuner
        self._topology = lab.fabric

    @property
    def _options(self) -> FabricOptions:
        return self._lab.options

    @raised_as_weft_errors()
    def collective(self, request: CollectiveRequest) -> Task[CollectiveResult]:
        """Return a collective. Raises BadInputError and JobError as `Fabric.run`."""
        if not isinstance(request, CollectiveRequest):
            raise BadInputError(
                f"cannot run {type(request).__name__}",
                valid='a CollectiveRequest, such as CollectiveRequest("allreduce", buffers)',
            )
        self._require_carried(str(request.collective), MESSAGES)
        ranks = None if request.ranks is None else tuple(request.ranks)
        if ranks is None and self._class_of(request.tenant) != DATA_CLASS:
            ranks = tuple(range(self._topology.rank_count))  # only a job's traffic has classes
        arrays: list[NDArray[Any]] | None = None
        if (buffers := request.buffers) is None:
            size_bytes, dtype = request.size_bytes, data_type(request.dtype)
        else:
            arrays, dtype = checked_buffers(buffers, self._topology.rank_count if ranks is None else len(ranks))
        found = found_collective(request.collective)
        question = Question(found, dtype, request.operation, request.root, ranks, request.tenant)
        count = question.rank_count(self._topology)
        if arrays is not None:
            elements = found.element_count(arrays[0].size, count)
        elif not (elements := question.element_count(size_bytes, self._topology)):
            raise BadInputError(f"{request.collective} of {size_bytes} B leaves {count} ranks nothing to exchange")
        repetitions = Repetitions(request.repetitions, request.warmup)
        data = LENGTHS if arrays is None else request.data
        if ranks is not None:
            group = self._group(question, request.algorithm, elements, ranks, request)
            return self._of_group(group, arrays, data, repetitions).of(request.tenant)
        choice = self._choice(question, request, elements)
        spec = self._spec(question, choice.algorithm if choice else request.algorithm, elements)
        spec = replace(spec, **self._messages(_as_chosen(request, found, choice), found, spec))
        inputs = None if arrays is None else data_of_ranks(found, spec, arrays)
        task = self._collective(found, request.algorithm, spec, inputs, data, repetitions, choice)
        if arrays is not None:
            shape = arrays[0].shape

            def shaped(ranks_data: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
                return [found.shaped(each, shape) for each in results_of_ranks(found, spec, ranks_data)]

            task = replace(task, arrays=shaped)
        return task.of(request.tenant)

    def _require_carried(self, what: str, operations: Iterable[str]) -> None:
        """Raise BadInputError unless the fabric's transport carries what a task posts."""
        with translated(InvalidValueError, BadInputError, place=what):
            require_carried(self._options.transport.kind, operations)

    def _choice(
        self, question: Question, request: CollectiveRequest, elements: int
    ) -> AlgorithmChoice | NcclChoice | None:
        """Return the choice of `auto` or `nccl`; None for another algorithm."""
        if request.algorithm == AUTO:
            return self._tuner.choose(question, elements)
        if request.algorithm != NCCL:
            return None
        collective, ranks = question.collective, question.ranks
        if objection := objection_to_nccl(collective):
            raise BadInputError(objection)
        first = collective.algorithms[0].name
        if ranks is None:
            spec = self._spec(question, first, elements)
        else:
            spec = placed_group(question.call(first, elements), ranks, self._topology).spec
        return chosen_by_nccl(collective, spec, self._topology, self._options, request.protocol, ranks)

    def _messages(self, request: CollectiveRequest, collective: Collective, spec: CollectiveSpec) -> dict[str, Any]:
        """Return how messages travel: fields of specs and calls. Raises BadInputError for what cannot be."""
        algorithm = request.algorithm
        clearing = checked_clear_to_send(request.clear_to_send, collective, algorithm, self._topology)
        spec = replace(spec, clear_to_send=clearing)
        protocol = chosen_protocol(request.protocol, collective, algorithm, spec, self._topology, self._options)
        return {"protocol": protocol, "clear_to_send": clearing}

    def _group(
        self, question: Question, algorithm: str, elements: int, ranks: Sequence[int], request: CollectiveRequest
    ) -> GroupCollective:
        """Return a collective of some ranks. Raises BadInputError and JobError for an impossible one."""
        collective = question.collective

        def call_of(name: str) -> CollectiveCall:
            return collective_call(collective, elements, name, question.dtype, question.operation, question.root)

        if algorithm in CHOICES:
            # Raises for ranks that the fabric lacks.
            self._placed(call_of(collective.algorithms[0].name), ranks, request.tenant)
        choice = self._choice(question, request, elements)
        request = _as_chosen(request, collective, choice)
        call = question.call(choice.algorithm if choice else algorithm, elements)
        if request.protocol or request.clear_to_send:
            spec = placed_group(call, ranks, self._topology).spec
            call = replace(call, **self._messages(request, collective, spec))
        return GroupCollective(collective, call, self._placed(call, ranks, request.tenant), choice)

    def _placed(self, call: CollectiveCall, ranks: Sequence[int], tenant: str) -> PlacedRanks:
        job = self._of_tenant(collectives_job(call.collective, [call], len(ranks)), tenant)
        placed = placed_ranks(job, ranks, self._places())
        placed.check()
        return placed

    def _of_group(
        self,
        group: GroupCollective,
        arrays: Sequence[NDArray[Any]] | None,
        data: str,
        repetitions: Repetitions,
    ) -> Task[CollectiveResult]:
        """Return a collective of some ranks as a task; it runs as a job of one operation."""
        reducing = self._reducing(group.placed)

        def prepare(buffers: Sequence[RankBuffer], results: list[Path], jobs: Sequence[int]) -> int:
            return self._exchanges.hosts.prepare_job(
                placed_ranks(group.placed.job, group.placed.ranks, self._places(jobs)),
                buffers,
                results,
                telemetry=self._options.int_telemetry,
                payload=self._payload(LENGTHS),
                aggregation_jobs=jobs,
            )

        inputs = None if arrays is None else group.inputs(arrays)
        return Task(
            group.name,
            COLLECTIVES,
            prepare,
            lambda ended: group.result(ended, repetitions, data),
            inputs,
            None if arrays is None or inputs is None else partial(group.verify, inputs),
            arrays=partial(group.arrays, arrays[0].shape if arrays else ()),
            reducing=reducing,
            repetitions=repetitions,
            collective=group.collective.reference,
        )

    def _reducing(self, placed: PlacedRanks) -> tuple[ReducingGroup, ...]:
        """Return the groups of a job's ranks that reduce in the network."""
        found = placed.reductions()
        return tuple(ReducingGroup(each.ranks, traffic_class=each.traffic_class, jobs=len(found)) for each in found)

    def _collective(
        self,
        collective: Collective,
        algorithm: str,
        spec: CollectiveSpec,
        inputs: list[NDArray[Any]] | None,
        data: str,
        repetitions: Repetitions,
        choice: AlgorithmChoice | NcclChoice | None,
    ) -> Task[CollectiveResult]:
        chosen = collective.algorithm(choice.algorithm if choice else algorithm).on(spec)
        reducing = groups_of(spec, chosen)

        def prepare(buffers: Sequence[RankBuffer], results: list[Path], jobs: Sequence[int]) -> int:
            return self._exchanges.hosts.prepare_collective(
                self._over_planes(spec, jobs),
                chosen.name,
                buffers,
                results,
                collective=collective.reference,
                telemetry=self._options.int_telemetry,
                payload=self._payload(LENGTHS),
                aggregation_jobs=jobs_of_ranks(reducing, jobs, spec.rank_count),
            )

        def verified(data: Sequence[NDArray[Any]]) -> Verdict:
            return verify(collective, chosen, spec, inputs or [], results_of_ranks(collective, spec, data))

        def result(ended: Sequence[Ended]) -> CollectiveResult:
            counting = [each for number, each in enumerate(ended) if not repetitions.is_warmup(number)]
            return collective_result(
                collective,
                algorithm,
                spec,
                [each.outcome.duration_ps for each in counting],
                [each.counted for each in counting],
                [each.verdict for each in ended if each.verdict is not None],
                warmup=repetitions.warmup,
                data=data,
                choice=choice,
            )

        return Task(
            f"{collective.name} {spec.size_bytes} B, {algorithm}",
            COLLECTIVES,
            prepare,
            result,
            inputs,
            verified if inputs is not None else None,
            reducing=reducing,
            repetitions=repetitions,
            collective=collective.reference,
        )

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
    ) -> Task[TrainingStepResult]:
        """Return a step of data-parallel training."""
        self._require_carried("training step", MESSAGES)
        if self._class_of(tenant) != DATA_CLASS:
            raise BadInputError(f"{tenant} has a share, and a training step has no classes", valid="an item of model")
        TIME.check(step.compute_ps, "the step's compute times")
        inputs: list[NDArray[Any]] | None = None
        name = data_type(dtype)
        if gradients is not None:
            arrays, name = checked_buffers(gradients, self._topology.rank_count)
            inputs = [each.ravel() for each in arrays]
        count = step.gradient_count if inputs is None else inputs[0].size
        all_reduce = COLLECTIVE_KINDS[GRADIENT_COLLECTIVE]
        largest = max(len(gradients) for gradients, _ in step.buckets(name.element_bytes))
        clearing = checked_clear_to_send(clear_to_send, all_reduce, algorithm, self._topology)
        question = Question(all_reduce, name, "sum", root=0, tenant=tenant, lanes_for=STEP_NEEDS_LANES)
        if algorithm == AUTO:
            algorithm = self._tuner.choose(question, largest).algorithm
        spec = replace(self._spec(question, algorithm, count), clear_to_send=clearing)
        reducing = groups_of(spec, all_reduce.algorithm(algorithm).on(spec))
        if count != step.gradient_count:
            raise BadInputError(f"buffers of {count} gradients for a step of {step.gradient_count}")

        def prepare(buffers: Sequence[RankBuffer], results: list[Path], jobs: Sequence[int]) -> int:
            return self._exchanges.hosts.prepare_training_step(
                step,
                algorithm,
                self._over_planes(spec, jobs),
                buffers,
                results,
                telemetry=self._options.int_telemetry,
                payload=self._payload(LENGTHS),
                aggregation_jobs=jobs_of_ranks(reducing, jobs, spec.rank_count),
            )

        def verified(data: Sequence[NDArray[Any]]) -> Verdict:
            return verify_gradients(step, algorithm, spec, inputs or [], data)

        def result(ended: Sequence[Ended]) -> TrainingStepResult:
            (run,) = ended
            verdict = run.verdict
            return TrainingStepResult(
                algorithm=algorithm,
                ranks=spec.rank_count,
                layers=len(step.layers),
                buckets=len(step.buckets(spec.element_bytes)),
                gradient_bytes=spec.size_bytes,
                dtype=name,
                step_ps=run.outcome.duration_ps,
                compute_ps=step.compute_ps,
                verified=verdict is not None,
                wrong=verdict.wrong if verdict else 0,
                identical=verdict.identical if verdict else True,
                retransmissions=run.counted.retransmissions,
                clear_to_send=clearances_of(clearing, spec.rank_count, [run.outcome.duration_ps], [run.counted]),
            )

        return Task(
            f"training step of {spec.size_bytes} B, {algorithm}",
            TRAINING_STEPS,
            prepare,
            result,
            inputs,
            verified if inputs is not None else None,
            reducing=reducing,
        ).of(tenant)

    @raised_as_weft_errors()
    def incast(
        self,
        receiver: str,
        bytes_per_sender: int,
        plane: int = 0,
        *,
        data: str = "zeros",
        queue_pairs: int = 1,
        tenant: str = "",
    ) -> Task[FlowsResult]:
        """Return an incast as a task."""
        self._require_two_ranks("an incast")
        target = self._topology.host(receiver).index
        self._topology.host(receiver).nic(plane)
        senders = range(self._topology.rank_count)
        flows = incast(target, senders, bytes_per_sender, plane, queue_pairs=queue_pairs)
        over = "all planes" if self._spans_planes else f"plane {plane}"
        return self.flows(f"incast on {receiver}, {over}{_divided(queue_pairs)}", flows, data, tenant)

    @raised_as_weft_errors()
    def permutation(
        self, bytes_per_host: int, *, data: str = "zeros", queue_pairs: int = 1, tenant: str = ""
    ) -> Task[FlowsResult]:
        """Return a permutation as a task."""
        self._require_two_ranks("a permutation")
        flows = [
            flow
            for plane in self._planes_of_flows()
            for flow in permutation(self._topology.rank_count, bytes_per_host, plane, self._options.seed, queue_pairs)
        ]
        return self.flows(f"permutation{_divided(queue_pairs)}", flows, data, tenant)

    def _planes_of_flows(self) -> tuple[int, ...]:
        """Return the planes that flows name: one if a queue pair uses all."""
        return (0,) if self._spans_planes else self._exchanges.nics()

    @property
    def _spans_planes(self) -> bool:
        """Whether each flow goes over several planes."""
        return self._options.transport.kind.spans_planes and self._topology.nics_per_host > 1

    @raised_as_weft_errors()
    def pattern(self, pattern: TrafficPattern, tenant: str = "") -> Task[FlowsResult]:
        """Return the flows of a user's pattern."""
        flows = flows_of(pattern, self._topology, self._options.seed)
        return self.flows(type(pattern).__name__, flows, tenant=tenant)

    @raised_as_weft_errors()
    def flows(self, name: str, flows: Sequence[Flow], data: str = "zeros", tenant: str = "") -> Task[FlowsResult]:
        """Return flows, as `Fabric.run_flows` runs them."""
        if data not in FLOW_DATA:
            raise BadInputError(f"unknown data '{data}'; {did_you_mean(data, FLOW_DATA)}")
        self._require_carried(name, FLOW_OPERATIONS)
        in_use = self._exchanges.nics()
        if (number := self._class_of(tenant)) != DATA_CLASS:
            flows = [replace(flow, traffic_class=number) for flow in flows]
        for flow in flows:
            self._check_flow(flow, in_use)

        def prepare(_buffers: Sequence[RankBuffer], _results: list[Path], _jobs: Sequence[int]) -> int:
            telemetry = self._options.int_telemetry
            return self._exchanges.hosts.prepare_traffic(flows, telemetry=telemetry, payload=self._payload(data))

        def result(ended: Sequence[Ended]) -> FlowsResult:
            (run,) = ended
            return flows_result(
                name,
                self._topology,
                self._between_hosts(flows),
                run.records,
                run.outcome.duration_ps,
                retransmissions=run.counted.retransmissions,
                cnps=run.counted.cnps,
            )

        return Task(name, FLOWS, prepare, result, flows=flows)

    def _class_of(self, tenant: str) -> int:
        """Return the class of a tenant's traffic. Raises BadInputError for an unknown tenant."""
        if tenant and tenant not in self._options.tenants:
            raise BadInputError(f"no tenant {tenant!r}; {did_you_mean(tenant, list(self._options.tenants))}")
        return class_of_tenant(self._options.tenants, tenant)

    def _of_tenant(self, job: Job, tenant: str) -> Job:
        """Return a job with all its traffic in its tenant's class. Raises BadInputError if it has other classes."""
        if (number := self._class_of(tenant)) == DATA_CLASS:
            return job
        if job.traffic_classes:
            raise BadInputError(f"{job.name} has classes, and its tenant {tenant} has one for all", valid="no classes")
        return replace(job, traffic_classes=dict.fromkeys(sorted(JobClasses(job).names), number))

    def _check_flow(self, flow: Flow, in_use: Sequence[int]) -> None:
        if max(flow.source, flow.destination) >= self._topology.rank_count:
            raise BadInputError(
                f"a flow between {flow.source} and {flow.destination}",
                valid=f"ranks 0 to {self._topology.rank_count - 1}",
            )
        FLOW_SIZE.check(flow.size_bytes, "a flow's size")
        TIME.check(flow.start_ps, "a flow's start")
        QUEUE_PAIRS.check(flow.queue_pairs, "a flow's queue pairs")
        if flow.queue_pairs > flow.size_bytes:
            raise BadInputError(
                f"a flow of {flow.size_bytes} B over {flow.queue_pairs} queue pairs",
                valid=f"1 to {flow.size_bytes}",
            )
        if self._spans_planes and flow.plane != 0:
            raise BadInputError(
                f"a flow over plane {flow.plane}: queue pairs of {self._options.transport.protocol} use all planes",
                valid="0",
            )
        if flow.plane not in in_use and flow.plane < self._topology.nics_per_host:
            raise BadInputError(f"a flow over {flow.plane}, on a plane that is out of use", valid=in_use)

    @raised_as_weft_errors()
    def workload(self, flow_sizes: str | FlowSizes, load: float, duration_ps: int) -> Task[WorkloadResult]:
        """Return a workload as a task."""
        self._require_two_ranks("a workload")
        self._require_carried("workload", FLOW_OPERATIONS)
        POSITIVE_TIME.check(duration_ps, "a workload's duration")
        with translated(ValueError, BadInputError):
            sizes = named_flow_sizes(flow_sizes) if isinstance(flow_sizes, str) else flow_sizes
            flows = poisson_flows(
                self._topology.rank_count, self._nic_rates_bps(), sizes, load, duration_ps, self._options.seed
            )
        if not flows:
            raise BadInputError(
                f"no flow starts within {duration_ps} ps at a load of {load:g}; give the workload more time"
            )

        def prepare(_buffers: Sequence[RankBuffer], _results: list[Path], _jobs: Sequence[int]) -> int:
            telemetry = self._options.int_telemetry
            return self._exchanges.hosts.prepare_workload(flows, telemetry=telemetry, payload=self._payload(LENGTHS))

        def result(ended: Sequence[Ended]) -> WorkloadResult:
            (run,) = ended
            return workload_result(
                sizes,
                load,
                duration_ps,
                self._between_hosts(flows),
                run.records,
                IdealTimes.of_fabric(self._lab.controller.fabric, self._options),
                run.outcome.duration_ps,
                run.counted.cnps,
            )

        return Task(f"{sizes.name} at a load of {load:g}", WORKLOADS, prepare, result, flows=flows)

    @raised_as_weft_errors()
    def job(
        self,
        job: Job,
        ranks: Sequence[int] | None = None,
        data: CollectiveData = "lengths",
        tenant: str = "",
        *,
        storage: bool = False,
    ) -> Task[JobRun]:
        """Return a job as a task. `storage`: over the fabric's storage network, if it has one."""
        job = self._of_tenant(job, tenant)
        if data not in COLLECTIVE_DATA:
            raise BadInputError(f"unknown data '{data}'; {did_you_mean(data, COLLECTIVE_DATA)}")
        placed = placed_ranks(job, ranks, self._places(storage=storage))
        placed.check()
        self._require_carried(job.name, _posted_by(job))
        reducing = self._reducing(placed)
        made = JobData(placed, self._options.seed) if data == "random" else None

        def prepare(buffers: Sequence[RankBuffer], results: list[Path], jobs: Sequence[int]) -> int:
            # The planes in use may have changed since.
            places = self._places(jobs, storage=storage)
            return self._exchanges.hosts.prepare_job(
                placed_ranks(job, placed.ranks, places),
                buffers,
                results,
                telemetry=self._options.int_telemetry,
                payload=self._payload(LENGTHS),
                aggregation_jobs=jobs,
            )

        def result(ended: Sequence[Ended]) -> JobRun:
            (run,) = ended
            return job_run(placed, run)

        return Task(
            job.name,
            None,
            prepare,
            result,
            inputs=list(made.inputs) if made else None,
            verify=made.verify if made else None,
            job=job,
            reducing=reducing,
        ).of(tenant)

    def _nic_rates_bps(self, jobs: Sequence[int] = (), *, storage: bool = False) -> tuple[int, ...]:
        """Return the rate of each of a host's NICs, 0 for NICs out of use; see `Exchanges.nics`.

        Where a queue pair uses all planes, the first stands for them, unless the network reduces.
        """
        in_use = self._exchanges.nics(jobs, storage=storage)
        rates = tuple(nic.link.rate_bps if nic.number in in_use else 0 for nic in self._topology.hosts[0].nics)
        return joined(rates) if self._spans_planes and not jobs else rates

    def _places(self, jobs: Sequence[int] = (), *, storage: bool = False) -> RankPlaces:
        rates_bps = self._nic_rates_bps(jobs, storage=storage)
        return rank_places(self._topology, rates_bps, self._options.scheduling.data_classes)

    def _spec(self, question: Question, algorithm: str, element_count: int) -> CollectiveSpec:
        """Return the parameters of a collective over the planes in use; errors as `collective_spec`."""
        return self._over_planes(question.spec(self._topology, algorithm, element_count))

    def _over_planes(self, spec: CollectiveSpec, jobs: Sequence[int] = ()) -> CollectiveSpec:
        """Return the parameters for the planes of aggregation jobs or, without jobs, the planes in use now."""
        return replace(spec, plane_rates_bps=self._nic_rates_bps(jobs), trees=self._options.trees)

    def _payload(self, data: str) -> Payload:
        """Return how packets carry zeros for this data; over real interfaces always as bytes."""
        return AS_LENGTHS if data == LENGTHS and self._options.clock == "virtual" else AS_BYTES

    def _between_hosts(self, flows: Sequence[Flow]) -> Sequence[Flow]:
        """Return flows between ranks as flows between the hosts that have these ranks now."""
        if self._spans_planes:
            flows = [replace(flow, plane=ALL_PLANES) for flow in flows]
        if not self._topology.spares:
            return flows
        host_of = self._exchanges.hosts.host_of
        return [replace(flow, source=host_of(flow.source), destination=host_of(flow.destination)) for flow in flows]

    def _require_two_ranks(self, what: str) -> None:
        if self._topology.rank_count < 2:
            raise BadInputError(f"{what} needs 2 hosts with ranks; the fabric has {self._topology.rank_count}")


def _posted_by(job: Job) -> Iterator[str]:
    """Yield the operations that a job's ranks post."""
    kinds = {kind for part in job.parts for kind in (Kind.READ, Kind.SEND) if len(part.operations.of_kind(kind))}
    if Kind.READ in kinds:
        yield "READ"
    if job.calls or Kind.SEND in kinds:
        yield from MESSAGES


def _divided(queue_pairs: int) -> str:
    """Return a suffix for a pattern's name."""
    return f" over {queue_pairs} queue pairs a flow" if queue_pairs > 1 else ""
