"""Floor plan of a fabric: the rack of each node, and the cable lengths between nodes.

Hosts fill racks in order, racks fill rows. A switch is placed in the rack at the median, by row and by place in the
row, of the nodes nearer to the hosts that it is cabled to: a leaf of one rack's hosts is in that rack, spines are in
the middle of their leaves, cores in the middle of the hall. The median minimises the sum of distances along rows and
aisles, so cables are short. Racks are assumed to have room for everything placed in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median_low

from weft.cost.prices import FloorLayout
from weft.errors import BadInputError
from weft.topologies import FabricSpec

Rack = tuple[int, int]
"""Row, and place within the row."""


@dataclass(frozen=True)
class Floor:
    """Racks of all nodes, including circuit switches."""

    layout: FloorLayout
    racks: Mapping[str, Rack]
    host_racks: int
    """Number of racks with hosts."""

    def length_m(self, a: str, b: str) -> float:
        """Return the length of a cable between two nodes."""
        layout, (row, place), (other_row, other_place) = self.layout, self.racks[a], self.racks[b]
        if (row, place) == (other_row, other_place):
            return layout.in_rack_m
        along = abs(row - other_row) * layout.row_pitch_m + abs(place - other_place) * layout.rack_pitch_m
        return 2 * layout.drop_m + along + layout.slack_m


def floor_of(fabric: FabricSpec, layout: FloorLayout, per_endpoint: int = 1) -> Floor:
    """Return the racks of a fabric's nodes, each endpoint with so many accelerators.

    Raises BadInputError if a host does not fit into a rack.
    """
    racks, count = _racks_of_hosts(fabric, layout, per_endpoint)
    _place_switches(fabric, racks)
    if fabric.circuits is not None:
        for switch in fabric.circuits.switches:
            racks[switch.name] = _median(racks[end.node] for end in switch.ports)
    return Floor(layout, racks, count)


def _racks_of_hosts(fabric: FabricSpec, layout: FloorLayout, per_endpoint: int) -> tuple[dict[str, Rack], int]:
    if fabric.scale_up is None:
        hosts: list[tuple[int, ...]] = [(index,) for index in range(len(fabric.hosts))]
    else:
        hosts = list(fabric.scale_up.hosts(len(fabric.hosts)))
    per_host = len(hosts[0]) * per_endpoint
    per_rack = layout.accelerators_per_rack // per_host
    if per_rack == 0:
        raise BadInputError(
            f"{layout.accelerators_per_rack} is not enough for a host of {per_host}",
            place="layout.accelerators_per_rack",
            valid=f"at least {per_host}",
        )
    racks = {
        fabric.hosts[index].name: divmod(number // per_rack, layout.racks_per_row)
        for number, host in enumerate(hosts)
        for index in host
    }
    return racks, -(-len(hosts) // per_rack)


def _place_switches(fabric: FabricSpec, racks: dict[str, Rack]) -> None:
    """Place the switches, tier by tier; switches without links go to the first rack."""
    neighbours: dict[str, list[str]] = defaultdict(list)
    for configured in fabric.configurations:
        for link in configured.links:
            neighbours[link.a.node].append(link.b.node)
            neighbours[link.b.node].append(link.a.node)
    for switch in fabric.switches:
        if switch.host_ports:
            racks[switch.name] = _median(racks[port.peer.node] for port in switch.host_ports)
    waiting = sorted((each for each in fabric.switches if each.name not in racks), key=lambda each: each.tier)
    while waiting:
        ready = [each for each in waiting if any(peer in racks for peer in neighbours[each.name])]
        # One tier at a time, because a switch's place depends on the nodes nearer to the hosts.
        ready = [each for each in ready if each.tier == ready[0].tier]
        found = {each.name: _median(racks[peer] for peer in neighbours[each.name] if peer in racks) for each in ready}
        racks.update(found or {each.name: (0, 0) for each in waiting})
        waiting = [each for each in waiting if each.name not in racks]


def _median(racks: Iterable[Rack]) -> Rack:
    listed = list(racks)
    return median_low(row for row, _ in listed), median_low(place for _, place in listed)
