"""The bill of a fabric: switches with enough ports, NICs, and cables with enough reach."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import fsum

from weft.cost.layout import Floor, floor_of
from weft.cost.parts import (
    LinkKind,
    box_for,
    circuit_box_for,
    circuit_optics,
    fibre_price,
    links_by_kind,
    nic_for,
    parts_for,
    ports_of,
    switches_by_ports,
)
from weft.cost.prices import PriceTable, TransceiverPrice
from weft.quantities.units import shortest_rate
from weft.topologies import FabricSpec


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
    for ports, switches in switches_by_ports(fabric).items():
        box = box_for(ports, switches[0], table)
        bought += len(switches) * box.ports
        in_use += len(switches) * ports_of(box, ports)
        lines.add("switch", box.name, len(switches), box.price, box.watts)
    nics = Counter(nic.link.rate_bps for host in fabric.hosts for nic in host.nics)
    for rate_bps, count in sorted(nics.items()):
        nic = nic_for(table, rate_bps)
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


def _add_cables(fabric: FabricSpec, table: PriceTable, floor: Floor, lines: _Lines) -> list[float]:
    """Add the links that are not circuits and return their lengths, each once."""
    counts: Counter[LinkKind] = Counter()
    example: dict[LinkKind, str] = {}
    for link, kind in links_by_kind(fabric, floor):
        counts[kind] += 1
        example.setdefault(kind, str(link))
    for kind, count in sorted(counts.items()):
        _add_links(table, kind, count, lines, example[kind])
    return [kind.length_m for kind in counts]


def _add_links(table: PriceTable, kind: LinkKind, count: int, lines: _Lines, example: str) -> None:
    """Add links of a kind."""
    copper, optics = parts_for(table, kind, example)
    if copper is not None:
        name = f"copper {shortest_rate(copper.rate)} up to {copper.reach_m:g} m"
        price = copper.price + kind.length_m * copper.price_per_m
        lines.add("copper", name, count, price, copper.watts, kind.length_m)
        return
    for optic in optics:
        _add_transceivers(optic, count, lines)
    lines.add("fibre", "fibre", count, fibre_price(table, kind.length_m), 0.0, kind.length_m)


def _add_transceivers(optic: TransceiverPrice, count: int, lines: _Lines) -> None:
    kind = "transceiver" if optic.optics == "pluggable" else optic.optics.upper()
    name = f"{kind} {shortest_rate(optic.rate)} up to {optic.reach_m:g} m"
    lines.add("transceiver", name, count, optic.price, optic.watts)


def _add_circuits(fabric: FabricSpec, table: PriceTable, floor: Floor, lines: _Lines) -> list[float]:
    """Add the circuit switches with a fibre and a far-end transceiver for each port; return the fibres' lengths."""
    if fabric.circuits is None:
        return []
    found: list[float] = []
    for switch in fabric.circuits.switches:
        box = circuit_box_for(table, switch)
        lines.add("circuit switch", f"circuit switch {box.ports} ports", 1, box.price, box.watts)
        for _, optic, length_m in circuit_optics(fabric, table, floor, switch):
            _add_transceivers(optic, 1, lines)
            lines.add("fibre", "fibre", 1, fibre_price(table, length_m), 0.0, length_m)
            found.append(length_m)
    return found
