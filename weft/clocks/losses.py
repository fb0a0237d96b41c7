"""Losses of a fabric's parts during runs."""

from __future__ import annotations

from weft.controller.operations import Operations
from weft.topologies import FabricSpec
from weft.traffic.plane_detours import Losses


def losses_of(fabric: FabricSpec, operations: Operations) -> Losses:
    """Return which NICs and hosts runs can no longer use; of hosts only where spares can take their ranks.

    Raises the error of what ran in the background, which nobody has awaited.

    A function, not a lab's method: hosts that held their lab would keep it from being freed as it is left.
    """
    if operations.failure is not None:
        raise operations.failure
    lost, in_use = set(operations.lost_planes), operations.planes_in_use
    if fabric.storage_plane is not None and not fabric.storage_failover:
        lost.discard(fabric.storage_plane)  # no other plane stands for it: storage traffic waits
    nics = fabric.hosts[0].nics
    without_links = frozenset(fabric.host(name).index for name in operations.lost_hosts)
    return Losses(
        frozenset(nic.number for nic in nics if nic.plane in lost and nic.plane not in in_use),
        frozenset(nic.number for nic in nics if nic.plane in in_use),
        without_links if fabric.spares else frozenset(),
        without_links,
    )
