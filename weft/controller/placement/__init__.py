"""Placements of aggregation jobs' trees: one kind per file, found by listing this folder."""

from __future__ import annotations

from weft.controller.errors import SettingError
from weft.controller.placement.kind import DEFAULT_PLACEMENT, Placement
from weft.registry import Registry, constant_of

PLACEMENTS: Registry[Placement] = Registry(
    __name__, "placement of trees", constant_of(Placement), SettingError, default=DEFAULT_PLACEMENT
)

__all__ = ["DEFAULT_PLACEMENT", "PLACEMENTS", "Placement"]
