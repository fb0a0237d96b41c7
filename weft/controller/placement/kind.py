"""The definition of a placement; each other file of this package defines one as `KIND`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.controller.tree_load import TreeLoad

DEFAULT_PLACEMENT = "load"


@dataclass(frozen=True)
class Placement:
    """By what one of several trees is chosen that have room, and are equally small.

    Attributes:
        name: in scenarios.
        summary: one line for people.
        view: what the choice sees of the fabric's load, given all of it and the job's id. Slots and quotas stay as
            they are: a tree for which switches or links have no room comes last with any placement.

    """

    name: str
    summary: str
    view: Callable[[TreeLoad, int], TreeLoad]
