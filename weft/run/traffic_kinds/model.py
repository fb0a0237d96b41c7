"""A training step of a model: its dimensions and parallelism determine the ranks' computation and communication."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from weft.clocks.lab import Progress
from weft.errors import BadInputError
from weft.jobs.accelerators import ACCELERATORS, Accelerator
from weft.jobs.compute_variation import ComputeVariation
from weft.jobs.expert_routing import Routing
from weft.jobs.fitting import check_duration, check_memory
from weft.jobs.models import MODELS, Transformer, model_title
from weft.jobs.parallelism import Parallelism
from weft.jobs.plan_summary import PlanSummary, summary_of
from weft.jobs.traffic_bytes import TRAINING_TRAFFIC
from weft.jobs.training_job import called_algorithms, training_job
from weft.jobs.training_plan import PlanError, Precisions, Recomputation, TrainingPlan
from weft.quantities.definitions import number, whole
from weft.quantities.example import Example
from weft.quantities.readable import counted, format_time
from weft.quantities.units import PS_PER_S
from weft.recording.operations import operations_table
from weft.results.critical_paths import critical_path_result
from weft.results.training_jobs import TRAINING_JOBS, TrainingJobResult, training_job_result
from weft.run.algorithms import group_objection, is_in_network
from weft.run.clear_to_send import require_plain_messages
from weft.run.cleared_job_item import ClearedJobItem
from weft.run.jobs import JobRun, first_ranks, intact_places
from weft.run.task import Task
from weft.run.traffic_kinds.base import DEFAULT_TIME_LIMIT_S, check_named_kinds, check_ranks
from weft.scenario.places import KeyProblem
from weft.scenario.presets import Presets
from weft.scenario.traffic import AlgorithmName
from weft.scenario.values import Text
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.collectives import collective_named
from weft.traffic.jobs import Job, OperationsError
from weft.traffic.jobs.breakdown import breakdowns

if TYPE_CHECKING:
    from weft.run.fabric import Fabric


class TrainingJobTraffic(ClearedJobItem):
    """A training step of a transformer, divided among ranks. Packets carry lengths in place of data."""

    kind = "model"
    results = TRAINING_JOBS
    files: ClassVar[tuple[str, ...]] = ("routing.matrix",)

    model: Annotated[Transformer, Presets("model", lambda: MODELS)]
    """Model trained."""
    parallel: Parallelism = Parallelism()
    """How ranks divide it."""
    micro_batches: Annotated[int, whole(1, 10_000)] = 1
    """Micro-batches of each replica in a step."""
    micro_batch: Annotated[int, whole(1, 100_000)] = 1
    """Sequences of a micro-batch."""
    accelerator: Annotated[Accelerator, Presets("accelerator", lambda: ACCELERATORS)] = ACCELERATORS["H100"]
    """Accelerator of each rank."""
    precisions: Precisions = Precisions()
    """Number formats."""
    recomputation: Recomputation = "selective"
    """Which activations the backward pass recomputes: none, attention's scores (`selective`), or all (`full`)."""
    routing: Routing = Routing()
    """How tokens choose experts."""
    stragglers: dict[Annotated[int, whole(0, 1 << 20)], Annotated[float, number(0.1, 1000)]] = Field(default={})
    """By rank, the factor that lengthens all its computations."""
    jitter: Annotated[float, number(0, 2)] = 0.0
    """Standard deviation of the logarithm of each computation's factor, which the seed draws from a log-normal
    distribution with median 1."""
    communication_share: Annotated[float, number(0, 0.9), Example("0.15")] = 0.0
    """Share of a rank's accelerator that its collectives and the messages that it sends take while they are under way,
    as their kernels do (20 of 132 SMs for DeepSeek-V3); 0 if NICs and copy engines do it all."""
    algorithms: dict[Annotated[str, Text("a kind of traffic", r"\S", "data")], AlgorithmName] = Field(default={})
    """Algorithm of collectives by kind of traffic; other kinds use the first host-based algorithm that suits them."""
    tenant: Annotated[str, Example("blue", (".algorithms={data: in-network}", "tenants.blue={slots: 512}"))] = ""
    """Tenant whose share its traffic has, and who is charged for its in-network reductions, a name in `tenants`; by
    default none."""
    ranks: list[Annotated[int, whole(0, 1 << 20)]] | None = Field(None, min_length=1)
    """The fabric's rank of each rank of the job; by default the first ones, host by host."""

    def plan(self, ranks_per_host: int, seed: int = 1) -> TrainingPlan:
        """Return the plan for hosts with `ranks_per_host` ranks. Raises PlanError."""
        return TrainingPlan(
            model=self.model,
            parallel=self.parallel,
            micro_batches=self.micro_batches,
            micro_batch=self.micro_batch,
            accelerator=self.accelerator,
            precisions=self.precisions,
            recomputation=self.recomputation,
            routing=self.routing,
            ranks_per_host=ranks_per_host,
            seed=seed,
            algorithms=self.algorithms,
        )

    @property
    def title(self) -> str:
        """Name of a published model; of others the family and layers."""
        return model_title(self.model)

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that degrees divide the model, that the fabric has enough ranks, and that memory suffices."""
        self.check_kinds(TRAINING_TRAFFIC, key)
        check_named_kinds(self.algorithms, TRAINING_TRAFFIC, f"{key}.algorithms")
        self.check_clearances(self.algorithms.values(), key)
        try:
            plan = self.plan(fabric.ranks_per_host or 1)
            count = plan.parallel.rank_count
            if count > fabric.rank_count:
                raise KeyProblem(
                    f"{key}.parallel",
                    f"{count} ranks on a fabric of {fabric.rank_count}",
                    valid=f"a product of degrees up to {fabric.rank_count}",
                )
            if self.ranks is not None:
                check_ranks(self.ranks, count, fabric, f"{key}.ranks")
            for rank in self.stragglers:
                if rank >= count:
                    raise PlanError("stragglers", f"rank {rank}", valid=f"0 to {count - 1}")
            check_memory(plan)
            check_duration(plan, self._slowest)
        except PlanError as problem:
            raise KeyProblem(f"{key}.{problem.key}", problem) from None

    def reduces_in_network(self, fabric: FabricSpec) -> bool:
        """Return whether switches reduce a kind of traffic."""
        return any(is_in_network(name, fabric) for name in self.algorithms.values())

    def named_tenants(self, key: str) -> Iterator[tuple[str, str, bool]]:
        """Yield the key of its tenant, the tenant, and whether switches reduce."""
        yield f"{key}.tenant", self.tenant, any(map(is_in_network, self.algorithms.values()))

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that groups can use the algorithms named for their collectives."""
        plan = self.plan(topology.ranks_per_host)
        ranks = self.ranks or first_ranks(plan.parallel.rank_count, intact_places(topology))
        for (kind, name), groups in called_algorithms(plan).items():
            collective = collective_named(name)
            for group in sorted(groups):
                on_fabric = [ranks[rank] for rank in group]
                if objection := group_objection(collective, self.algorithms[kind], on_fabric, topology):
                    raise KeyProblem(f"{key}.algorithms.{kind}", objection)

    def job(self, fabric: FabricSpec, seed: int) -> tuple[Job, PlanSummary]:
        """Return the job of a step, and its summary before the run."""
        plan = self.plan(fabric.ranks_per_host, seed)
        try:
            job = training_job(
                plan, ComputeVariation(self.stragglers, self.jitter, seed, self.communication_share), self.title
            )
        except OperationsError as error:
            raise BadInputError(error, place=self.title) from None
        return self.with_clearances(self.with_classes(job)), summary_of(plan, job)

    def as_job(self, topology: FabricSpec, seed: int) -> Job | None:
        """Return the job of a step. Raises BadInputError with clear_to_send, for which traces have no place."""
        require_plain_messages(self)
        return self.job(topology, seed)[0]

    def prepare_task(self, ranks: int, seed: int) -> Callable[[Fabric], Task[TrainingJobResult]]:
        """Return a function that makes the task; there is no data to prepare."""
        return lambda fabric: self._task(fabric, *self.job(fabric.topology, fabric.options.seed))

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run a step."""
        job, plan = self.job(fabric.topology, fabric.options.seed)
        progress(
            f"training {self.title} on {counted(plan.ranks, 'rank')}: {counted(job.operation_count, 'operation')}, "
            f"ideally {format_time(plan.ideal_ps)}"
        )
        fabric.run_together([self._task(fabric, job, plan)], self._limit_s(fabric, plan))

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return the default plus the time that computation alone may take on the slowest rank."""
        return self._limit_s(fabric, self.job(fabric.topology, fabric.options.seed)[1])

    def _limit_s(self, fabric: Fabric, plan: PlanSummary) -> float:
        return DEFAULT_TIME_LIMIT_S + plan.ideal_ps / PS_PER_S * self._slowest * fabric.options.dilation

    @property
    def _slowest(self) -> float:
        """Factor by which the slowest rank's computations are longer."""
        # Only one draw in 30,000 exceeds this factor.
        return max([1.0, *self.stragglers.values()]) * math.exp(4 * self.jitter) / (1 - self.communication_share)

    def _task(self, fabric: Fabric, job: Job, plan: PlanSummary) -> Task[TrainingJobResult]:
        def result(ran: JobRun) -> TrainingJobResult:
            found = breakdowns(job, ran.times)
            return training_job_result(
                self.title,
                plan,
                ran.duration_ps,
                found,
                ran.retransmissions,
                critical_path_result(job, ran.times, ran.ranks, ran.places, fabric.topology),
                operations_table(job, ran.times),
                ran.clear_to_send,
            )

        return fabric.tasks.job(job, self.ranks, tenant=self.tenant).noted(TRAINING_JOBS, result)
