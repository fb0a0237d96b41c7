"""Training run: really trains a small model; the fabric adds up its gradients."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from weft.clocks.lab import Progress
from weft.jobs.digits_mlp import IMAGES, DigitsMlp, parameter_count
from weft.quantities.definitions import Size, Time, number, whole
from weft.quantities.example import Example
from weft.results.training_runs import TRAINING_RUNS
from weft.run.algorithms import any_in_network, check_algorithms, check_paths, suitable
from weft.run.clear_to_send import check_way_of_messages, objection_to_clear_to_send
from weft.run.digits_section import DigitsSection
from weft.run.traffic_kinds.base import Run, TrafficItem
from weft.run.training_runs import TrainingRunPlan, train
from weft.scenario.clear_to_send import ClearToSendSection
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import AlgorithmName
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import DataType
from weft.traffic.training import GRADIENT_COLLECTIVE, STEP_NEEDS_LANES

if TYPE_CHECKING:
    from weft.run.fabric import Fabric


class TrainingRunTraffic(TrafficItem):
    """Data-parallel training on all ranks, once per algorithm, compared with the same training by one process."""

    kind = "training_run"
    results = TRAINING_RUNS

    training_run: Literal["digits"]
    """Model trained: the perceptron on handwritten digits."""
    mlp: DigitsSection = Field(default=DigitsSection())
    """Size and training parameters of the model."""
    steps: Annotated[int, whole(1, 10_000)] = 1
    """Training steps."""
    compute: Time = 0
    """Time of the forward and backward pass of a step on every rank."""
    optimizer: Time = 0
    """Time of the optimizer, which waits for all gradients to be reduced."""
    bucket: Size = 25 * 2**20
    """Size of the gradients that are all-reduced together, concurrently with the backward pass."""
    algorithms: list[AlgorithmName] | None = Field(None, min_length=1)
    """Algorithms of the all-reduces; by default all that suit the fabric."""
    loss_bound: Annotated[float, number(0, 1000)] = 1e-4
    """Largest difference of a loss from the loss in one process; beyond it the run's result is wrong."""
    accuracy_bound: Annotated[float, number(0, 1)] = 0.005
    """Largest difference of the accuracy from the accuracy in one process."""
    clear_to_send: Annotated[ClearToSendSection | None, Example("{window: 4}", (".algorithms=[ring]",))] = None
    """Receiver-driven admission of messages between hosts: ranks send only what the receiver has cleared; needs
    `algorithms`. By default they do not wait."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that each rank has images, and the algorithms."""
        if fabric.rank_count > IMAGES:
            raise KeyProblem(key, f"{fabric.rank_count} ranks share {IMAGES} images", valid=f"up to {IMAGES} ranks")
        all_reduce = COLLECTIVE_KINDS[GRADIENT_COLLECTIVE]
        check_algorithms(all_reduce, self.algorithms or (), fabric, key, lanes_for=STEP_NEEDS_LANES)
        if self.clear_to_send is not None:
            check_way_of_messages("clear_to_send", objection_to_clear_to_send, all_reduce, self.algorithms, fabric, key)

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that the fabric has the links and NICs that algorithms need."""
        check_paths(COLLECTIVE_KINDS[GRADIENT_COLLECTIVE], self.algorithms, topology, key, STEP_NEEDS_LANES)

    def data_bytes(self, ranks: int) -> int:
        """Return the bytes of a rank's gradients, in both orders of the layers, and of their sums."""
        return 3 * parameter_count(self.mlp.hidden) * DataType.FLOAT32.element_bytes

    def reduces_in_network(self, fabric: FabricSpec) -> bool:
        """Return whether an algorithm reduces in the network."""
        return any_in_network(COLLECTIVE_KINDS[GRADIENT_COLLECTIVE], self.algorithms or (), fabric)

    def prepare(self, ranks: int, seed: int) -> Run:
        """Read the images; return a function that runs the item."""
        plan = TrainingRunPlan(
            model=DigitsMlp(ranks, seed, self.mlp.hidden, self.mlp.batch),
            steps=self.steps,
            learning_rate=self.mlp.learning_rate,
            target_loss=self.mlp.target_loss,
            compute_ps=self.compute,
            optimizer_ps=self.optimizer,
            bucket_bytes=self.bucket,
            clear_to_send=None if self.clear_to_send is None else self.clear_to_send.settings(),
            loss_bound=self.loss_bound,
            accuracy_bound=self.accuracy_bound,
        )
        return partial(self._run, plan=plan)

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Read the images and train."""
        self.prepare(fabric.topology.rank_count, fabric.options.seed)(fabric, progress)

    def _run(self, fabric: Fabric, progress: Progress, plan: TrainingRunPlan) -> None:
        all_reduce = COLLECTIVE_KINDS[GRADIENT_COLLECTIVE]
        for algorithm in self.algorithms or suitable(fabric.topology, all_reduce, progress, STEP_NEEDS_LANES):
            fabric.add_result(TRAINING_RUNS, train(fabric, plan, algorithm, progress))
