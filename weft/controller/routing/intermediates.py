"""Intermediate switches or groups that packets may visit before their destinations, and lanes for both parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft.controller.routing.lanes import VirtualLanes


@dataclass(frozen=True)
class Intermediates:
    """The intermediates of a plane, numbered from 0.

    Attributes:
        of_switches: for each switch, in the order of the plane, the intermediate that it is or belongs to.
        compares_queues: whether a packet takes one only if the minimal route is more congested (UGAL-L).

    """

    of_switches: tuple[int, ...]
    compares_queues: bool = False

    @property
    def count(self) -> int:
        """Number of intermediates."""
        return 1 + max(self.of_switches)

    @property
    def are_enough(self) -> bool:
        """Whether there is a third intermediate for switches of any two."""
        return self.count > 2


def two_phases(lanes: VirtualLanes) -> VirtualLanes:
    """Return two sets of lanes: one up to the intermediate, another from there on."""
    count = lanes.count
    rules = {
        name: (*of_switch, *(replace(each, lane=each.lane + count, to=each.to + count) for each in of_switch))
        for name, of_switch in lanes.rules.items()
    }
    return VirtualLanes(2 * count, rules, after_intermediate=dict.fromkeys(range(count), count))
