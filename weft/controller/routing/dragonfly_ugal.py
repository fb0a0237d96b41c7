"""UGAL-L on dragonflies: minimal, or through a random group if the minimal route has the longer queue."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from weft.controller.routing.dragonfly_valiant import KIND as VALIANT
from weft.controller.routing.dragonfly_valiant import groups_of, through_groups
from weft.controller.routing.through_intermediates import UGAL_TABLES

KIND = replace(
    VALIANT,
    name="dragonfly_ugal",
    summary="on a dragonfly, minimal or through a random group, by queue depths (UGAL-L)",
    tables=UGAL_TABLES,
    plane=partial(through_groups, compares_queues=True),
    intermediates=partial(groups_of, compares_queues=True),
)
