"""Section of a scenario file on the packets of in-network aggregation."""

from __future__ import annotations

from typing import Literal

from weft.scenario.values import Section


class AggregationSection(Section):
    """What packets of in-network aggregation carry."""

    lanes: Literal[64, 128, 256, 1024] = 64
    """int32 values of a packet with data. The program is compiled for them; a switch has the memory of 4,096 slots of
    64 lanes, whatever their number."""
