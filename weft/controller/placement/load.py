"""Places trees where the fewest others are."""

from __future__ import annotations

from weft.controller.placement.kind import Placement
from weft.controller.tree_load import TreeLoad


def _everything(load: TreeLoad, _job_id: int) -> TreeLoad:
    return load


KIND = Placement(
    name="load",
    summary="the tree whose fullest link is promised least; then the root of the fewest trees",
    view=_everything,
)
