"""Script: users' hosts, written with Scapy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from weft.error_translation import raised_as_weft_errors
from weft.quantities.definitions import PositiveTime
from weft.quantities.units import PS_PER_S
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
    """Hosts controlled by your own classes, each a `weft.ScriptedHost`, which send and receive frames."""

    kind = "script"
    sends_any_packets = True
    fills_link_mtu = True
    results: ClassVar = SCRIPTS

    script: dict[HostName, ClassReference] = Field(min_length=1)
    """The class of each host, path/to/file.py:Class."""
    duration: PositiveTime
    """Time after which scripts end, unless they have finished."""
    parameters: dict[HostName, dict[str, Any]] = Field(default={})
    """Keyword arguments of each host's class."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that hosts with parameters have scripts."""
        super().check(fabric, key)
        for host in self.parameters:
            if host not in self.script:
                raise KeyProblem(f"{key}.parameters", f"{host} has no script", valid=self.script)

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that the fabric has the hosts."""
        check_hosts(topology, self.script, f"{key}.script")

    @raised_as_weft_errors()
    def check_classes(self, topology: FabricSpec, seed: int) -> None:
        """Check that each class can be instantiated."""
        for spec in self._specs().values():
            make(spec, ScriptedHost)

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return the default plus the scripts' duration."""
        return super().time_limit_s(fabric) + self.duration / PS_PER_S

    def task(self, fabric: Fabric) -> Task[list[ScriptResult]]:
        """Return the scripts as a task."""
        return script_task(fabric, self._specs(), self.duration)

    def _specs(self) -> dict[str, ClassSpec]:
        return {host: ClassSpec(reference, self.parameters.get(host, {})) for host, reference in self.script.items()}
