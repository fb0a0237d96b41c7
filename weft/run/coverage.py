"""P4 coverage of a fabric's switches in virtual time."""

from __future__ import annotations

from weft.run.attached import virtual_lab
from weft.run.fabric import Fabric
from weft.switch.coverage.model import ProgramCoverage
from weft.switch.native import NativeSwitch
from weft.switch.native.coverage import cover, coverage_of


class RunCoverage:
    """Counts the code that packets reach in all switches, from `begin` to `end`; then `found` has the coverage.

    Meanwhile switches run instrumented code, which is slower but takes the same emulated time.
    """

    def __init__(self) -> None:
        self._switches: list[NativeSwitch] = []
        self.found: list[ProgramCoverage] = []

    def begin(self, fabric: Fabric) -> None:
        """See Attached. Raises EnvironmentLacksError unless the switches are in this process."""
        lab = virtual_lab(fabric, "--coverage")
        self._switches = [lab.native_switch(switch.name) for switch in fabric.topology.switches]
        cover(self._switches)

    def end(self, _fabric: Fabric) -> None:
        """See Attached."""
        self.found = coverage_of(self._switches)
