"""Inference with disaggregated prefill and decode: KV caches cross the fabric."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from weft.clocks.lab import Progress
from weft.errors import BadInputError
from weft.jobs.accelerators import Precision
from weft.jobs.inference.assignments import AssignmentName
from weft.jobs.inference.decode import decode_times
from weft.jobs.inference.instances import DecodeInstances, PrefillInstances
from weft.jobs.inference.objectives import Objectives
from weft.jobs.inference.placement import check_hosts, default_ranks
from weft.jobs.inference.plan import InferencePlan, KvTransfer
from weft.jobs.inference.prefill import prefill_schedule
from weft.jobs.inference.request_files import read_requests
from weft.jobs.inference.requests import (
    MAX_REQUESTS,
    Requests,
    SharedPrefixes,
    TokenCounts,
    poisson_requests,
    requests_at,
)
from weft.jobs.inference.transfer_job import KV_CACHE, request_times, transfer_job
from weft.jobs.models import MODELS, Transformer, model_title
from weft.jobs.training_plan import PlanError
from weft.quantities.definitions import Time, number, whole
from weft.quantities.example import Example
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_S
from weft.recording.ideal_times import IdealTimes
from weft.results.inference import INFERENCE
from weft.results.inference_model import InferenceResult, inference_result
from weft.results.kinds import ResultKind
from weft.run.jobs import JobRun, rank_places
from weft.run.kv_transfers import IdealTransfers
from weft.run.traffic_kinds.base import JobItem, Run, check_ranks
from weft.scenario.places import KeyProblem
from weft.scenario.presets import Presets
from weft.scenario.values import Section
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.jobs import Job, OperationsError

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


class RequestsSection(Section):
    """Arrival times and lengths of requests; give one of `rate`, `arrivals` and `file`."""

    rate: Annotated[float, number(0, 1e6, above=True, example="20")] | None = None
    """Requests per second, as a Poisson process."""
    arrivals: Annotated[list[Time] | None, Example("[0us, 500us, 2ms]")] = Field(None, min_length=1)
    """Arrival times."""
    file: Annotated[Path | None, Example("requests.csv")] = None
    """CSV file with the columns TIMESTAMP, ContextTokens and GeneratedTokens, as in Azure's traces; relative to the
    scenario."""
    count: Annotated[int, whole(1, MAX_REQUESTS)] | None = None
    """Number of requests; with a file the first ones, by default all."""
    prompt: TokenCounts | None = None
    """Tokens of prompts, unless a file has them."""
    output: TokenCounts | None = None
    """Tokens of outputs, unless a file has them."""
    prefix: SharedPrefixes | None = None
    """Prefixes that prompts share; by default none."""

    def made(self, seed: int) -> Requests:
        """Return the requests. Raises PlanError for an invalid key, BadInputError for an invalid file."""
        found = self._without_prefixes(seed)
        if self.prefix is None:
            return found
        try:
            return self.prefix.given_to(found, seed)
        except ValueError as error:
            raise PlanError("requests.prefix", error) from None

    def _without_prefixes(self, seed: int) -> Requests:
        ways = [name for name in ("rate", "arrivals", "file") if getattr(self, name) is not None]
        if len(ways) != 1:
            raise PlanError("requests", f"has {' and '.join(ways) or 'none'}", valid="one of rate, arrivals, file")
        if self.file is not None:
            for key in ("prompt", "output"):
                if getattr(self, key) is not None:
                    raise PlanError(f"requests.{key}", "the file has it", valid="not given")
            return read_requests(self.file, self.count)
        if self.prompt is None or self.output is None:
            key = "output" if self.prompt else "prompt"
            raise PlanError(f"requests.{key}", "is missing", valid="{median: TOKENS}, or requests from a file")
        try:
            if self.arrivals is not None:
                return requests_at(self.arrivals, self.prompt, self.output, seed).first(self.count)
            if self.rate is None or self.count is None:
                raise PlanError("requests.count", f"is missing (valid with a rate: 1 to {MAX_REQUESTS})")
            return poisson_requests(self.rate, self.count, self.prompt, self.output, seed)
        except PlanError:
            raise
        except ValueError as error:
            raise PlanError("requests", error) from None


class InferenceSection(Section):
    """A model, its requests, and the instances that serve them."""

    model: Annotated[Transformer, Presets("model", lambda: MODELS)]
    """Model served."""
    requests: RequestsSection
    """Requests to the model."""
    prefill: PrefillInstances = PrefillInstances()
    """Instances that compute prompts."""
    decode: DecodeInstances = DecodeInstances()
    """Instances that generate outputs."""
    precision: Precision = "bf16"
    """Number format of weights and matrix products."""
    kv_precision: Precision = "bf16"
    """Number format of the KV cache."""
    prefill_assignment: AssignmentName = "least-loaded"
    """How requests are assigned to prefill instances."""
    decode_assignment: AssignmentName = "least-loaded"
    """How requests are assigned to decode instances, decided on arrival."""
    kv_transfer: KvTransfer = "after-prefill"
    """Whether a cache is sent whole when its prompt has been computed, or layer by layer as each has been computed."""
    prefix_caching: bool = False
    """Whether instances keep `requests.prefix`, so that it is neither computed nor sent to them a second time."""
    slo: Objectives | None = None
    """Objectives that requests must meet to count as goodput."""

    def plan(self, seed: int) -> InferencePlan:
        """Return the plan, with requests drawn from a seed. Raises PlanError, BadInputError."""
        return InferencePlan(
            model=self.model,
            requests=self.requests.made(seed),
            prefill=self.prefill,
            decode=self.decode,
            precision=self.precision,
            kv_precision=self.kv_precision,
            prefill_assignment=self.prefill_assignment,
            decode_assignment=self.decode_assignment,
            kv_transfer=self.kv_transfer,
            prefix_caching=self.prefix_caching,
        )


class InferenceTraffic(JobItem):
    """Inference with disaggregated prefill and decode. Packets carry lengths in place of KV caches."""

    kind = "inference"
    results: ClassVar[ResultKind[Any] | None] = INFERENCE
    files: ClassVar[tuple[str, ...]] = ("inference.requests.file",)

    inference: InferenceSection
    """Model, requests and instances."""
    ranks: Annotated[
        list[Annotated[int, whole(0, 1 << 20)]] | None,
        Example("[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]"),
    ] = Field(None, min_length=1)
    """The fabric's rank of each rank of the prefill instances, then of the decode instances; by default instances fill
    hosts in order, and decode instances start on a new host."""
    timeout: Annotated[int, whole(1, 10**6)] = 3600
    """Seconds, real or of the virtual clock, after which the run fails, in addition to the computation of prompts."""

    @property
    def title(self) -> str:
        """Name of the model, or its family and size."""
        return model_title(self.inference.model)

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that instances can divide the model, that memory suffices, and that the fabric has enough ranks."""
        section = self.inference
        self.check_kinds((KV_CACHE,), key)
        try:
            section.plan(seed=1)
        except PlanError as problem:
            raise KeyProblem(f"{key}.inference.{problem.key}", problem) from None
        except BadInputError as error:
            raise KeyProblem(f"{key}.inference.requests.file", error) from None
        if self.ranks is not None:
            count = section.prefill.rank_count + section.decode.rank_count
            check_ranks(self.ranks, count, fabric, f"{key}.ranks")

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that each instance is within a host."""
        try:
            self.placed(topology)
        except PlanError as problem:
            own = "ranks" if problem.key == "ranks" else f"inference.{problem.key}"
            raise KeyProblem(f"{key}.{own}", problem) from None

    def placed(self, topology: FabricSpec) -> tuple[int, ...]:
        """Return the fabric's rank of each rank of the job. Raises PlanError if they do not fit on hosts."""
        hosts, section = rank_places(topology, ()).hosts, self.inference
        if self.ranks is None:
            return default_ranks(section.prefill, section.decode, hosts)
        check_hosts(section.prefill, section.decode, self.ranks, hosts)
        return tuple(self.ranks)

    @cached_property
    def _known(self) -> dict[int, _Serving]:
        return {}

    def _serving(self, seed: int) -> _Serving:
        """Return plan, schedule and job for a seed, made once. Raises BadInputError."""
        if seed not in self._known:
            self._known[seed] = _Serving(self, seed)
        return self._known[seed]

    def as_job(self, topology: FabricSpec, seed: int) -> Job | None:
        """Return the job of prompts and transfers."""
        return self._serving(seed).job

    def prepare(self, ranks: int, seed: int) -> Run:
        """Draw the requests and make the job."""
        serving = self._serving(seed)

        def run(fabric: Fabric, progress: Progress) -> None:
            plan = serving.plan
            progress(
                f"inference of {self.title}: {counted(len(plan.requests), 'request')}, "
                f"{serving.job.operation_count:,} operations of {plan.rank_count} ranks"
            )
            fabric.run_together([serving.task(fabric)], self.time_limit_s(fabric))

        return run

    def prepare_task(self, ranks: int, seed: int) -> Callable[[Fabric], Task[Any]]:
        """Draw the requests and make the job."""
        return self._serving(seed).task

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Serve the requests."""
        self.prepare(fabric.topology.rank_count, fabric.options.seed)(fabric, progress)

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return `timeout` plus the time until the last prompt has been computed."""
        computed_ps = int(self._serving(fabric.options.seed).schedule.end_ps.max())
        return self.timeout + computed_ps / PS_PER_S * fabric.options.dilation


class _Serving:
    """An item's plan, with its schedule and job."""

    def __init__(self, item: InferenceTraffic, seed: int) -> None:
        self._item = item
        try:
            self.plan = item.inference.plan(seed)
            self.schedule = prefill_schedule(self.plan)
            self.job = item.with_classes(transfer_job(self.plan, self.schedule, item.title))
        except PlanError as problem:
            raise BadInputError(problem, place=f"inference.{problem.key}") from None
        except OperationsError as problem:
            raise BadInputError(problem, place=f"inference of {item.title}") from None

    def task(self, fabric: Fabric) -> Task[InferenceResult]:
        """Return the job as a task of a running fabric."""
        ranks = self._item.placed(fabric.topology)
        return fabric.tasks.job(self.job, ranks).noted(INFERENCE, partial(self._result, fabric))

    def _result(self, fabric: Fabric, ran: JobRun) -> InferenceResult:
        plan, schedule = self.plan, self.schedule
        times = request_times(plan, schedule, ran.job, ran.times)
        ideal = IdealTimes.of_fabric(fabric.topology, fabric.options)
        ideal_ps = IdealTransfers(plan, ran, ideal, fabric.topology.scale_up).of(schedule)
        try:
            decoded = decode_times(plan, schedule.decode, times.handed_over_ps)
        except PlanError as problem:
            raise BadInputError(problem, place=f"inference of {self._item.title}") from None
        return inference_result(
            self._item.title,
            plan,
            schedule,
            times,
            ideal_ps,
            decoded,
            self._item.inference.slo,
            ran.retransmissions,
        )
