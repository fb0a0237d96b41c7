"""Script: hosts that users write with Scapy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from weft.error_translation import raised_as_weft_errors
from weft.quantities.definitions import PositiveTime
from weft.results.plain_hosts import SCRIPTS
from weft.results.plain_hosts_model import ScriptResult
from weft.run.plain_hosts import script_task
from weft.run.plain_items import HostName, PlainItem, check_hosts
from weft.scenario.places import KeyProblem
from weft.scenario.values import ClassReference
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.extensions import ClassSpec, make
from weft.traffic.programs import ScriptedHost

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


class ScriptTraffic(PlainItem):
    """Hosts that send and receive frames as classes of yours say, each a `weft.ScriptedHost`."""

    kind = "script"
    results: ClassVar = SCRIPTS

    script: dict[HostName, ClassReference] = Field(min_length=1)
    """The class of each host, path/to/file.py:Class."""
    duration: PositiveTime
    """After which they end, unless they have finished."""
    parameters: dict[HostName, dict[str, Any]] = Field(default={})
    """Of each host, keyword arguments that its class is made with."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that parameters are those of scripts."""
        super().check(fabric, key)
        for host in self.parameters:
            if host not in self.script:
                raise KeyProblem(
                    f"{key}.parameters", f"{host} has no script (valid: {', '.join(self.script)})"
                )

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that the fabric has the hosts."""
        check_hosts(topology, self.script, f"{key}.script")

    @raised_as_weft_errors()
    def check_classes(self, topology: FabricSpec, seed: int) -> None:
        """Check that each class can be made."""
        for spec in self._specs().values():
            make(spec, ScriptedHost)

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return more than the scripts take."""
        return super().time_limit_s(fabric) + self.duration / 1e12

    def task(self, fabric: Fabric) -> Task[list[ScriptResult]]:
        """Return the scripts."""
        return script_task(fabric, self._specs(), self.duration)

    def _specs(self) -> dict[str, ClassSpec]:
        return {
            host: ClassSpec(reference, self.parameters.get(host, {}))
            for host, reference in self.script.items()
        }
