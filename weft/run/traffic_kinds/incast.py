"""Incast: many hosts write to one host at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from weft.clocks.lab import Progress
from weft.hints import did_you_mean
from weft.quantities.definitions import FlowSize, QueuePairs, whole
from weft.quantities.units import shown
from weft.results.flows import FlowsResult
from weft.run.traffic_kinds.base import FlowsOfTenants, check_queue_pairs
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import FlowData
from weft.scenario.values import Text
from weft.topologies.addressing import MAX_PLANES
from weft.topologies.kinds.base import TopologySection

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


class IncastTraffic(FlowsOfTenants):
    """Every other host writes to one host at the same time, on one plane."""

    kind = "incast"

    incast: Annotated[str, Text("a host", r"\S", "h0")]
    """The host that receives."""
    bytes_per_sender: FlowSize = 65536
    """Bytes that each other host writes."""
    plane: Annotated[int, whole(0, MAX_PLANES - 1)] = 0
    """Plane of the flows."""
    queue_pairs: QueuePairs = 1
    """Queue pairs over which each flow is divided (queue-pair scaling); their packets may take different paths."""
    data: FlowData = "zeros"
    """`lengths`: packets carry only their payload's length, for large runs under the virtual clock."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that the fabric has the host and the plane, and that every queue pair has bytes to write."""
        super().check(fabric, key)
        check_queue_pairs(self.queue_pairs, self.bytes_per_sender, key)
        hosts = fabric.host_names
        if self.incast not in hosts:
            raise KeyProblem(f"{key}.incast", f"no host {shown(self.incast)}; {did_you_mean(self.incast, hosts)}")
        if self.incast in hosts[fabric.rank_count :]:
            raise KeyProblem(f"{key}.incast", f"{self.incast} is a spare", valid="a host with a rank")
        if self.plane >= fabric.nics_per_host:
            raise KeyProblem(f"{key}.plane", f"{self.plane} is not one of 0 to {fabric.nics_per_host - 1}")

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run the incast."""
        progress(f"incast on {self.incast}")
        fabric.incast(
            self.incast,
            self.bytes_per_sender,
            self.plane,
            data=self.data,
            queue_pairs=self.queue_pairs,
            tenant=self.tenant,
        )

    def task(self, fabric: Fabric) -> Task[FlowsResult]:
        """Return the incast as a task."""
        return fabric.tasks.incast(
            self.incast,
            self.bytes_per_sender,
            self.plane,
            data=self.data,
            queue_pairs=self.queue_pairs,
            tenant=self.tenant,
        )
