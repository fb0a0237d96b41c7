"""Workload: flows of a distribution of sizes that start at random."""

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
    """Flows that every host starts at random for a time."""

    flow_sizes: FlowSizesName
    """Distribution of their sizes."""
    load: Annotated[float, number(0, 2, above=True, example="0.3")]
    """Share of the hosts' rate that they take."""
    duration: Annotated[int, TIME.between(1, example="1ms")]
    """For how long flows start."""


class WorkloadTraffic(FlowsBesideOthers):
    """A workload of many flows, whose completion times are compared with those on an idle fabric."""

    kind = "workload"
    results = WORKLOADS

    workload: WorkloadSection
    """Sizes and load of the flows."""

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Have all start flows, and wait for the last to end."""
        load = self.workload
        progress(f"{load.flow_sizes} at a load of {load.load:g}")
        fabric.workload(load.flow_sizes, load.load, load.duration)

    def task(self, fabric: Fabric) -> Task[WorkloadResult]:
        """Return the flows."""
        load = self.workload
        return fabric.tasks.workload(load.flow_sizes, load.load, load.duration)
