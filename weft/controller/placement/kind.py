"""The definition of a placement; each other file of this package defines one as `KIND`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.controller.tree_load import TreeLoad

DEFAULT_PLACEMENT = "load"


@dataclass(frozen=True)
class Placement:
    """A rule for choosing among equally small trees with room.

    Attributes:
        name: name in scenarios.
        summary: one-line description.
        view: returns the part of the fabric's load that the choice considers, given the whole load and the job's id.
            Slots and quotas are kept: trees without room on switches or links come last with any placement.

    """

    name: str
    summary: str
    view: Callable[[TreeLoad, int], TreeLoad]
