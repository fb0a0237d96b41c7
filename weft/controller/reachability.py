"""Which hosts lose each other when links or switches are avoided."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from weft.controller.failures import Failures
from weft.topologies import Endpoint, FabricSpec
from weft.topologies.distances import distances_from


def hosts_cut_off(fabric: FabricSpec, before: Failures, after: Failures) -> list[str]:
    """Return the hosts that reach fewer ports of others in some plane with `after` than with `before`, in order.

    Of hosts that are parted, those in the smaller part count as cut off.
    """
    parts_after = _parts(fabric, after)
    together: dict[int, dict[int, list[Endpoint]]] = {}
    for nic, part in _parts(fabric, before).items():
        together.setdefault(part, {}).setdefault(parts_after[nic], []).append(nic)
    names = {
        nic.node
        for parts in together.values()
        for nics in sorted(parts.values(), key=len)[:-1]
        for nic in nics
    }
    return [host.name for host in fabric.hosts if host.name in names]


def _parts(fabric: FabricSpec, failures: Failures) -> dict[Endpoint, int]:
    """Return the number of the connected part that each host's port is in; a port without a link is its own."""
    numbers = count()
    part_of: dict[str, int] = {}

    def neighbours(name: str) -> Iterator[str]:
        return (port.peer.node for port in failures.live_ports(fabric.switch(name)))

    for switch in fabric.switches:
        if switch.name not in part_of and switch.name not in failures.switches:
            number = next(numbers)
            part_of |= dict.fromkeys(distances_from(switch.name, neighbours), number)
    return {
        port.peer: part_of[switch.name] if failures.is_up(switch.name, port) else next(numbers)
        for switch in fabric.switches
        for port in switch.host_ports
    }
