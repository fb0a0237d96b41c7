"""RDMA: users' programs on hosts, written with verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from weft.clocks.lab import Progress
from weft.error_translation import raised_as_weft_errors
from weft.errors import BadInputError, translated
from weft.quantities.definitions import whole
from weft.quantities.readable import counted
from weft.results.rdma import RDMA
from weft.run.rdma import OTHERS, of_each_host
from weft.run.traffic_kinds.base import TrafficItem, check_no_spares
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import NOTHING
from weft.scenario.values import ClassReference, Text
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection
from weft.traffic.extensions import ClassSpec, load_program

if TYPE_CHECKING:
    from weft.run.fabric import Fabric

HostName = Annotated[str, Text("a host's name, or others", r"\S", "h0")]


class RdmaTraffic(TrafficItem):
    """Your programs on hosts, written with `weft.rdma`. They start together; the item ends when all have returned."""

    kind = "rdma"
    results: ClassVar = RDMA
    operations = NOTHING

    rdma: dict[HostName, ClassReference] = Field(min_length=1)
    """Program of each host, a `weft.rdma.Program` or an `async def` function; `others` stands for all hosts not named.
    Hosts without a program do nothing."""
    parameters: dict[HostName, dict[str, Any]] = Field(default={})
    """Keyword arguments of each host's program."""
    timeout: Annotated[int, whole(1, 10**6)] = 300
    """Seconds after which the run fails, in real time or of the virtual clock."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that the fabric has no spares, as programs belong to hosts and not to ranks."""
        check_no_spares(fabric, key)

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that the fabric has the hosts."""
        hosts = [host.name for host in topology.hosts]
        for own in ("rdma", "parameters"):
            with translated(BadInputError, KeyProblem, f"{key}.{own}"):
                of_each_host(getattr(self, own), hosts)

    @raised_as_weft_errors()
    def check_classes(self, topology: FabricSpec, seed: int) -> None:
        """Check that the files have the programs, and that these accept their parameters."""
        others = self.parameters.get(OTHERS, {})
        for host, program in self.rdma.items():
            load_program(ClassSpec(program, self.parameters.get(host, others)))

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run the programs."""
        progress(f"rdma: {counted(len(self.rdma), 'program')}")
        fabric.rdma(self.rdma, self.parameters, timeout_s=self.timeout)
