"""Styles of a fabric's links that show their plane or rail and their rate, and the legend that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.quantities.readable import format_rate
from weft.topologies import draw_shapes as shapes
from weft.topologies.fabric import Endpoint, FabricLink, FabricSpec

_WIDTH, _WIDER, _WIDEST = 1.5, 1.0, 4.5
"""Width in pixels of the slowest links, how much wider each higher rate is, and the bound."""
_NEUTRAL = "#888888"
"""Colour of samples that stand for links of all planes."""


@dataclass(frozen=True)
class OwnStyles:
    """How links are drawn if nothing else is to be seen: coloured by plane, or by rail, and wider if faster."""

    fabric: FabricSpec
    rails: Mapping[str, int]
    widths: Mapping[int, float]

    @classmethod
    def of(cls, fabric: FabricSpec) -> OwnStyles:
        """Return the styles of a fabric."""
        rates = sorted({link.link.rate_bps for link in fabric.links})
        widths = {rate: min(_WIDEST, _WIDTH + _WIDER * place) for place, rate in enumerate(rates)}
        return cls(fabric, rails_of(fabric), widths)

    def __call__(self, link: FabricLink) -> shapes.LinkStyle:
        """Return a link's style; circuits have a colour and name their circuit switch."""
        width = self.widths[link.link.rate_bps]
        circuit = self._circuit_of(link)
        if circuit is not None:
            return shapes.LinkStyle(shapes.CIRCUIT_COLOUR, width + 0.5, f"circuit of {circuit.node}")
        rail = self.rails.get(link.b.node, self.rails.get(link.a.node))
        number = self.fabric.switch(link.b.node).plane if rail is None else rail
        return shapes.LinkStyle(shapes.plane_colour(number), width)

    def legend(self) -> list[shapes.LegendEntry]:
        """Return the legend: planes or rails, then the links between two kinds of nodes by rate, the fastest first."""
        if self.rails:
            numbers, what = sorted(set(self.rails.values())), "rail"
        else:
            numbers, what = list(range(self.fabric.planes)), "plane"
        entries = []
        if len(numbers) > 1:
            colours = len(shapes.PLANE_COLOURS)
            for first in numbers[:colours]:
                same = numbers[first::colours] if len(numbers) > colours else [first]
                text = f"{what} " + ", ".join(map(str, same[:3])) + (", …" if len(same) > 3 else "")
                if same == [self.fabric.storage_plane] and not self.rails:
                    text = self.fabric.plane_name(first)
                entries.append(shapes.LegendEntry(shapes.plane_colour(first), _WIDTH, text))
        colour = _NEUTRAL if entries else shapes.plane_colour(0)
        for (ends, rate, is_circuit), count in self._rates():
            cables = f"{count:,} {'circuit' if is_circuit else 'cable'}{'s' if count > 1 else ''}"
            drawn = shapes.CIRCUIT_COLOUR if is_circuit else colour
            entries.append(shapes.LegendEntry(drawn, self.widths[rate], f"{ends}: {format_rate(rate)}, {cables}"))
        return entries

    def _rates(self) -> Sequence[tuple[tuple[str, int, bool], int]]:
        hosts = {host.name for host in self.fabric.hosts}

        def role(name: str) -> str:
            return "host" if name in hosts else self.fabric.switch(name).role

        counts = Counter(
            (f"{role(link.a.node)}–{role(link.b.node)}", link.link.rate_bps, self._circuit_of(link) is not None)
            for link in self.fabric.links
        )
        return sorted(counts.items(), key=lambda each: (-each[0][1], each[0][0]))

    def _circuit_of(self, link: FabricLink) -> Endpoint | None:
        return self.fabric.switch(link.b.node).port(link.b.port).circuit


def rails_of(fabric: FabricSpec) -> dict[str, int]:
    """Return the rail of each leaf: the number that all its ranks have in their hosts; empty if there are no rails."""
    if fabric.scale_up is None:
        return {}
    number = {rank: place for ranks in fabric.scale_up.hosts(len(fabric.hosts)) for place, rank in enumerate(ranks)}
    found: dict[str, set[int]] = {}
    for rank, host in enumerate(fabric.hosts):
        for nic in host.nics:
            found.setdefault(nic.switch, set()).add(number[rank])
    if any(len(numbers) > 1 for numbers in found.values()):
        return {}
    rails = {leaf: min(numbers) for leaf, numbers in found.items()}
    return rails if len(set(rails.values())) > 1 else {}
