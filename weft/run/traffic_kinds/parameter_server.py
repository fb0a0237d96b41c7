"""Parameter server: workers push gradients to servers that shard the parameters, and pull weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from weft.clocks.lab import Progress
from weft.errors import translated
from weft.jobs.accelerators import Bandwidth
from weft.jobs.digits_mlp import IMAGES, DigitsMlp, parameter_count
from weft.jobs.parameter_server import AllReduceJob, ParameterServerJob, all_reduce_job, parameter_server_job
from weft.jobs.parameter_server.plan import DDR5_GB_PER_S, PARAMETER_BYTES, Mode, ParameterServerPlan
from weft.jobs.training_plan import PlanError
from weft.quantities.definitions import MessageSize, PositiveTime, number, whole
from weft.quantities.example import Example
from weft.quantities.units import PS_PER_S
from weft.results.parameter_servers import PARAMETER_SERVERS
from weft.run.clear_to_send import require_plain_messages
from weft.run.cleared_job_item import ClearedJobItem
from weft.run.digits_section import DigitsSection
from weft.run.jobs import placed_ranks, rank_places
from weft.run.parameter_server_result import parameter_server_result
from weft.run.traffic_kinds.base import Run, check_ranks
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import AlgorithmName
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.jobs import Job, JobError

if TYPE_CHECKING:
    from weft.results.parameter_server_model import ParameterServerResult
    from weft.run.fabric import Fabric
    from weft.run.task import Task


class ParameterServerTraffic(ClearedJobItem):
    """Steps of training with a parameter server. Packets carry lengths in place of data."""

    kind = "parameter_server"
    results = PARAMETER_SERVERS

    parameter_server: Annotated[int, whole(1, 1 << 16)]
    """Number of servers, which shard the parameters evenly."""
    workers: Annotated[int, whole(1, 1 << 16)]
    """Number of workers; each computes a gradient in every step."""
    parameters: MessageSize | None = None
    """Size of the float32 parameters, and so of a gradient, without training; or give `mlp`."""
    mlp: DigitsSection | None = None
    """Model that is really trained, in place of `parameters`, by replaying the run's messages in order with numbers."""
    mode: Mode = "synchronous"
    """`synchronous`: weights change by the mean of all workers' gradients of a step. `asynchronous`: by each gradient
    as it arrives. `all-reduce`: workers add up their gradients without servers, as a baseline."""
    staleness: Annotated[int, whole(0, 10_000)] | None = None
    """How many steps an asynchronous worker may be ahead of the slowest (stale synchronous parallel); by default any
    number."""
    steps: Annotated[int, whole(1, 10_000)] = 1
    """Steps of each worker."""
    compute: PositiveTime
    """How long a worker computes in a step."""
    stragglers: dict[Annotated[int, whole(0, 1 << 16)], Annotated[float, number(0.1, 1000)]] = Field(default={})
    """By worker, the factor that lengthens all its computations."""
    jitter: Annotated[float, number(0, 2)] = 0.0
    """Standard deviation of the logarithm of each computation's factor, which the seed draws from a log-normal
    distribution with median 1."""
    colocated: bool = False
    """Whether servers run on the first workers' ranks instead of on separate ranks after the workers."""
    memory_bandwidth_gb_per_s: Bandwidth = DDR5_GB_PER_S
    """Memory bandwidth of the ranks that update weights, servers or workers of an all-reduce, in 10^9 bytes per second.
    The default is eight channels of DDR5-4800."""
    algorithm: AlgorithmName = "ring"
    """Algorithm of the all-reduce."""
    ranks: Annotated[list[Annotated[int, whole(0, 1 << 20)]] | None, Example("[7, 6, 5, 4, 3, 2, 1, 0]")] = Field(
        None, min_length=1
    )
    """The fabric's rank of each worker, then of each separate server; by default the first ones, host by host."""
    timeout: Annotated[int, whole(1, 10**6)] = 3600
    """Seconds, real or of the virtual clock, after which the run fails, in addition to computations and updates."""

    def plan(self, seed: int) -> ParameterServerPlan:
        """Return the plan. Raises PlanError for values that do not fit together."""
        return ParameterServerPlan(
            servers=self.parameter_server,
            workers=self.workers,
            parameter_bytes=self._parameter_bytes,
            steps=self.steps,
            compute_ps=self.compute,
            mode=self.mode,
            staleness=self.staleness,
            colocated=self.colocated,
            memory_bandwidth_gb_per_s=self.memory_bandwidth_gb_per_s,
            algorithm=self.algorithm,
            stragglers=self.stragglers,
            jitter=self.jitter,
            seed=seed,
        )

    @property
    def _parameter_bytes(self) -> int:
        if self.mlp is not None:
            return parameter_count(self.mlp.hidden) * PARAMETER_BYTES
        assert self.parameters is not None, "checked"
        return self.parameters

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that parameters or mlp is given, that keys fit together, and that the fabric has enough ranks."""
        if (self.parameters is None) == (self.mlp is None):
            what = "neither" if self.mlp is None else "both"
            raise KeyProblem(key, f"has {what} of parameters and mlp", valid="one of them")
        if self.mlp is not None and self.workers > IMAGES:
            raise KeyProblem(f"{key}.workers", f"{self.workers} share {IMAGES} images", valid=f"up to {IMAGES}")
        try:
            plan = self.plan(seed=1)
        except PlanError as problem:
            raise KeyProblem(f"{key}.{problem.key}", problem) from None
        if plan.rank_count > fabric.rank_count:
            raise KeyProblem(
                f"{key}.workers",
                f"{self.workers} with {self.parameter_server} servers need {plan.rank_count} ranks on a fabric of "
                f"{fabric.rank_count}",
                valid=f"up to {fabric.rank_count} ranks",
            )
        if self.ranks is not None:
            check_ranks(self.ranks, plan.rank_count, fabric, f"{key}.ranks")
        self.check_kinds(plan.traffic_kinds, key)

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that the workers of an all-reduce can run its algorithm."""
        if self.mode != "all-reduce":
            return
        rates_bps = topology.nic_rates_bps(topology.training_planes)
        self.check_clearances([self.algorithm], key)
        job = all_reduce_job(replace(self.plan(seed=1), steps=1)).job
        with translated(JobError, KeyProblem, f"{key}.algorithm"):
            placed = placed_ranks(job, self.ranks, rank_places(topology, rates_bps))
            placed.check()
        if placed.reductions():
            raise KeyProblem(
                f"{key}.algorithm",
                f"{self.algorithm}: the network reduces nothing of it",
                valid="an algorithm of hosts",
            )

    def data_bytes(self, ranks: int) -> int:
        """Return a rank's share of the weights and gradients in a replay, in bytes."""
        return 0 if self.mlp is None else 3 * self._parameter_bytes

    def as_job(self, topology: FabricSpec, seed: int) -> Job | None:
        """Return the job of all steps. Raises BadInputError with clear_to_send, for which traces have no place."""
        require_plain_messages(self)
        return self._made(seed).job

    def prepare(self, ranks: int, seed: int) -> Run:
        """Read the images; return a function that runs the item."""
        task = self.prepare_task(ranks, seed)

        def run(fabric: Fabric, progress: Progress) -> None:
            progress(f"{self.steps} steps of {self.workers} workers, {self.plan(seed).title}")
            fabric.run_together([task(fabric)], self.time_limit_s(fabric))

        return run

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Read the images and run all steps."""
        self.prepare(fabric.topology.rank_count, fabric.options.seed)(fabric, progress)

    def prepare_task(self, ranks: int, seed: int) -> Callable[[Fabric], Task[ParameterServerResult]]:
        """Read the images; return a function that makes the task."""
        model = None
        if self.mlp is not None:
            model = DigitsMlp(self.workers, seed, self.mlp.hidden, self.mlp.batch)

        def task(fabric: Fabric) -> Task[ParameterServerResult]:
            made = self._made(seed)
            result = partial(parameter_server_result, made, fabric.topology, model, self.mlp)
            return fabric.tasks.job(made.job, self.ranks).noted(PARAMETER_SERVERS, result)

        return task

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return `timeout` plus the time of computations and updates if they wait for each other."""
        plan = self.plan(fabric.options.seed)
        updating_ps = plan.steps * (plan.workers + 1) * plan.update_ps(max(plan.shard_bytes))
        return self.timeout + (plan.computing_ps + updating_ps) / PS_PER_S * fabric.options.dilation

    def _made(self, seed: int) -> ParameterServerJob | AllReduceJob:
        plan = self.plan(seed)
        made = parameter_server_job(plan) if plan.has_servers else all_reduce_job(plan)
        return replace(made, job=self.with_clearances(self.with_classes(made.job)))
