"""Places trees at the first suitable switch, without regard to load."""

from __future__ import annotations

from weft.controller.placement.kind import Placement
from weft.controller.tree_load import TreeLoad


def _nothing(load: TreeLoad, _job_id: int) -> TreeLoad:
    return load.unseen()


KIND = Placement(
    name="first",
    summary="the first of the fabric's switches that can be the root",
    view=_nothing,
)
