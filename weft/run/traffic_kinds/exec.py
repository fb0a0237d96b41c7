"""Exec: commands in hosts, such as RDMA programs of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from weft.clocks.exec_commands import HostCommand
from weft.clocks.lab import Progress
from weft.errors import BadInputError, translated
from weft.quantities.definitions import whole
from weft.quantities.readable import counted
from weft.results.exec import EXEC
from weft.run.exec import known_hosts
from weft.run.traffic_kinds.base import TrafficItem, check_no_spares
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import NOTHING
from weft.scenario.values import Text
from weft.topologies import FabricSpec
from weft.topologies.kinds.base import TopologySection

if TYPE_CHECKING:
    from weft.run.fabric import Fabric

HostName = Annotated[str, Text("a host's name", r"\S", "h0")]
CommandLine = Annotated[str, Text("a command line", r"\S", "ib_write_bw -x 0 h0")]


class ExecTraffic(TrafficItem):
    """Commands in hosts, as `weft exec` runs them: RDMA programs find the hosts' devices. Each begins when all before
    it wait or have ended, so servers come first. The item ends when all have ended."""

    kind = "exec"
    results: ClassVar = EXEC
    operations = NOTHING
    runs_commands = True

    exec: dict[HostName, CommandLine | list[CommandLine]] = Field(min_length=1)
    """Command lines of each host, given to a shell, in the order in which they begin."""
    more_hosts: list[HostName] = Field(default=[])
    """Hosts without a command of their own that commands may enter by `weft exec`, as `mpirun` does."""
    timeout: Annotated[int, whole(1, 10**6)] = 300
    """Seconds after which the run fails, in real time or of the virtual clock."""

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check that the fabric has no spares, as commands belong to hosts and not to ranks."""
        check_no_spares(fabric, key)

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that the fabric has the hosts."""
        with translated(BadInputError, KeyProblem, f"{key}.exec"):
            known_hosts(self.exec, topology)
        with translated(BadInputError, KeyProblem, f"{key}.more_hosts"):
            known_hosts(self.more_hosts, topology)

    def commands(self) -> list[HostCommand]:
        """Return the commands in the order in which they begin."""
        return [
            HostCommand(host, line)
            for host, lines in self.exec.items()
            for line in ([lines] if isinstance(lines, str) else lines)
        ]

    def run(self, fabric: Fabric, progress: Progress) -> None:
        """Run the commands."""
        commands = self.commands()
        progress(f"exec: {counted(len(commands), 'command')}")
        fabric.run_commands(commands, more_hosts=self.more_hosts, timeout_s=self.timeout)
