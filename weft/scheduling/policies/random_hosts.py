"""Random: jobs start in the order of their arrival, on hosts that are drawn."""

from __future__ import annotations

from weft.scheduling.placement import Placement, Room
from weft.scheduling.policy import Policy, Wish, hosts_in


def _drawn_hosts(room: Room, wish: Wish) -> Placement | None:
    top = room.cluster.top
    domains = room.fits(top)
    if not len(domains):
        return None
    return room.placement(wish.random.permutation(hosts_in(room, top, int(wish.random.choice(domains)))))


KIND = Policy("random", "in order of arrival, on hosts that are drawn", "fifo", _drawn_hosts)
