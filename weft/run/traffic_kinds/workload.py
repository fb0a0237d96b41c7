"""Workload: flows with sizes from a distribution and random starts."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from weft.clocks.lab import Progress
from weft.quantities.definitions import TIME, number
from weft.quantities.example import Example
from weft.results.workloads import WORKLOADS, WorkloadResult
from weft.run.traffic_kinds.base import FlowsBesideOthers
from weft.scenario.places import KeyProblem
from weft.scenario.values import Section
from weft.topologies.kinds.base import TopologySection
from weft.traffic.flow_sizes import FlowSizes, FlowSizesName

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


class WorkloadSection(Section):
    """Flows that every host starts at random times."""

    flow_sizes: FlowSizesName | None = None
    """Distribution of flow sizes, or give `flow_sizes_file`."""
    flow_sizes_file: Annotated[Path | None, Example("examples/traces/sizes.txt")] = None
    """File with your own distribution: `bytes percent` lines, 0 to 100 percent; relative to the scenario's file."""
    load: Annotated[float, number(0, 2, above=True, example="0.3")]
    """Load, as a share of the hosts' rate."""
    duration: Annotated[int, TIME.between(1, example="1ms")]
    """Time during which flows start."""


class WorkloadTraffic(FlowsBesideOthers):
    """A workload of many flows; results compare their completion times with an idle fabric's."""

    kind = "workload"
    results = WORKLOADS
    files: ClassVar[tuple[str, ...]] = ("workload.flow_sizes_file",)

    workload: WorkloadSection
    """Sizes and load of the flows."""

    @cached_property
    def _sizes(self) -> str | FlowSizes:
        name, path = self.workload.flow_sizes, self.workload.flow_sizes_file
        if path is not None:
            return FlowSizes.from_file(path)
        assert name is not None
        return name

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that there is one distribution, and that its file is valid."""
        super().check(fabric, key)
        own = f"{key}.workload"
        if (self.workload.flow_sizes is None) == (self.workload.flow_sizes_file is None):
            given = "neither" if self.workload.flow_sizes is None else "both"
            raise KeyProblem(own, f"has {given} of flow_sizes and flow_sizes_file", valid="one of the two")
        try:
            _ = self._sizes
        except OSError as error:
            path = self.workload.flow_sizes_file
            raise KeyProblem(f"{own}.flow_sizes_file", f"{path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise KeyProblem(f"{own}.flow_sizes_file", error) from None

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Start flows on all hosts, and wait for the last to end."""
        load, sizes = self.workload, self._sizes
        progress(f"{sizes if isinstance(sizes, str) else sizes.name} at a load of {load.load:g}")
        fabric.workload(sizes, load.load, load.duration)

    def task(self, fabric: Fabric) -> Task[WorkloadResult]:
        """Return the flows as a task."""
        return fabric.tasks.workload(self._sizes, self.workload.load, self.workload.duration)
