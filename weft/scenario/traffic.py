"""Kinds of traffic a scenario file may list, one section each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from weft.quantities.definitions import TIME, FlowSize, MessageSize, Size, Time, number, whole
from weft.scenario.values import ClassReference, Name, Section, Text
from weft.traffic.collectives import algorithm_names, collectives

CollectiveName = Annotated[str, Name("collective", collectives, or_class=True)]
AlgorithmName = Annotated[str, Name("algorithm", algorithm_names)]

FLOW_DATA = ("zeros", "lengths")
FlowData = Literal["zeros", "lengths"]
"""What flows carry: bytes, all of them zero, or only the number of bytes, for large runs in virtual time."""


class CollectiveTraffic(Section):
    """A collective, run once per algorithm and size, each result checked against NumPy."""

    collective: CollectiveName
    """Which: one of Weft's, or path/to/file.py:Class, a `weft.Collective` of yours."""
    algorithms: list[AlgorithmName] | None = Field(None, min_length=1)
    """By default all that suit the collective and the fabric."""
    dtype: Literal["float32", "int32"] = "float32"
    """Of the elements."""
    operation: Literal["sum", "max", "min"] = "sum"
    """Of a collective that reduces."""
    root: Annotated[int, whole(0, 2**20)] = 0
    """Rank unlike the others, of a collective that has one: a broadcast's source, a reduce's destination."""
    data: Literal["random", "mlp-gradients", "lengths"] = "random"
    """`lengths`: packets carry lengths in place of data (but for what the network reduces); nothing is checked."""
    sizes: list[MessageSize] = Field(default=[])
    """As nccl-tests counts them; 64KiB by default."""
    repetitions: Annotated[int, whole(1, 1000)] = 1
    """Runs of each size by each algorithm; times are their mean, the least and the largest."""
    warmup: Annotated[int, whole(0, 1000)] = 0
    """Runs before these, which do not count."""


class LayerSection(Section):
    """Layers of a model that are alike."""

    gradients: MessageSize
    """Of each of them."""
    forward: Time = 0
    """How long its forward pass takes."""
    backward: Time = 0
    """How long its backward pass takes."""
    count: Annotated[int, whole(1, 10_000)] = 1
    """How many there are."""


class TrainingStepTraffic(Section):
    """A step of training, run once per algorithm. Buckets of gradients are all-reduced beside the backward pass."""

    training_step: Literal["data-parallel"]
    """Kind of parallelism."""
    layers: list[LayerSection] = Field(min_length=1)
    """In the order of the forward pass."""
    bucket: Size = 25 * 2**20
    """Gradients that are all-reduced together."""
    optimizer: Time = 0
    """How long the optimizer takes, once all gradients are reduced."""
    algorithms: list[AlgorithmName] | None = Field(None, min_length=1)
    """Of the all-reduces; by default all that suit the fabric."""
    dtype: Literal["float32", "int32"] = "float32"
    """Of the gradients."""
    data: Literal["random", "lengths"] = "random"
    """`random`: the sums are checked against NumPy. `lengths`: packets carry lengths in place of data."""


class IncastTraffic(Section):
    """Every other host writes to one host at the same time, on one plane."""

    incast: Annotated[str, Text("a host", r"\S", "h0")]
    """The host that receives."""
    bytes_per_sender: FlowSize = 65536
    """What each of the others writes."""
    plane: Annotated[int, whole(0, 7)] = 0
    """On which plane."""
    data: FlowData = "zeros"
    """`lengths`: packets carry the number of bytes only, for large runs under the virtual clock."""


class PermutationTraffic(Section):
    """Every host writes to one other, drawn from the seed, on all planes."""

    permutation: FlowSize
    """What each host writes on each plane."""
    data: FlowData = "zeros"
    """`lengths`: packets carry the number of bytes only, for large runs under the virtual clock."""


class WorkloadSection(Section):
    """Flows that every host starts at random for a time."""

    flow_sizes: Literal["websearch", "fb_hadoop", "alibaba_storage"]
    """Distribution of their sizes."""
    load: Annotated[float, number(0, 2, above=True, example="0.3")]
    """Share of the hosts' rate that they take."""
    duration: Annotated[int, TIME.between(1, example="1ms")]
    """For how long flows start."""


class WorkloadTraffic(Section):
    """A workload of many flows, whose completion times are compared with those on an idle fabric."""

    workload: WorkloadSection
    """Sizes and load of the flows."""


class PatternTraffic(Section):
    """Flows of a user's class, a `weft.TrafficPattern`, made with `parameters`."""

    pattern: ClassReference
    """The class."""
    parameters: dict[str, Any] = Field(default={})
    """Keyword arguments that it is made with."""


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
