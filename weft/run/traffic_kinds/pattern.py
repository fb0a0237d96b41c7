"""Pattern: flows from a user's class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from weft.clocks.lab import Progress
from weft.error_translation import raised_as_weft_errors
from weft.results.flows import FlowsResult
from weft.run.traffic_kinds.base import FlowsOfTenants
from weft.scenario.values import ClassReference
from weft.topologies import FabricSpec
from weft.traffic.extensions import ClassSpec, TrafficPattern, flows_of, make

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


class PatternTraffic(FlowsOfTenants):
    """Flows of your own class, a `weft.TrafficPattern`, made with `parameters`."""

    kind = "pattern"

    pattern: ClassReference
    """The class."""
    parameters: dict[str, Any] = Field(default={})
    """Keyword arguments of the class."""

    @raised_as_weft_errors()
    def check_classes(self, topology: FabricSpec, seed: int) -> None:
        """Check the class and its flows."""
        flows_of(self._made(), topology, seed)

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run the flows."""
        pattern = self._made()
        progress(type(pattern).__name__)
        fabric.pattern(pattern, tenant=self.tenant)

    def task(self, fabric: Fabric) -> Task[FlowsResult]:
        """Return the class's flows as a task."""
        return fabric.tasks.pattern(self._made(), self.tenant)

    @raised_as_weft_errors()
    def _made(self) -> TrafficPattern:
        return make(ClassSpec(self.pattern, self.parameters), TrafficPattern)  # type: ignore[type-abstract]
