"""The plan of a training step: everything that determines its memory, computation and traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from weft.errors import BadInputError, Refusal, translated
from weft.hints import did_you_mean
from weft.jobs.accelerators import ACCELERATORS, PRECISION_BYTES, Accelerator, Precision
from weft.jobs.expert_routing import RoutedTokens, Routing, routed_tokens
from weft.jobs.models import Transformer
from weft.jobs.parallelism import Parallelism
from weft.jobs.pipeline_schedules import PIPELINE_SCHEDULES, Step
from weft.jobs.routing_matrix import matrix_problem
from weft.quantities.section import Section
from weft.quantities.units import shown

MAX_LAYER_PASSES = 200_000
"""Most passes of micro-batches through layers: they make some million operations, which take seconds to build."""
MAX_CHOICES = 1 << 28
"""Most expert choices of tokens, experts × tokens, that are drawn."""

Recomputation = Literal["none", "selective", "full"]


class PlanError(Refusal, ValueError):
    """An inconsistent plan; `key` names the value to change."""

    def __init__(self, key: str, problem: str | Exception, *, valid: str | Iterable[object] = "") -> None:
        super().__init__(problem, valid=valid)
        self.key = key


class Precisions(Section):
    """Number formats in which a step computes, stores and sends."""

    compute: Precision = "bf16"
    """Operands of matrix products."""
    weights: Precision = "bf16"
    """Weights, also when they are gathered."""
    activations: Precision = "bf16"
    """Activations and their gradients, also between ranks."""
    gradients: Precision = "fp32"
    """Weight gradients, also when they are reduced."""
    dispatch: Precision = "bf16"
    """Tokens on their way to experts, and gradients sent to experts in the backward pass."""

    def bytes_of(self, what: str) -> int:
        """Return the bytes of an element in the format of the field `what`."""
        return PRECISION_BYTES[getattr(self, what)]


@dataclass(frozen=True)
class TrainingPlan:
    """A step of training.

    Attributes:
        model: the model trained.
        parallel: how ranks divide it.
        micro_batches: consecutive micro-batches of each replica.
        micro_batch: sequences of each micro-batch.
        accelerator: accelerator of every rank.
        precisions: number formats.
        recomputation: which activations the backward pass recomputes: none, attention's scores (`selective`,
            Korthikanti et al. 2022, section 5), or all of a layer (`full`).
        routing: how tokens choose experts.
        ranks_per_host: ranks on each host, with consecutive numbers.
        seed: random seed of tokens' choices.
        algorithms: algorithm of the groups' collectives by category; groups choose it for other categories.
    """

    model: Transformer
    parallel: Parallelism = field(default_factory=Parallelism)
    micro_batches: int = 1
    micro_batch: int = 1
    accelerator: Accelerator = ACCELERATORS["H100"]
    precisions: Precisions = field(default_factory=Precisions)
    recomputation: Recomputation = "selective"
    routing: Routing = field(default_factory=Routing)
    ranks_per_host: int = 1
    seed: int = 1
    algorithms: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise PlanError for degrees that do not divide the model, invalid schedules or routing, and large jobs."""
        self._check_divisions()
        parallel = self.parallel
        if parallel.schedule not in PIPELINE_SCHEDULES:
            hint = did_you_mean(parallel.schedule, PIPELINE_SCHEDULES)
            raise PlanError("parallel.schedule", f"no pipeline schedule {shown(parallel.schedule)}; {hint}")
        schedule = PIPELINE_SCHEDULES[parallel.schedule]
        parts = parallel.pipeline * parallel.virtual_stages
        if parts > self.model.layers:
            raise PlanError(
                "parallel.pipeline",
                f"{parallel.pipeline} stages of {parallel.virtual_stages} parts for {self.model.layers} layers",
                valid=f"up to {max(self.model.layers // parallel.virtual_stages, 1)}",
            )
        if objection := schedule.objection(parallel.pipeline, self.micro_batches, parallel.virtual_stages):
            raise PlanError("parallel.schedule", objection)
        if self.micro_batches * self.model.layers > MAX_LAYER_PASSES:
            raise PlanError(
                "micro_batches",
                f"{self.micro_batches} of {self.model.layers} layers",
                valid=f"up to {MAX_LAYER_PASSES // self.model.layers}",
            )
        self._check_routing()
        if self.precisions.compute not in self.accelerator.peak_tflops:
            raise PlanError(
                "precisions.compute",
                f"{self.precisions.compute}, which the accelerator lacks",
                valid=self.accelerator.peak_tflops,
            )

    def _check_divisions(self) -> None:
        model, parallel = self.model, self.parallel
        for key, what, total in (
            ("tensor", "heads", model.heads),
            ("tensor", "kv_heads", model.heads if model.latent_attention else model.key_value_heads),
            ("tensor", "feed_forward", model.feed_forward),
            ("tensor", "experts.feed_forward", model.experts.feed_forward if model.experts else 0),
            ("context", "sequence", model.sequence),
            ("expert", "experts.count", model.experts.count if model.experts else 0),
        ):
            self._check_division(key, getattr(parallel, key), f"the model's {what}", total)
        if parallel.sequence:
            tokens = model.sequence // parallel.context
            self._check_division("tensor", parallel.tensor, "each rank's part of the sequence", tokens)
        if parallel.expert > 1 and model.experts is None:
            raise PlanError("parallel.expert", f"{parallel.expert} for a model without experts", valid="1")
        self._check_division("expert", parallel.expert, "the product of context and data", parallel.replicas)
        if model.experts and parallel.tensor > 1 and not parallel.sequence:
            # As Megatron-LM requires; otherwise each of the tensor ranks would send every token.
            raise PlanError("parallel.sequence", "false with tensor parallelism and experts", valid="true")

    @staticmethod
    def _check_division(key: str, degree: int, what: str, total: int) -> None:
        if total % degree:
            below = next(each for each in range(min(degree, total), 0, -1) if total % each == 0)
            above = next((each for each in range(degree, total + 1) if total % each == 0), below)
            valid = f"{below}" if below == above else f"{below} or {above}"
            raise PlanError(f"parallel.{key}", f"{degree} does not divide {what}, {total} (nearest: {valid})")

    def _check_routing(self) -> None:
        experts, routing = self.model.experts, self.routing
        if experts is None:
            if routing != Routing():
                raise PlanError("routing", "of a model without experts", valid="none")
            return
        if routing.popularity is not None and len(routing.popularity) != experts.count:
            raise PlanError("routing.popularity", f"of {len(routing.popularity)} experts", valid=f"of {experts.count}")
        if routing.hosts_per_token is None and routing.is_balanced:
            return
        if self.ranks_per_host % self.parallel.tensor and self.parallel.expert > 1:
            raise PlanError(
                "parallel.tensor",
                f"{self.parallel.tensor} for hosts of {self.ranks_per_host} ranks, with routing by hosts",
                valid=f"a divisor of {self.ranks_per_host}",
            )
        with translated(BadInputError, PlanError, "routing.matrix"):
            given = routing.given
        if given is not None:
            problem = matrix_problem(given, self.parallel.expert, experts.count, experts.top_k, self.routed_tokens)
            if problem:
                raise PlanError("routing.matrix", problem)
        choices = self.routed_tokens * experts.count * self.parallel.expert
        if given is None and not routing.is_balanced and choices > MAX_CHOICES:
            raise PlanError(
                "routing",
                f"{self.routed_tokens} tokens of {self.parallel.expert} ranks choose among {experts.count} experts "
                f"(valid without balance: a product up to {MAX_CHOICES})",
            )
        messages = self.micro_batches * self.model.layers * self.parallel.expert**2
        if not routing.is_balanced and messages > MAX_LAYER_PASSES:
            raise PlanError(
                "micro_batches",
                f"{self.micro_batches} of {self.model.layers} layers, with messages between {self.parallel.expert} "
                "ranks",
                valid=f"up to {MAX_LAYER_PASSES // (self.model.layers * self.parallel.expert**2)}",
            )
        if self.parallel.expert % self.expert_ranks_per_host:
            raise PlanError(
                "parallel.expert",
                f"{self.parallel.expert}, of which {self.expert_ranks_per_host} share a host, with routing by hosts",
                valid=f"a multiple of {self.expert_ranks_per_host}",
            )

    @property
    def expert_ranks_per_host(self) -> int:
        """How many of the ranks that share experts are on each host."""
        return max(min(self.ranks_per_host // self.parallel.tensor, self.parallel.expert), 1)

    @property
    def expert_hosts(self) -> int:
        """Number of hosts with the ranks that share experts."""
        return self.parallel.expert // self.expert_ranks_per_host

    @property
    def routed_tokens(self) -> int:
        """Tokens of a micro-batch that a rank sends to experts."""
        return self.rank_tokens // self.parallel.sequence_shares

    @cached_property
    def drawn_tokens(self) -> RoutedTokens:
        """Tokens that ranks that share experts send each other for a micro-batch, if routing is not balanced."""
        assert self.model.experts is not None
        return routed_tokens(
            self.routing,
            self.model.experts.count,
            self.model.experts.top_k,
            self.parallel.expert,
            self.expert_ranks_per_host,
            self.routed_tokens,
            self.seed,
        )

    @property
    def gathered_copies(self) -> int:
        """Token copies that the tensor ranks of an expert gather, under balanced routing."""
        top_k = self.model.experts.top_k if self.model.experts else 0
        return self.rank_tokens * top_k

    @property
    def sequences(self) -> int:
        """Sequences of a step over all replicas: the global batch."""
        return self.parallel.data * self.micro_batches * self.micro_batch

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.sequences * self.model.sequence

    @property
    def rank_tokens(self) -> int:
        """Tokens of a micro-batch on a rank, before tensor parallelism divides them."""
        return self.micro_batch * self.model.sequence // self.parallel.context

    @cached_property
    def stage_steps(self) -> tuple[tuple[Step, ...], ...]:
        """The passes of each pipeline stage, in order."""
        parallel = self.parallel
        schedule = PIPELINE_SCHEDULES.named(parallel.schedule)
        return tuple(
            tuple(schedule.steps(stage, parallel.pipeline, self.micro_batches, parallel.virtual_stages))
            for stage in range(parallel.pipeline)
        )

    def layers_of(self, stage: int, part: int) -> range:
        """Return the layers in a part of a stage."""
        return self.parallel.layers_of(self.model.layers, stage, part)

    def units_of(self, stage: int, part: int) -> list[int]:
        """Return the units of a part of a stage: embedding (-1) if it has it, layers, output if it has it."""
        before = [-1] if self.has_embedding(stage, part) else []
        behind = [self.model.layers] if self.has_output(stage, part) else []
        return [*before, *self.layers_of(stage, part), *behind]

    def has_embedding(self, stage: int, part: int) -> bool:
        """Return whether a part of a stage begins with the embedding."""
        return stage == 0 and part == 0

    def has_output(self, stage: int, part: int) -> bool:
        """Return whether a part of a stage ends with the output matrix and the loss."""
        return stage == self.parallel.pipeline - 1 and part == self.parallel.virtual_stages - 1
