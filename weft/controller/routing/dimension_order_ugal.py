"""UGAL-L on grids: dimension order, or through a random switch if the dimension-order route has the longer queue."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from weft.controller.routing.dimension_order_valiant import KIND as VALIANT
from weft.controller.routing.dimension_order_valiant import switches_of, through_switches
from weft.controller.routing.through_intermediates import UGAL_TABLES

KIND = replace(
    VALIANT,
    name="dimension_order_ugal",
    summary="on a torus, mesh or HyperX, in dimension order, or through a random switch by queue depths (UGAL-L)",
    tables=UGAL_TABLES,
    plane=partial(through_switches, compares_queues=True),
    intermediates=partial(switches_of, compares_queues=True),
)
