"""Section of a scenario file on in-network aggregation: its packets, and where its trees go."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import field_validator

from weft.controller.placement import DEFAULT_PLACEMENT, PLACEMENTS
from weft.hints import did_you_mean
from weft.quantities.definitions import PositiveTime
from weft.quantities.units import shown
from weft.scenario.values import Name, Section
from weft.traffic.aggregation_format import LANE_COUNT

LaneCount = Literal[64, 128, 256, 1024]


class AggregationSection(Section):
    """Packets and trees of in-network aggregation."""

    lanes: LaneCount | None = None
    """int32 values of a packet with data. The program is compiled for them; a switch has the memory of 4,096 slots of
    64 lanes, whatever their number. The default is the most that `mtu` and `link_mtu` hold, 256 at most, as long as
    such a packet takes no longer on the slowest host's link than one of 64 lanes at 10 Gb/s: with an `mtu` of 1024
    bytes or more, 64 lanes up to 17 Gb/s, 128 up to 32 Gb/s, 256 above. It is 64 where `slots` or a tenant's `slots`
    count what a switch has."""
    placement: Annotated[str, Name("placement of trees", lambda: PLACEMENTS)] = DEFAULT_PLACEMENT
    """How the controller chooses among the smallest trees that have room. `load`: the tree with the least load
    promised to other jobs on its fullest link. `hash`: by the job's id. `first`: the first switch that serves."""

    lease: PositiveTime | None = None
    """How long a job may move no packet before its slots may be given to another that lacks some, once that is known:
    the switches' counters are read then, and a lease later. By default twice the longest time after which a worker
    repeats what has no result; less is refused."""

    @property
    def lane_count(self) -> int:
        """`lanes`, or 64 where neither the file nor `with_lanes` has set them."""
        return self.lanes or LANE_COUNT

    @field_validator("placement")
    @classmethod
    def _check_placement(cls, name: str) -> str:
        if name not in PLACEMENTS:
            raise ValueError(f"no placement of trees {shown(name)}; {did_you_mean(name, list(PLACEMENTS))}")
        return name
