"""A change of circuits between two traffic items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from weft.clocks.environment import CIRCUITS_STAY
from weft.clocks.lab import Progress
from weft.results.circuit_changes import CIRCUIT_CHANGES
from weft.results.kinds import ResultKind
from weft.run.traffic_kinds.base import TrafficItem
from weft.scenario.circuits import require_configuration
from weft.scenario.traffic import NOTHING
from weft.topologies import FabricSpec
from weft.topologies.circuits import ConfigurationName

if TYPE_CHECKING:
    from weft.run.fabric import Fabric


class CircuitChangeItem(TrafficItem):
    """The circuits change before the next item begins, as set in `circuits`."""

    kind = "circuits"
    results: ClassVar[ResultKind[Any]] = CIRCUIT_CHANGES
    operations = NOTHING
    lacking = CIRCUITS_STAY

    circuits: ConfigurationName
    """Name of the new configuration, from `fabric`."""

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that the fabric has the configuration."""
        require_configuration(topology, self.circuits, f"{key}.circuits")

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Change the circuits and wait until routes have been updated."""
        progress(f"circuits: {self.circuits}")
        fabric.change_circuits(self.circuits)
