"""Virtual lanes: packets of a lossless fabric change between buffers so that no cycle of buffers can fill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_LANES = 5
"""Most lanes of data; other traffic has fewer."""
Layers = Mapping[str, Mapping[int, int]]
"""Destination switches of the packets that begin in a lane other than 0, by the hosts' switch and the lane; the
destinations are bits by place in the plane."""
INTERMEDIATE_LAYER = 7
"""Layer in which packets leave their intermediate, if that changes their lane; no destination uses it."""


@dataclass(frozen=True)
class LaneRule:
    """A rule of one switch: packets that came in `lane` continue in `to`. A port of None matches every port."""

    lane: int
    to: int
    ingress_port: int | None = None
    egress_port: int | None = None

    def matches(self, ingress_port: int, egress_port: int, lane: int) -> bool:
        """Return whether the rule applies to a packet between two ports in a lane."""
        return (
            self.lane == lane and self.ingress_port in (None, ingress_port) and self.egress_port in (None, egress_port)
        )


@dataclass(frozen=True)
class VirtualLanes:
    """The lanes of one plane's routes. They do not change when links fail.

    Attributes:
        count: number of lanes, numbered from 0; hosts send in lane 0.
        rules: rules by switch name. The first match decides; packets without a match stay in their lane.
        has_layers: whether hosts' packets may begin in any lane, according to the latest routes
            (`PlaneRouting.layers`): their first switch moves them there before applying its rules.
        after_intermediate: lane in which a packet leaves its intermediate, by its lane until then, before that switch's
            rules apply; packets in other lanes stay.

    """

    count: int = 1
    rules: Mapping[str, tuple[LaneRule, ...]] = field(default_factory=dict)
    has_layers: bool = False
    after_intermediate: Mapping[int, int] = field(default_factory=dict)

    def after(self, switch: str, ingress_port: int, egress_port: int, lane: int) -> int:
        """Return the lane in which a packet leaves a switch."""
        for rule in self.rules.get(switch, ()):
            if rule.matches(ingress_port, egress_port, lane):
                return rule.to
        return lane


ONE_LANE = VirtualLanes()
