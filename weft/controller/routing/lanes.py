"""Virtual lanes: how the packets of a lossless fabric take turns of buffers, so that no cycle of them can fill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_LANES = 5
"""That data has; other traffic has fewer."""
Layers = Mapping[str, Mapping[int, int]]
"""By the switch that hosts send into, then lane, where it is not 0: the switches to whose hosts packets begin in it, as
bits by their place in the plane."""
INTERMEDIATE_LAYER = 7
"""Layer in which packets leave their intermediate where that changes their lane; no destination has it."""


@dataclass(frozen=True)
class LaneRule:
    """At one switch: packets that came in `lane` go on in `to`. A port of None matches every port."""

    lane: int
    to: int
    ingress_port: int | None = None
    egress_port: int | None = None

    def matches(self, ingress_port: int, egress_port: int, lane: int) -> bool:
        """Return whether it decides for a packet between two ports."""
        return (
            self.lane == lane
            and self.ingress_port in (None, ingress_port)
            and self.egress_port in (None, egress_port)
        )


@dataclass(frozen=True)
class VirtualLanes:
    """The lanes of one plane's routes. They stay as they are when links fail.

    Attributes:
        count: how many lanes there are, numbered from 0; a host sends in lane 0.
        rules: of a switch, by its name. The first that matches decides; a packet that none matches stays in its lane.
        has_layers: whether hosts' packets may begin in any lane, which the latest routes say (`PlaneRouting.layers`):
            their first switch moves them there before its rules.
        after_intermediate: lane to which a packet changes where it leaves its intermediate, before the rules of that
            switch, by its lane until then; without one it stays.

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
