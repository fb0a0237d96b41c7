"""Power of each rack that does not depend on traffic: switches, NICs, cables, transceivers, and servers' own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from weft.cost.layout import Floor, Rack
from weft.cost.parts import (
    LinkKind,
    LinkParts,
    box_for,
    circuit_box_for,
    circuit_optics,
    links_by_kind,
    nic_for,
    parts_for,
    switches_by_ports,
)
from weft.cost.prices import PriceTable
from weft.topologies import FabricSpec


def network_watts(fabric: FabricSpec, table: PriceTable, floor: Floor) -> Mapping[Rack, float]:
    """Return the power of the network's parts in each rack; together it is the bill's.

    A NIC is in its host's rack, a transceiver in its port's; each end of a copper cable takes half of the cable's.

    Raises:
        BadInputError: as `weft.cost.bill_of`.
    """
    found: dict[Rack, float] = defaultdict(float)
    for ports, switches in switches_by_ports(fabric).items():
        watts = box_for(ports, switches[0], table).watts
        for switch in switches:
            found[floor.racks[switch.name]] += watts
    for host in fabric.hosts:
        for nic in host.nics:
            found[floor.racks[host.name]] += nic_for(table, nic.link.rate_bps).watts
    _add_links(fabric, table, floor, found)
    if fabric.circuits is not None:
        for circuit in fabric.circuits.switches:
            found[floor.racks[circuit.name]] += circuit_box_for(table, circuit).watts
            for node, optic, _ in circuit_optics(fabric, table, floor, circuit):
                found[floor.racks[node]] += optic.watts
    return found


def _add_links(fabric: FabricSpec, table: PriceTable, floor: Floor, found: dict[Rack, float]) -> None:
    chosen: dict[LinkKind, LinkParts] = {}
    switches = {switch.name for switch in fabric.switches}
    for link, kind in links_by_kind(fabric, floor):
        parts = chosen.get(kind) or chosen.setdefault(kind, parts_for(table, kind, str(link)))
        ends = sorted(link.ends, key=lambda end: end.node not in switches)
        for end, place in enumerate(ends):
            watts = parts.copper.watts / 2 if parts.copper is not None else parts.optics[end].watts
            found[floor.racks[place.node]] += watts
