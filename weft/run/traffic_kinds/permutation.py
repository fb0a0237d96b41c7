"""Permutation: every host sends to one host and receives from one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.clocks.lab import Progress
from weft.quantities.definitions import FlowSize, QueuePairs
from weft.results.flows import FlowsResult
from weft.run.traffic_kinds.base import FlowsOfTenants, check_queue_pairs
from weft.scenario.traffic import FlowData
from weft.topologies.kinds.base import TopologySection

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


class PermutationTraffic(FlowsOfTenants):
    """Every host writes to one other host, drawn from the seed, on all planes."""

    kind = "permutation"

    permutation: FlowSize
    """Bytes that each host writes on each plane."""
    queue_pairs: QueuePairs = 1
    """Queue pairs over which each flow is divided (queue-pair scaling); their packets may take different paths."""
    data: FlowData = "zeros"
    """`lengths`: packets carry only their payload's length, for large runs under the virtual clock."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that the fabric has at least two hosts, and that every queue pair has bytes to write."""
        super().check(fabric, key)
        check_queue_pairs(self.queue_pairs, self.permutation, key)

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run the permutation."""
        progress("permutation")
        fabric.permutation(self.permutation, data=self.data, queue_pairs=self.queue_pairs, tenant=self.tenant)

    def task(self, fabric: Fabric) -> Task[FlowsResult]:
        """Return the permutation as a task."""
        return fabric.tasks.permutation(
            self.permutation, data=self.data, queue_pairs=self.queue_pairs, tenant=self.tenant
        )
