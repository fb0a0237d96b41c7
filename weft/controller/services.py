"""Groups of hosts that use services of switches: a group's tree, and the memberships of its hosts.

`weft.controller.features.services` derives the switches' entries from a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from weft.controller.errors import JobError
from weft.controller.failures import Failures
from weft.controller.queue_keys import QueueKeys, random_queue_key
from weft.controller.trees import AggregationTree, plan_tree
from weft.topologies import FabricSpec
from weft.topologies.addressing import IpVersion, service_group_address
from weft.topologies.fabric import DEFAULT_TREE_CHILDREN

MAX_CELLS = 1024
"""Barriers and counters on a switch (SERVICE_CELLS in p4/include/services/synchronisation.p4)."""
MAX_CLIENT_ENTRIES = 16384
"""Requests of all clients that a root can remember
(SERVICE_CLIENT_ENTRIES in p4/include/services/synchronisation.p4)."""
MAX_WINDOW = 256
"""Outstanding requests allowed for a client."""
MAX_EPOCH = 0xFFFF
GROUP_ID = 1
"""A fabric serves one group at a time."""


@dataclass(frozen=True)
class ServiceGroup:
    """A group of hosts, in order of their client numbers, and the tree that serves it.

    Attributes:
        group_id: id in packets.
        hosts: names of the members.
        tree: its root has the counters and releases barriers.
        epoch: epoch of the group's present use; cells with another epoch count as empty.
        q_key: Queue Key of all its packets, its secret.
        cell_count: barriers and counters, from cell 0 of each switch.
        window: outstanding requests allowed for a client, a power of two.
        ip_version: IP version of its packets.

    """

    group_id: int
    hosts: tuple[str, ...]
    tree: AggregationTree
    epoch: int
    q_key: int
    cell_count: int
    window: int
    ip_version: IpVersion

    def client_ports(self, fabric: FabricSpec) -> dict[str, dict[int, int]]:
        """Return, for each switch of the tree, the port towards each client below it."""
        found: dict[str, dict[int, int]] = {node.switch: {} for node in self.tree.nodes}
        number = {name: client for client, name in enumerate(self.hosts)}
        for node in reversed(self.tree.nodes):
            for child in node.children:
                if fabric.switch(node.switch).port(child.port).peer_is_host:
                    found[node.switch][number[child.name]] = child.port
                else:
                    found[node.switch] |= dict.fromkeys(self._below(child.name, number), child.port)
        return found

    def _below(self, switch: str, number: dict[str, int]) -> Iterator[int]:
        node = self.tree.node(switch)
        assert node is not None  # a child that is a switch is in the tree
        for child in node.children:
            if child.name in number:
                yield number[child.name]
            else:
                yield from self._below(child.name, number)


@dataclass(frozen=True)
class ServiceMembership:
    """Data that a host needs to use its group's services; `rank` counts among the children of its leaf."""

    nic: int
    group_id: int
    epoch: int
    q_key: int
    rank: int
    client: int
    service_address: IPv4Address | IPv6Address
    service_mac: str
    group_address: IPv4Address | IPv6Address


@dataclass(frozen=True)
class ServiceUse:
    """Requirements of a group: barriers and counters, outstanding requests of each client, and an IP version."""

    hosts: tuple[str, ...]
    plane: int
    cell_count: int
    window: int
    ip_version: IpVersion


class ServiceTable:
    """Plans groups; each use of a group gets a new epoch. `queue_keys` draws their secrets."""

    def __init__(self, queue_keys: QueueKeys = random_queue_key) -> None:
        self._queue_keys = queue_keys
        self._epoch = 0

    def plan(self, fabric: FabricSpec, use: ServiceUse, failures: Failures) -> ServiceGroup:
        """Plan the tree of a group.

        Raises:
            JobError: no tree reaches all hosts, the switches have too few cells, or the root has too few entries.

        """
        if not 1 <= use.cell_count <= MAX_CELLS:
            raise JobError(f"a group wants {use.cell_count} cells", valid=f"1 to {MAX_CELLS}")
        if len(use.hosts) * use.window > MAX_CLIENT_ENTRIES:
            raise JobError(
                f"{len(use.hosts)} clients of a group with {use.window} requests under way each",
                valid=f"up to {MAX_CLIENT_ENTRIES} of all",
            )
        tree = plan_tree(fabric, use.plane, use.hosts, failures)
        for node in tree.nodes:
            # Bits of a group's cells as the P4 action service_child has them.
            if len(node.children) > DEFAULT_TREE_CHILDREN:
                raise JobError(
                    f"{node.switch} would have {len(node.children)} children in a group's tree",
                    valid=f"at most {DEFAULT_TREE_CHILDREN}",
                )
        epoch, q_key = self.next_use()
        return ServiceGroup(GROUP_ID, use.hosts, tree, epoch, q_key, use.cell_count, use.window, use.ip_version)

    def next_use(self) -> tuple[int, int]:
        """Return the epoch and the key for the next use of a service."""
        # Never 0, the registers' initial value.
        self._epoch = self._epoch % MAX_EPOCH + 1
        return self._epoch, self._queue_keys(GROUP_ID, self._epoch)


def service_memberships(fabric: FabricSpec, group: ServiceGroup) -> list[ServiceMembership]:
    """Return the memberships of a group's hosts, in order of the clients."""
    nic = fabric.first_nics[group.tree.plane]
    found = []
    for client, host in enumerate(group.hosts):
        leaf = fabric.switch_of(host, nic)
        node = group.tree.node(leaf.name)
        assert node is not None  # every member's leaf is in the tree
        found.append(
            ServiceMembership(
                nic=nic,
                group_id=group.group_id,
                epoch=group.epoch,
                q_key=group.q_key,
                rank=next(child.rank for child in node.children if child.name == host),
                client=client,
                service_address=leaf.address_of(group.ip_version),
                service_mac=leaf.mac,
                group_address=service_group_address(group.group_id, group.ip_version),
            )
        )
    return found
