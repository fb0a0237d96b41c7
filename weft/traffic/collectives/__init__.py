"""Collectives: one file defines each, from shapes to algorithms (docs/howto/collective.md)."""

from weft.traffic.collectives.definition import (
    AVERAGE_NEEDS_LANES,
    Algorithm,
    Array,
    Collective,
    Generator,
    SaysIfScaleUp,
)
from weft.traffic.collectives.registry import AUTO, COLLECTIVE_KINDS, algorithm_names, collective_named

__all__ = [
    "AUTO",
    "AVERAGE_NEEDS_LANES",
    "COLLECTIVE_KINDS",
    "Algorithm",
    "Array",
    "Collective",
    "Generator",
    "SaysIfScaleUp",
    "algorithm_names",
    "collective_named",
]
