"""Dimension order without datelines: lossless rings of five switches or more may then deadlock."""

from __future__ import annotations

from dataclasses import replace

from weft.controller.routing.dimension_order import KIND as DIMENSION_ORDER
from weft.controller.routing.lanes import ONE_LANE

KIND = replace(
    DIMENSION_ORDER,
    name="dimension_order_one_lane",
    summary="dimension order without datelines, to show their purpose",
    is_deadlock_free=lambda _fabric: False,
    lanes=lambda _fabric, _plane: ONE_LANE,
)
