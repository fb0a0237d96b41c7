"""The choice of a fabric's parts from a table of prices: a box for each switch, cables or transceivers for links."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import fsum
from typing import NamedTuple, TypeVar

from weft.cost.layout import Floor
from weft.cost.prices import (
    CircuitSwitchPrice,
    CopperPrice,
    NicPrice,
    PriceTable,
    SwitchPrice,
    TransceiverPrice,
    of_class,
)
from weft.errors import BadInputError
from weft.quantities.units import shortest_rate
from weft.topologies import FabricLink, FabricSpec, SwitchSpec
from weft.topologies.circuits import CircuitSwitch

PortCounts = tuple[tuple[int, int], ...]
"""Pairs of link rate (b/s) and number of ports that a switch needs, in order of the rate."""


def switches_by_ports(fabric: FabricSpec) -> dict[PortCounts, list[SwitchSpec]]:
    """Group switches by the ports that they need."""
    found: dict[PortCounts, list[SwitchSpec]] = defaultdict(list)
    for switch in fabric.switches:
        rates = Counter(port.link.rate_bps for port in switch.ports if not port.leads_to_controller)
        found[tuple(sorted(rates.items()))].append(switch)
    return found


def ports_of(box: SwitchPrice, ports: PortCounts) -> int:
    """Return how many of a box's ports these links use."""
    return sum(box.ports_for(count, rate) for rate, count in ports)


def box_for(ports: PortCounts, switch: SwitchSpec, table: PriceTable) -> SwitchPrice:
    """Return the cheapest switch with these ports; without links, the cheapest of all."""
    fastest = max((rate for rate, _ in ports), default=0)
    fitting = [box for box in table.switches if box.rate >= fastest and ports_of(box, ports) <= box.ports]
    if not fitting:
        needed = " and ".join(f"{count} ports of {shortest_rate(rate)}" for rate, count in ports)
        raise BadInputError(
            f"{switch.name} needs {needed}; the table of prices has no switch for that",
            valid=(f"{box.ports} x {shortest_rate(box.rate)}" for box in table.switches),
        )
    return min(fitting, key=lambda box: (box.price, box.watts, box.ports))


def nic_for(table: PriceTable, rate_bps: int) -> NicPrice:
    """Return the cheapest NIC of the lowest sufficient rate. Raises BadInputError if there is none."""
    return min(of_class(table.nics, rate_bps, "NIC"), key=lambda each: (each.price, each.watts))


class LinkKind(NamedTuple):
    """Links of a rate and a length, and how many of each one's ends are ports of switches."""

    rate_bps: int
    length_m: float
    of_switches: int


class LinkParts(NamedTuple):
    """Parts of a link: a copper cable, or a transceiver for each end, a switch's first."""

    copper: CopperPrice | None
    optics: tuple[TransceiverPrice, ...]


def links_by_kind(fabric: FabricSpec, floor: Floor) -> Iterator[tuple[FabricLink, LinkKind]]:
    """Yield each link that is not a circuit, with its kind."""
    circuits = fabric.circuits.port_of if fabric.circuits is not None else {}
    switches = {switch.name for switch in fabric.switches}
    for link in fabric.links:
        if link.a not in circuits:
            of_switches = sum(end.node in switches for end in link.ends)
            yield link, LinkKind(link.link.rate_bps, floor.length_m(link.a.node, link.b.node), of_switches)


def fibre_price(table: PriceTable, length_m: float) -> float:
    """Return the price of a fibre."""
    return table.fibre.price + length_m * table.fibre.price_per_m


def parts_for(table: PriceTable, kind: LinkKind, example: str) -> LinkParts:
    """Return the cheaper of copper and optics that reaches, copper if the prices are equal.

    Raises BadInputError, which names the example, if neither does.
    """
    rate_bps, length_m, of_switches = kind
    cables = _reaching(table.copper, rate_bps, length_m)
    copper = min(cables, key=lambda each: each.price + length_m * each.price_per_m, default=None)
    ends = [optic_for(table, rate_bps, length_m, of_switch=end < of_switches) for end in range(2)]
    optics = tuple(each for each in ends if each is not None)
    if copper is not None:
        price = copper.price + length_m * copper.price_per_m
        if len(optics) < 2 or price <= fsum(each.price for each in optics) + fibre_price(table, length_m):
            return LinkParts(copper, ())
    if len(optics) < 2:
        raise unreached(table, rate_bps, length_m, example)
    return LinkParts(None, optics)


def optic_for(table: PriceTable, rate_bps: int, reach_m: float, *, of_switch: bool) -> TransceiverPrice | None:
    """Return the cheapest transceiver of the fabric's optics that reaches; None if there is none."""
    wanted = table.optics if of_switch or table.optics != "cpo" else "pluggable"
    found = _reaching([each for each in table.transceivers if each.optics == wanted], rate_bps, reach_m)
    return min(found, key=lambda each: (each.price, each.watts), default=None)


_Reaching = TypeVar("_Reaching", CopperPrice, TransceiverPrice)


def _reaching(items: Sequence[_Reaching], rate_bps: int, length_m: float) -> list[_Reaching]:
    """Return the items with the lowest sufficient rate that reach far enough."""
    rates = [each.rate for each in items if each.rate >= rate_bps]
    return [each for each in items if each.rate == min(rates, default=0) and each.reach_m >= length_m]


def unreached(table: PriceTable, rate_bps: int, length_m: float, example: str) -> BadInputError:
    """Return the error for a link that nothing in the table reaches over, with what there is of its rate."""
    items: list[tuple[str, CopperPrice | TransceiverPrice]] = [("copper", each) for each in table.copper]
    items += [(f"{each.optics} optics", each) for each in table.transceivers]
    valid = [
        f"{what} of {shortest_rate(each.rate)} up to {each.reach_m:g} m"
        for what, each in items
        if each.rate >= rate_bps
    ]
    return BadInputError(
        f"{example}: the table of prices has no cable for {shortest_rate(rate_bps)} over {length_m:g} m with "
        f"{table.optics} optics",
        valid=f"{', '.join(valid) or 'none of this rate'}",
    )


def circuit_box_for(table: PriceTable, switch: CircuitSwitch) -> CircuitSwitchPrice:
    """Return the cheapest optical circuit switch with enough ports. Raises BadInputError if there is none."""
    boxes = [each for each in table.circuit_switches if each.ports >= len(switch.ports)]
    if not boxes:
        valid = ", ".join(f"{each.ports} ports" for each in table.circuit_switches) or "none there"
        raise BadInputError(
            f"{switch.name} is an optical circuit switch of {len(switch.ports)} ports; the table of prices has none",
            valid=valid,
        )
    return min(boxes, key=lambda each: (each.price, each.watts))


def circuit_optics(
    fabric: FabricSpec, table: PriceTable, floor: Floor, switch: CircuitSwitch
) -> Iterator[tuple[str, TransceiverPrice, float]]:
    """Yield the node, the transceiver and the length of the fibre of each port of an optical circuit switch.

    Circuit switches do not regenerate light: a transceiver must reach over its fibre plus the longest other fibre of
    the circuit switch.
    """
    lengths = [floor.length_m(switch.name, end.node) for end in switch.ports]
    for end, length_m in zip(switch.ports, lengths, strict=True):
        rate_bps = fabric.switch(end.node).port(end.port).link.rate_bps
        reach_m = length_m + max(lengths)
        optic = optic_for(table, rate_bps, reach_m, of_switch=True)
        if optic is None:
            raise unreached(table, rate_bps, reach_m, f"{end}-{switch.name}")
        yield end.node, optic, length_m
