"""Training step: compute times, and concurrent all-reduces of gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from weft.clocks.lab import Progress
from weft.jobs.plain_jobs import training_step_job
from weft.quantities.definitions import TIME, MessageSize, Size, Time, whole
from weft.quantities.example import Example
from weft.quantities.units import PS_PER_S, shortest_time
from weft.results.collectives import LENGTHS
from weft.results.training_steps import TRAINING_STEPS, TrainingStepResult
from weft.run.algorithms import any_in_network, check_algorithms, check_paths, may_reduce, suitable
from weft.run.clear_to_send import check_way_of_messages, objection_to_clear_to_send, require_plain_messages
from weft.run.collectives import random_elements
from weft.run.traffic_kinds.base import JoinableItem, require_one
from weft.scenario.clear_to_send import ClearToSendSection
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import AlgorithmOrAuto
from weft.scenario.values import Section
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.clear_to_send import ClearToSend
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import DataType, DataTypeName
from weft.traffic.jobs import Job
from weft.traffic.training import GRADIENT_COLLECTIVE, STEP_NEEDS_LANES, Layer, TrainingStep

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


class LayerSection(Section):
    """Equal layers of a model."""

    gradients: MessageSize
    """Size of a layer's gradients."""
    forward: Time = 0
    """Time of a layer's forward pass."""
    backward: Time = 0
    """Time of a layer's backward pass."""
    count: Annotated[int, whole(1, 10_000)] = 1
    """Number of these layers."""


class TrainingStepTraffic(JoinableItem):
    """A training step, run once per algorithm. Buckets of gradients are all-reduced during the backward pass."""

    kind = "training_step"
    results = TRAINING_STEPS

    training_step: Literal["data-parallel"]
    """Kind of parallelism."""
    layers: list[LayerSection] = Field(min_length=1)
    """Layers in the order of the forward pass."""
    bucket: Size = 25 * 2**20
    """Size of the gradients that are all-reduced together."""
    optimizer: Time = 0
    """Time of the optimizer, which waits for all gradients to be reduced."""
    algorithms: list[AlgorithmOrAuto] | None = Field(None, min_length=1)
    """Algorithms of the all-reduces; by default all that suit the fabric. `auto`: the one predicted to be fastest."""
    dtype: DataTypeName = "float32"
    """Type of the gradients' elements."""
    data: Literal["random", "lengths"] = "random"
    """`random`: the sums are checked against NumPy. `lengths`: packets carry lengths in place of data."""
    tenant: Annotated[
        str, Example("blue", (".algorithms=[in-network]", ".dtype=int32", ".data=random", "tenants.blue={slots: 512}"))
    ] = ""
    """Tenant charged for its in-network reductions, a name in `tenants`; by default none."""
    clear_to_send: Annotated[ClearToSendSection | None, Example("{window: 4}", (".algorithms=[ring]",))] = None
    """Receiver-driven admission of messages between hosts: ranks send only what the receiver has cleared; needs
    `algorithms`. By default they do not wait."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check sizes, the total compute time, and algorithms."""
        for number, layer in enumerate(self.layers):
            if layer.gradients % self._element_bytes:
                raise KeyProblem(
                    f"{key}.layers[{number}].gradients",
                    f"{layer.gradients} B is not a multiple of {self._element_bytes}, the size of {self.dtype}",
                )
        compute_ps = self.optimizer + sum(layer.count * (layer.forward + layer.backward) for layer in self.layers)
        if not TIME.holds(compute_ps):
            raise KeyProblem(
                f"{key}.layers",
                f"the step computes for {shortest_time(compute_ps)} in all",
                valid=TIME.range_text,
            )
        all_reduce = COLLECTIVE_KINDS[GRADIENT_COLLECTIVE]
        check_algorithms(all_reduce, self.algorithms or (), fabric, key, lanes_for=STEP_NEEDS_LANES)
        if self.clear_to_send is not None:
            check_way_of_messages("clear_to_send", objection_to_clear_to_send, all_reduce, self.algorithms, fabric, key)

    @property
    def _clearing(self) -> ClearToSend | None:
        return None if self.clear_to_send is None else self.clear_to_send.settings()

    def named_tenants(self, key: str) -> Iterator[tuple[str, str, bool]]:
        """Yield the key of its tenant, the tenant, and whether switches may reduce."""
        may = may_reduce(COLLECTIVE_KINDS[GRADIENT_COLLECTIVE], self.algorithms or ())
        yield f"{key}.tenant", self.tenant, may

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that the fabric has the links and NICs that algorithms need."""
        check_paths(COLLECTIVE_KINDS[GRADIENT_COLLECTIVE], self.algorithms, topology, key, STEP_NEEDS_LANES)

    def data_bytes(self, ranks: int) -> int:
        """Return the bytes of a rank's gradients."""
        if self.data == LENGTHS:
            return 0
        return sum(layer.count * layer.gradients for layer in self.layers)

    def check_single(self, key: str) -> None:
        """Check that there is one algorithm."""
        require_one(self.algorithms or (), f"{key}.algorithms")

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return the default plus the compute times."""
        return super().time_limit_s(fabric) + self._step().compute_ps / PS_PER_S * fabric.options.dilation

    def reduces_in_network(self, fabric: FabricSpec) -> bool:
        """Return whether an algorithm reduces in the network."""
        return any_in_network(COLLECTIVE_KINDS[GRADIENT_COLLECTIVE], self.algorithms or (), fabric)

    def prepare_task(self, ranks: int, seed: int) -> Callable[[Fabric], Task[TrainingStepResult]]:
        """Make the gradients; return a function that makes the task."""
        step, [algorithm] = self._step(), list(self.algorithms or [])
        gradients = self._gradients(step, ranks, seed)
        return lambda fabric: fabric.tasks.training_step(
            step, algorithm, gradients, dtype=self.dtype, tenant=self.tenant, clear_to_send=self._clearing
        )

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run a step with every algorithm."""
        step = self._step()
        gradients = self._gradients(step, fabric.topology.rank_count, fabric.options.seed)
        all_reduce = COLLECTIVE_KINDS[GRADIENT_COLLECTIVE]
        for algorithm in self.algorithms or suitable(fabric.topology, all_reduce, progress, STEP_NEEDS_LANES):
            progress(f"training step of {step.gradient_count * self._element_bytes} B of gradients, {algorithm}")
            fabric.training_step(
                step, algorithm, gradients, dtype=self.dtype, tenant=self.tenant, clear_to_send=self._clearing
            )

    def as_job(self, topology: FabricSpec, seed: int) -> Job | None:
        """Return the step as a job, with the first algorithm.

        Raises BadInputError with clear_to_send, for which traces have no place.
        """
        require_plain_messages(self)
        algorithm = self.algorithms[0] if self.algorithms else ""
        return training_step_job(self._step(), algorithm, DataType(self.dtype), topology.rank_count)

    @property
    def _element_bytes(self) -> int:
        return DataType(self.dtype).element_bytes

    def _step(self) -> TrainingStep:
        return TrainingStep(
            layers=tuple(
                Layer(layer.gradients // self._element_bytes, layer.forward, layer.backward)
                for layer in self.layers
                for _ in range(layer.count)
            ),
            bucket_bytes=self.bucket,
            optimizer_ps=self.optimizer,
        )

    def _gradients(self, step: TrainingStep, ranks: int, seed: int) -> list[NDArray[Any]] | None:
        """Return every rank's gradients; None if packets carry lengths."""
        if self.data == LENGTHS:
            return None
        generator = np.random.default_rng(seed)
        return [random_elements(generator, DataType(self.dtype), step.gradient_count) for _ in range(ranks)]
