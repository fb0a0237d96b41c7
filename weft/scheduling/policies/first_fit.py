"""First fit: jobs start in the order of their arrival, on the first hosts that are free."""

from __future__ import annotations

from weft.scheduling.placement import Placement, Room
from weft.scheduling.policy import Policy, Wish, hosts_in


def first_hosts(room: Room, _wish: Wish) -> Placement | None:
    """Return the first hosts that have room."""
    top = room.cluster.top
    domains = room.fits(top)
    return room.placement(hosts_in(room, top, int(domains[0]))) if len(domains) else None


KIND = Policy("first-fit", "in order of arrival, on the first hosts that are free", "fifo", first_hosts)
