"""The bill of a fabric: switches with enough ports, NICs, and cables with enough reach."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple, TypeVar

from weft.cost.layout import Floor, floor_of
from weft.cost.prices import CopperPrice, PriceTable, SwitchPrice, TransceiverPrice, of_class
from weft.errors import BadInputError
from weft.quantities.units import shortest_rate
from weft.topologies import FabricSpec, SwitchSpec


@dataclass(frozen=True)
class Item:
    """A line of a bill: `count` pieces with their total price, watts and, for cables, metres."""

    kind: str
    name: str
    count: int
    price: float
    watts: float
    metres: float = 0.0


@dataclass(frozen=True)
class Bill:
    """The parts of a fabric, the length of its longest cable, and the number of racks with hosts.

    `ports` counts the ports of all switches bought; links use `ports_in_use` of them.
    """

    items: tuple[Item, ...]
    longest_m: float
    host_racks: int
    ports: int
    ports_in_use: int

    @property
    def price(self) -> float:
        """Price of all items."""
        return fsum(item.price for item in self.items)

    @property
    def watts(self) -> float:
        """Power of all items in watts."""
        return fsum(item.watts for item in self.items)

    def count_of(self, kind: str) -> int:
        """Return the number of pieces of a kind."""
        return sum(item.count for item in self.items if item.kind == kind)


def bill_of(fabric: FabricSpec, table: PriceTable, per_endpoint: int = 1) -> Bill:
    """Return the bill of a fabric from a table of prices, each endpoint with so many accelerators.

    If the table lacks a link's rate, the next higher one is used. Scale-up links are part of their hosts.

    Raises:
        BadInputError: the table has no switch with enough ports, or no cable that reaches.
    """
    floor = floor_of(fabric, table.layout, per_endpoint)
    lines = _Lines()
    bought, in_use = 0, 0
    for ports, switches in _by_ports(fabric).items():
        box = _box(ports, switches[0], table)
        bought += len(switches) * box.ports
        in_use += len(switches) * _ports_of(box, ports)
        lines.add("switch", box.name, len(switches), box.price, box.watts)
    nics = Counter(nic.link.rate_bps for host in fabric.hosts for nic in host.nics)
    for rate_bps, count in sorted(nics.items()):
        nic = min(of_class(table.nics, rate_bps, "NIC"), key=lambda each: (each.price, each.watts))
        lines.add("nic", f"NIC {shortest_rate(nic.rate)}", count, nic.price, nic.watts)
    lengths = [*_add_cables(fabric, table, floor, lines), *_add_circuits(fabric, table, floor, lines)]
    return Bill(lines.items(), max(lengths, default=0.0), floor.host_racks, bought, in_use)


@dataclass
class _Lines:
    """Collects items; pieces with the same kind and name share a line."""

    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _figures: dict[tuple[str, str], list[tuple[float, float, float]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, kind: str, name: str, count: int, price: float, watts: float, metres: float = 0.0) -> None:
        """Add pieces; price, watts and metres are per piece."""
        self._counts[kind, name] += count
        self._figures[kind, name].append((count * price, count * watts, count * metres))

    def items(self) -> tuple[Item, ...]:
        return tuple(
            Item(kind, name, count, *(fsum(column) for column in zip(*self._figures[kind, name], strict=True)))
            for (kind, name), count in self._counts.items()
        )


_PortCounts = tuple[tuple[int, int], ...]
"""Pairs of link rate (b/s) and number of ports that a switch needs, in order of the rate."""


def _by_ports(fabric: FabricSpec) -> dict[_PortCounts, list[SwitchSpec]]:
    """Group switches by the ports that they need."""
    found: dict[_PortCounts, list[SwitchSpec]] = defaultdict(list)
    for switch in fabric.switches:
        rates = Counter(port.link.rate_bps for port in switch.ports if not port.leads_to_controller)
        found[tuple(sorted(rates.items()))].append(switch)
    return found


def _ports_of(box: SwitchPrice, ports: _PortCounts) -> int:
    """Return how many of a box's ports these links use."""
    return sum(box.ports_for(count, rate) for rate, count in ports)


def _box(ports: _PortCounts, switch: SwitchSpec, table: PriceTable) -> SwitchPrice:
    """Return the cheapest switch with these ports; without links, the cheapest of all."""
    fastest = max((rate for rate, _ in ports), default=0)
    fitting = [box for box in table.switches if box.rate >= fastest and _ports_of(box, ports) <= box.ports]
    if not fitting:
        needed = " and ".join(f"{count} ports of {shortest_rate(rate)}" for rate, count in ports)
        raise BadInputError(
            f"{switch.name} needs {needed}; the table of prices has no switch for that",
            valid=(f"{box.ports} x {shortest_rate(box.rate)}" for box in table.switches),
        )
    return min(fitting, key=lambda box: (box.price, box.watts, box.ports))


def _add_cables(fabric: FabricSpec, table: PriceTable, floor: Floor, lines: _Lines) -> list[float]:
    """Add the links that are not circuits and return their lengths, each once."""
    circuits = fabric.circuits.port_of if fabric.circuits is not None else {}
    switches = {switch.name for switch in fabric.switches}
    counts: Counter[_LinkKind] = Counter()
    example: dict[_LinkKind, str] = {}
    for link in fabric.links:
        if link.a not in circuits:
            of_switches = sum(end.node in switches for end in link.ends)
            kind = _LinkKind(link.link.rate_bps, floor.length_m(link.a.node, link.b.node), of_switches)
            counts[kind] += 1
            example.setdefault(kind, str(link))
    for kind, count in sorted(counts.items()):
        _add_links(table, kind, count, lines, example[kind])
    return [kind.length_m for kind in counts]


class _LinkKind(NamedTuple):
    """Links of a rate and a length, and how many of each one's ends are ports of switches."""

    rate_bps: int
    length_m: float
    of_switches: int


def _add_links(table: PriceTable, kind: _LinkKind, count: int, lines: _Lines, example: str) -> None:
    """Add links of a length: the cheaper of copper and optics that reaches, copper if the prices are equal."""
    rate_bps, length_m, of_switches = kind
    cables = _reaching(table.copper, rate_bps, length_m)
    copper = min(cables, key=lambda each: each.price + length_m * each.price_per_m, default=None)
    ends = [_optic(table, rate_bps, length_m, of_switch=end < of_switches) for end in range(2)]
    optics = [each for each in ends if each is not None]
    fibre = table.fibre.price + length_m * table.fibre.price_per_m
    if copper is not None:
        price = copper.price + length_m * copper.price_per_m
        if len(optics) < 2 or price <= fsum(each.price for each in optics) + fibre:
            name = f"copper {shortest_rate(copper.rate)} up to {copper.reach_m:g} m"
            lines.add("copper", name, count, price, copper.watts, length_m)
            return
    if len(optics) < 2:
        raise _unreached(table, rate_bps, length_m, example)
    for optic in optics:
        _add_transceivers(optic, count, lines)
    lines.add("fibre", "fibre", count, fibre, 0.0, length_m)


def _optic(table: PriceTable, rate_bps: int, reach_m: float, *, of_switch: bool) -> TransceiverPrice | None:
    """Return the cheapest transceiver of the fabric's optics that reaches; None if there is none."""
    wanted = table.optics if of_switch or table.optics != "cpo" else "pluggable"
    found = _reaching([each for each in table.transceivers if each.optics == wanted], rate_bps, reach_m)
    return min(found, key=lambda each: (each.price, each.watts), default=None)


_Reaching = TypeVar("_Reaching", CopperPrice, TransceiverPrice)


def _reaching(items: Sequence[_Reaching], rate_bps: int, length_m: float) -> list[_Reaching]:
    """Return the items with the lowest sufficient rate that reach far enough."""
    rates = [each.rate for each in items if each.rate >= rate_bps]
    return [each for each in items if each.rate == min(rates, default=0) and each.reach_m >= length_m]


def _unreached(table: PriceTable, rate_bps: int, length_m: float, example: str) -> BadInputError:
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


def _add_transceivers(optic: TransceiverPrice, count: int, lines: _Lines) -> None:
    kind = "transceiver" if optic.optics == "pluggable" else optic.optics.upper()
    name = f"{kind} {shortest_rate(optic.rate)} up to {optic.reach_m:g} m"
    lines.add("transceiver", name, count, optic.price, optic.watts)


def _add_circuits(fabric: FabricSpec, table: PriceTable, floor: Floor, lines: _Lines) -> list[float]:
    """Add the circuit switches with a fibre and a far-end transceiver for each port; return the fibres' lengths.

    Circuit switches do not regenerate light: a transceiver must reach over its fibre plus the longest other fibre of
    the circuit switch.
    """
    if fabric.circuits is None:
        return []
    found: list[float] = []
    for switch in fabric.circuits.switches:
        boxes = [each for each in table.circuit_switches if each.ports >= len(switch.ports)]
        if not boxes:
            valid = ", ".join(f"{each.ports} ports" for each in table.circuit_switches) or "none there"
            raise BadInputError(
                f"{switch.name} is an optical circuit switch of {len(switch.ports)} ports; the table of prices has "
                "none",
                valid=valid,
            )
        box = min(boxes, key=lambda each: (each.price, each.watts))
        lines.add("circuit switch", f"circuit switch {box.ports} ports", 1, box.price, box.watts)
        lengths = [floor.length_m(switch.name, end.node) for end in switch.ports]
        for end, length_m in zip(switch.ports, lengths, strict=True):
            rate_bps = fabric.switch(end.node).port(end.port).link.rate_bps
            reach_m = length_m + max(lengths)
            optic = _optic(table, rate_bps, reach_m, of_switch=True)
            if optic is None:
                raise _unreached(table, rate_bps, reach_m, f"{end}-{switch.name}")
            _add_transceivers(optic, 1, lines)
            fibre = table.fibre.price + length_m * table.fibre.price_per_m
            lines.add("fibre", "fibre", 1, fibre, 0.0, length_m)
        found += lengths
    return found
