"""Places trees where the fewest others are."""

from __future__ import annotations

from weft.controller.placement.kind import Placement
from weft.controller.tree_load import TreeLoad


def _everything(load: TreeLoad, _job_id: int) -> TreeLoad:
    return load


KIND = Placement(
    name="load",
    summary="the tree with the least promised on its fullest link; then the root with the fewest trees",
    view=_everything,
)
