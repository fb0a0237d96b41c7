"""Collectives: one file defines each, from shapes to algorithms (docs/howto/collective.md)."""

from weft.traffic.collectives.definition import (
    AVERAGE_NEEDS_LANES,
    Algorithm,
    Array,
    Collective,
    Generator,
    SaysIfScaleUp,
)
from weft.traffic.collectives.registry import AUTO, CHOICES, COLLECTIVE_KINDS, NCCL, algorithm_names, collective_named

__all__ = [
    "AUTO",
    "AVERAGE_NEEDS_LANES",
    "CHOICES",
    "COLLECTIVE_KINDS",
    "NCCL",
    "Algorithm",
    "Array",
    "Collective",
    "Generator",
    "SaysIfScaleUp",
    "algorithm_names",
    "collective_named",
]
