"""Flow list: flows listed in a file."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from weft.clocks.lab import Progress
from weft.errors import BadInputError, translated
from weft.hints import did_you_mean
from weft.jobs.traces import TRACE_FORMATS, read_trace
from weft.quantities.readable import counted
from weft.quantities.units import shown
from weft.results.flows import FlowsResult
from weft.run.traffic_kinds.base import FlowsOfTenants
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import FlowData
from weft.scenario.values import Name
from weft.topologies.kinds.base import TopologySection
from weft.traffic.patterns import Flow

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


def _formats() -> tuple[str, ...]:
    return tuple(name for name, each in TRACE_FORMATS.items() if each.holds_flows)


class FlowListTraffic(FlowsOfTenants):
    """Flows listed in a file: CSV, the text format of the HPCC simulators, or a connection matrix of htsim."""

    kind = "flow_list"
    files: ClassVar[tuple[str, ...]] = ("flow_list",)

    flow_list: Path
    """The file, relative to the scenario."""
    format: Annotated[str, Name("format", _formats)] | None = None
    """Format of the file; by default recognised from its contents."""
    data: FlowData = "zeros"
    """`lengths`: packets carry only their payload's length, for large runs under the virtual clock."""

    @cached_property
    def _flows(self) -> tuple[Flow, ...]:
        return read_trace(self.flow_list, self.format or "").flows

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that the file has flows, and that the fabric has their hosts and planes."""
        super().check(fabric, key)
        if self.format is not None and self.format not in _formats():
            raise KeyProblem(
                f"{key}.format",
                f"no format {shown(self.format)} of flows; {did_you_mean(self.format, _formats())}",
            )
        own = f"{key}.flow_list"
        with translated(BadInputError, KeyProblem, own):
            flows = self._flows
        if not flows:
            raise KeyProblem(own, f"{self.flow_list} has no flows")
        for number, flow in enumerate(flows, 1):
            host = max(flow.source, flow.destination)
            if host >= fabric.rank_count:
                raise KeyProblem(
                    own,
                    f"{self.flow_list}: flow {number} is of host {host}",
                    valid=f"0 to {fabric.rank_count - 1}",
                )
            if flow.plane >= fabric.nics_per_host:
                raise KeyProblem(
                    own,
                    f"{self.flow_list}: flow {number} is on plane {flow.plane}",
                    valid=f"0 to {fabric.nics_per_host - 1}",
                )

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run the flows."""
        progress(f"{counted(len(self._flows), 'flow')} of {self.flow_list.name}")
        fabric.run_flows(self.flow_list.stem, self._flows, data=self.data, tenant=self.tenant)

    def task(self, fabric: Fabric) -> Task[FlowsResult]:
        """Return the flows as a task."""
        return fabric.tasks.flows(self.flow_list.stem, self._flows, self.data, self.tenant)
