"""Gives the ranks of hosts that are out of use to spares; a host that returns becomes a spare itself."""

from __future__ import annotations

from weft.controller.operations import Operations
from weft.topologies import FabricSpec
from weft.traffic.control import EndpointGroup


def members(fabric: FabricSpec, hosts: EndpointGroup) -> list[str]:
    """Return the names of the hosts that have ranks, in order of the ranks."""
    return [fabric.hosts[hosts.host_of(rank)].name for rank in range(fabric.rank_count)]


def replace_hosts(fabric: FabricSpec, operations: Operations, hosts: EndpointGroup) -> bool:
    """Give the ranks of hosts that are out of use to spares, as far as these suffice; return whether any moved."""
    if not fabric.spares:
        return False
    out = set(operations.hosts_out)
    spares = {place: fabric.hosts[hosts.host_of(place)].name for place in range(fabric.rank_count, len(fabric.hosts))}
    ready = [place for place, name in spares.items() if name not in out]
    replaced = False
    for rank, name in enumerate(members(fabric, hosts)):
        if name in out and ready:
            place = ready.pop(0)
            operations.note_swap(name, spares[place], rank)
            hosts.exchange_ranks(rank, place)
            replaced = True
    return replaced
