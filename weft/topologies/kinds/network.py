"""A network from p4lang/tutorials' topology.json or p4-utils' p4app.json: names, ports and addresses as given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from weft.errors import translated
from weft.quantities.definitions import whole
from weft.topologies.errors import TopologyError
from weft.topologies.fabric import FabricSpec
from weft.topologies.graph_lists import item_of
from weft.topologies.kinds.base import TopologyKeyError, TopologyKind, TopologySection
from weft.topologies.places import circle_without_tiers

# All kinds are imported where one of them is sought, and few fabrics are networks.
if TYPE_CHECKING:
    from weft.topologies.networks import Network, NetworkHost, NetworkLink, NetworkSwitch

NAME: Final = "network"
_OF_FILE = (
    *("hosts_per_leaf", "host_rate", "delay", "queue_capacity"),
    *("ranks_per_host", "rail_optimised", "scale_up", "host_file", "storage_network"),
)


class NetworkSection(TopologySection):
    """A network fully described by a file: hosts with one NIC, switches, links with their figures, one plane."""

    refused: ClassVar[Mapping[str, str]] = dict.fromkeys(_OF_FILE, "the file says it")

    kind: Literal["network"] = NAME
    """A network from a file."""
    path: Path
    """The file, p4lang/tutorials' topology.json or p4-utils' p4app.json; relative to the scenario's file."""
    planes: Annotated[int, whole(1, 1)] = 1
    """Always one."""

    @cached_property
    def read(self) -> Network:
        """The file's content. Raises TopologyError."""
        from weft.topologies.networks import read_network

        return read_network(self.path)

    @property
    def leaf_count(self) -> int:
        """Switches with hosts."""
        hosts = {host.name for host in self.read.hosts}
        return len({link.b for link in self.read.links if link.a in hosts})

    @property
    def host_count(self) -> int:
        """Hosts of the file."""
        return len(self.read.hosts)

    @property
    def host_names(self) -> list[str]:
        """Names of the hosts in the file."""
        return [host.name for host in self.read.hosts]

    def check(self) -> None:
        """Check that the file holds a valid network, and the shared keys."""
        with translated(TopologyError, TopologyKeyError, "path"):
            _ = self.read
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric."""
        return network(self.read.hosts, self.read.switches, self.read.links)


def network(
    hosts: Sequence[NetworkHost | Mapping[str, object]],
    switches: Sequence[NetworkSwitch | Mapping[str, object]],
    links: Sequence[NetworkLink | Mapping[str, object]],
) -> FabricSpec:
    """Describe a network node by node; see `weft.topologies.networks`.

    Args:
        hosts: hosts with one NIC each.
        switches: in order of their device ids.
        links: from a host (`a`, port 0) to a switch (`b`), or between two switches.

    Raises:
        TopologyError: a figure is out of range, or a name is unknown; the message lists valid ones.

    """
    from weft.topologies.networks import NetworkHost, NetworkLink, NetworkSwitch
    from weft.topologies.networks.fabric import fabric_of

    of_hosts = [item_of(NetworkHost, each, f"hosts[{at}]") for at, each in enumerate(hosts)]
    of_switches = [item_of(NetworkSwitch, each, f"switches[{at}]") for at, each in enumerate(switches)]
    of_links = [item_of(NetworkLink, each, f"links[{at}]") for at, each in enumerate(links)]
    return fabric_of(
        of_hosts,
        of_switches,
        of_links,
        {
            "kind": NAME,
            "hosts": [_plain_host(each) for each in of_hosts],
            "switches": [asdict(each) for each in of_switches],
            "links": [asdict(each) for each in of_links],
        },
    )


def _plain_host(host: NetworkHost) -> dict[str, Any]:
    return {
        **asdict(host),
        "neighbours": [list(each) for each in host.neighbours],
        "commands": list(host.commands),
    }


KIND = TopologyKind(NAME, NetworkSection, network, places=circle_without_tiers)
