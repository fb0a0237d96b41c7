"""Permutation: every host sends to one and receives from one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.clocks.lab import Progress
from weft.quantities.definitions import FlowSize
from weft.run.traffic_kinds.base import FlowItem
from weft.scenario.traffic import FlowData

if TYPE_CHECKING:
    from weft.run.fabric import Fabric


class PermutationTraffic(FlowItem):
    """Every host writes to one other, drawn from the seed, on all planes."""

    kind = "permutation"

    permutation: FlowSize
    """What each host writes on each plane."""
    data: FlowData = "zeros"
    """`lengths`: packets carry the number of bytes only, for large runs under the virtual clock."""

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Have all write."""
        progress("permutation")
        fabric.permutation(self.permutation, data=self.data)
