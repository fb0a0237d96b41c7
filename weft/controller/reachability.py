"""Finds the hosts that become disconnected when links or switches are avoided."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import count

from weft.controller.failures import NO_FAILURES, Failures
from weft.topologies import Endpoint, FabricSpec, SwitchSpec
from weft.topologies.distances import distances_from


def hosts_cut_off(fabric: FabricSpec, before: Failures, after: Failures) -> list[str]:
    """Return the hosts that reach fewer of the others' ports in some plane with `after` than with `before`, in order.

    When hosts are divided, the smaller part counts as cut off.
    """
    parts_after = connected_parts(fabric, after)
    together: dict[int, dict[int, list[Endpoint]]] = {}
    for nic, part in connected_parts(fabric, before).items():
        together.setdefault(part, {}).setdefault(parts_after[nic], []).append(nic)
    names = {nic.node for parts in together.values() for nics in sorted(parts.values(), key=len)[:-1] for nic in nics}
    return [host.name for host in fabric.hosts if host.name in names]


def parts_hosts(fabric: FabricSpec, plane: int, failures: Failures, without: Collection[str] = ()) -> bool:
    """Return whether failures disconnect hosts of a plane that are connected otherwise, ignoring hosts in `without`."""
    switches = fabric.switches_of_plane(plane)
    whole, left = (
        {part for nic, part in connected_parts(fabric, each, switches).items() if nic.node not in without}
        for each in (NO_FAILURES, failures)
    )
    return len(left) > len(whole)


def connected_parts(
    fabric: FabricSpec, failures: Failures, switches: Sequence[SwitchSpec] | None = None
) -> dict[Endpoint, int]:
    """Return the number of the connected part for each host port; a port without a link is a part by itself.

    With `switches`, only host ports at these switches are included.
    """
    switches = fabric.switches if switches is None else switches
    numbers = count()
    part_of: dict[str, int] = {}

    def neighbours(name: str) -> Iterator[str]:
        return (port.peer.node for port in failures.live_ports(fabric.switch(name)))

    for switch in switches:
        if switch.name not in part_of and switch.name not in failures.switches:
            number = next(numbers)
            part_of |= dict.fromkeys(distances_from(switch.name, neighbours), number)
    return {
        port.peer: part_of[switch.name] if failures.is_up(switch.name, port) else next(numbers)
        for switch in switches
        for port in switch.host_ports
    }
