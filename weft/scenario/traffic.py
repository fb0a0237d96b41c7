"""Kinds of traffic a scenario file may list, one section each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from weft.scenario.values import ClassReference, FlowBytes, Section, SizeBytes, TimePs

CollectiveName = Literal["allreduce", "reducescatter", "allgather", "alltoall", "broadcast", "reduce"]
AlgorithmName = Literal[
    "ring", "tree", "halving-doubling", "hierarchical", "in-network", "direct", "pairwise"
]


FLOW_DATA = ("zeros", "lengths")
FlowData = Literal["zeros", "lengths"]
"""What flows carry: bytes, all of them zero, or only the number of bytes, for large runs in virtual time."""


class CollectiveTraffic(Section):
    """A collective, run once per algorithm and size, each result checked against NumPy.

    Without `algorithms` it is run by all that suit it and the fabric. `data: lengths` carries lengths in place of data
    (but for what the network reduces), for large fabrics and sizes; then nothing is checked.
    """

    collective: CollectiveName
    algorithms: list[AlgorithmName] | None = Field(None, min_length=1)
    dtype: Literal["float32", "int32"] = "float32"
    operation: Literal["sum", "max", "min"] = "sum"
    root: int = Field(0, ge=0)
    data: Literal["random", "mlp-gradients", "lengths"] = "random"
    sizes: list[SizeBytes] = Field(default=[])
    repetitions: int = Field(1, ge=1, le=1000)


class LayerSection(Section):
    """`count` layers of a model: each one's gradients, and how long its forward and backward passes take."""

    gradients: SizeBytes
    forward: TimePs = 0
    backward: TimePs = 0
    count: int = Field(1, ge=1, le=10_000)


class TrainingStepTraffic(Section):
    """A step of data-parallel training, run once per algorithm, layers in the order of the forward pass.

    Buckets of gradients are all-reduced beside the backward pass. The sums are checked against NumPy unless `data` is
    `lengths`.
    """

    training_step: Literal["data-parallel"]
    layers: list[LayerSection] = Field(min_length=1)
    bucket: SizeBytes = 25 * 2**20
    optimizer: TimePs = 0
    algorithms: list[AlgorithmName] | None = Field(None, min_length=1)
    dtype: Literal["float32", "int32"] = "float32"
    data: Literal["random", "lengths"] = "random"


class IncastTraffic(Section):
    """Every other host writes to one host at the same time, on one plane."""

    incast: str
    bytes_per_sender: FlowBytes = 65536
    plane: int = Field(0, ge=0)
    data: FlowData = "zeros"


class PermutationTraffic(Section):
    """Every host writes to one other, drawn from the seed, on all planes."""

    permutation: FlowBytes
    data: FlowData = "zeros"


class WorkloadSection(Section):
    """Flows that every host starts at random for a time: their sizes, and the share of the host's rate they take."""

    flow_sizes: Literal["websearch", "fb_hadoop", "alibaba_storage"]
    load: float = Field(gt=0.0, le=2.0)
    duration: Annotated[TimePs, Field(gt=0)]


class WorkloadTraffic(Section):
    """A workload of many flows, whose completion times are compared with those on an idle fabric."""

    workload: WorkloadSection


class PatternTraffic(Section):
    """Flows of a user's class, a `weft.TrafficPattern`, made with `parameters`."""

    pattern: ClassReference
    parameters: dict[str, Any] = Field(default={})


Traffic = (
    CollectiveTraffic
    | TrainingStepTraffic
    | IncastTraffic
    | PermutationTraffic
    | WorkloadTraffic
    | PatternTraffic
)
TRAFFIC_KINDS: dict[str, type[Section]] = {
    "collective": CollectiveTraffic,
    "training_step": TrainingStepTraffic,
    "incast": IncastTraffic,
    "permutation": PermutationTraffic,
    "workload": WorkloadTraffic,
    "pattern": PatternTraffic,
}
