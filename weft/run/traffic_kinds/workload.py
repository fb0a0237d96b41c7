"""Workload: flows with sizes from a distribution and random starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from weft.clocks.lab import Progress
from weft.quantities.definitions import TIME, number
from weft.results.workloads import WORKLOADS, WorkloadResult
from weft.run.traffic_kinds.base import FlowsBesideOthers
from weft.scenario.values import Section
from weft.traffic.flow_sizes import FlowSizesName

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


class WorkloadSection(Section):
    """Flows that every host starts at random times."""

    flow_sizes: FlowSizesName
    """Distribution of flow sizes."""
    load: Annotated[float, number(0, 2, above=True, example="0.3")]
    """Load, as a share of the hosts' rate."""
    duration: Annotated[int, TIME.between(1, example="1ms")]
    """Time during which flows start."""


class WorkloadTraffic(FlowsBesideOthers):
    """A workload of many flows; results compare their completion times with an idle fabric's."""

    kind = "workload"
    results = WORKLOADS

    workload: WorkloadSection
    """Sizes and load of the flows."""

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Start flows on all hosts, and wait for the last to end."""
        load = self.workload
        progress(f"{load.flow_sizes} at a load of {load.load:g}")
        fabric.workload(load.flow_sizes, load.load, load.duration)

    def task(self, fabric: Fabric) -> Task[WorkloadResult]:
        """Return the flows as a task."""
        load = self.workload
        return fabric.tasks.workload(load.flow_sizes, load.load, load.duration)
