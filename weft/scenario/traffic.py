"""Kinds of traffic a scenario file may list, one section each."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from weft.scenario.values import ClassReference, FlowBytes, Section, SizeBytes

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


class PatternTraffic(Section):
    """Flows of a user's class, a `weft.TrafficPattern`, made with `parameters`."""

    pattern: ClassReference
    parameters: dict[str, Any] = Field(default={})


Traffic = CollectiveTraffic | IncastTraffic | PermutationTraffic | PatternTraffic
TRAFFIC_KINDS: dict[str, type[Section]] = {
    "collective": CollectiveTraffic,
    "incast": IncastTraffic,
    "permutation": PermutationTraffic,
    "pattern": PatternTraffic,
}
