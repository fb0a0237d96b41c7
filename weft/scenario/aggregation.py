"""Section of a scenario file on in-network aggregation: its packets, and where its trees go."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import field_validator

from weft.controller.placement import DEFAULT_PLACEMENT, PLACEMENTS
from weft.hints import did_you_mean
from weft.quantities.definitions import PositiveTime
from weft.quantities.units import shown
from weft.scenario.values import Name, Section


class AggregationSection(Section):
    """What packets of in-network aggregation carry, and where its trees go."""

    lanes: Literal[64, 128, 256, 1024] = 64
    """int32 values of a packet with data. The program is compiled for them; a switch has the memory of 4,096 slots of
    64 lanes, whatever their number."""
    placement: Annotated[str, Name("placement of trees", lambda: PLACEMENTS)] = DEFAULT_PLACEMENT
    """By what the controller chooses among the smallest trees that have room. `load`: the one whose fullest link is
    promised least to other jobs. `hash`: by the job's id. `first`: the first switch that serves."""

    lease: PositiveTime | None = None
    """How long a job may move no packet before its slots may be given to another that lacks some, once that is known:
    the switches' counters are read then, and a lease later. By default twice the longest time after which a worker
    repeats what has no result; less is refused."""

    @field_validator("placement")
    @classmethod
    def _check_placement(cls, name: str) -> str:
        if name not in PLACEMENTS:
            raise ValueError(f"no placement of trees {shown(name)}; {did_you_mean(name, list(PLACEMENTS))}")
        return name
