"""Any graph: lists of switches, hosts on them and links between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, ClassVar, Final, Literal, Unpack

from pydantic import Field

from weft.errors import translated
from weft.quantities.definitions import QueueSize, Rate, ShortTime, whole
from weft.quantities.section import Section
from weft.quantities.text import Text
from weft.topologies import addressing
from weft.topologies.addressing import MAX_PORTS
from weft.topologies.builder import FabricBuilder, NewSwitch, require_links
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec, LinkSpec
from weft.topologies.graph_lists import Hosts, Links, Switches, item_of, names_of, pairs_of, places_of
from weft.topologies.kinds.base import FabricRateSection, TopologyKeyError, TopologyKind
from weft.topologies.limits import LinkArguments, PlaneLinks, delay, queue_capacity, rate
from weft.topologies.link_choice import LINK_PATTERN
from weft.topologies.places import circle_without_tiers
from weft.topologies.port_memory import link_of

NAME: Final = "graph"
_MOST_SWITCHES = 1 << 16
_MOST_HOSTS = 1 << 20

Role = Annotated[str, Text("a word in small letters", r"\A[a-z]{1,12}\Z", "leaf")]
Letter = Annotated[str, Text("a small letter or two", r"\A[a-z]{1,2}\Z", "l")]
Attachment = Annotated[
    str,
    Text(
        "a switch, or several with + between (* stands for any name)",
        r"\A[^\s+<>-]{1,64}(\+[^\s+<>-]{1,64}){0,15}\Z",
        "l0+l1",
    ),
]
Ends = Annotated[str, Text("two switches with <-> between (* stands for any name)", LINK_PATTERN, "l*<->s*")]


class SwitchesSection(Section):
    """Switches of one role."""

    role: Role
    """Any word: leaf, spine, router."""
    count: Annotated[int, whole(1, _MOST_SWITCHES)] = 1
    """Switches of the role in each plane."""
    tier: Annotated[int, whole(0, 15, example="1")] | None = None
    """Distance from the hosts; by default 1 for spines, 2 for cores, else 0. Aggregation trees go up the tiers."""
    letter: Letter | None = None
    """Letter in their names, l0, l1, …; by default the known letter of the role, else the role's first letter."""


class HostsSection(Section):
    """Hosts attached in the same way."""

    on: Attachment
    """Their switches: `l0`; `l0+l1`, a NIC at each; `l*`, `count` hosts at each match."""
    count: Annotated[int, whole(1, MAX_PORTS)] = 1
    """Hosts at each place."""
    rate: Rate | None = None
    """Rate of their links; by default `host_rate`."""


class LinksSection(Section):
    """Links between switches."""

    ends: Ends
    """Two switches: `l0<->s0`, or all pairs of two patterns: `l*<->s*`."""
    count: Annotated[int, whole(1, MAX_PORTS)] = 1
    """Parallel links for each pair."""
    rate: Rate | None = None
    """Rate of the links; by default `fabric_rate`."""
    delay: ShortTime | None = None
    """Propagation delay, one way; by default the fabric's `delay`."""
    queue_capacity: QueueSize | None = None
    """Memory of each port; by default the fabric's `queue_capacity`."""


class GraphSection(FabricRateSection):
    """Any graph. Names omit the plane: switch l0 is p0l0 in plane 0."""

    refused: ClassVar[Mapping[str, str]] = {
        "hosts_per_leaf": "hosts say how many",
        "rail_optimised": "hosts say where ranks are",
    }

    kind: Literal["graph"] = NAME
    """Any graph; a section with `switches` is of this kind."""
    switches: Annotated[list[SwitchesSection], Field(min_length=1)] = Field(
        default=[SwitchesSection(role="leaf", count=2), SwitchesSection(role="spine")]
    )
    """Switches of every plane."""
    hosts: Annotated[list[HostsSection], Field(min_length=1)] = Field(default=[HostsSection(on="l*")])
    """Hosts, all with the same number of NICs."""
    links: list[LinksSection] = Field(default=[LinksSection(ends="l*<->s*")])
    """Links between the switches of a plane."""

    @property
    def leaf_count(self) -> int:
        """Switches of a plane with hosts."""
        return len({switch for attached in self._attached() for switch in attached})

    @property
    def nics_per_host(self) -> int:
        """NICs of every host: one for each of its switches in each plane."""
        return self.planes * (1 + self.hosts[0].on.count("+"))

    @property
    def host_count(self) -> int:
        """Endpoints of the whole fabric: hosts, or ranks if hosts have several."""
        return len(self._attached()) * (self.ranks_per_host or 1)

    def _names(self) -> list[str]:
        return names_of([Switches(each.role, each.count, letter=each.letter) for each in self.switches])

    def _joined(self) -> list[list[tuple[str, str]]]:
        names = self._names()
        return [pairs_of(each.ends, names) for each in self.links]

    def _attached(self) -> list[tuple[str, ...]]:
        names = self._names()
        return [places for each in self.hosts for places in places_of(each.on, names) for _ in range(each.count)]

    def check(self) -> None:
        """Check that the lists match each other, and the shared keys."""
        for name, read in (("switches", self._names), ("hosts", self._attached), ("links", self._joined)):
            with translated(TopologyError, TopologyKeyError, name):
                read()
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        ranks = self.ranks_per_host or 1
        return graph(
            switches=[Switches(each.role, each.count, each.tier, each.letter) for each in self.switches],
            hosts=[Hosts(each.on, each.count * ranks, each.rate) for each in self.hosts],
            links=[Links(each.ends, each.count, each.rate, each.delay, each.queue_capacity) for each in self.links],
            **self.network_arguments(self.fabric_rate),
        )


def graph(
    planes: int = 1,
    switches: Sequence[Switches | Mapping[str, object]] = (Switches("leaf", 2), Switches("spine")),
    hosts: Sequence[Hosts | Mapping[str, object]] = (Hosts("l*"),),
    links: Sequence[Links | Mapping[str, object]] = (Links("l*<->s*"),),
    **defaults: Unpack[LinkArguments],
) -> FabricSpec:
    """Describe `planes` equal graphs that share their hosts.

    Args:
        planes: independent planes; a host has the same NICs in each.
        switches: switches of a plane; names are a letter and a number, l0, l1, … (p0l0 in plane 0).
        hosts: hosts and their switches, all with the same number of NICs.
        links: links and the switches that they join.
        defaults: rates, delay and queues of links that do not give them (`weft.topologies.limits.LinkArguments`).

    Raises:
        TopologyError: a figure is out of range, or a name is unknown; the message lists valid ones.

    """
    planes = require_range("planes", planes, 1, addressing.MAX_PLANES)
    checked = PlaneLinks.checked(**defaults)
    listed = [item_of(Switches, each, f"switches[{at}]") for at, each in enumerate(switches)]
    attached = [item_of(Hosts, each, f"hosts[{at}]") for at, each in enumerate(hosts)]
    joined = [item_of(Links, each, f"links[{at}]") for at, each in enumerate(links)]
    for name, counts, most in (
        ("switches", [each.count for each in listed], _MOST_SWITCHES),
        ("hosts", [each.count for each in attached], _MOST_HOSTS),
        ("links", [each.count for each in joined], MAX_PORTS),
    ):
        for at, count in enumerate(counts):
            require_range(f"{name}[{at}].count", count, 1, most)
    names = names_of(listed)
    hosts_at = [(places_of(each.on, names), each) for each in attached]
    pairs = [(pairs_of(each.ends, names), each) for each in joined]
    at_hosts = sum(len(places) * len(places[0]) * host.count for places, host in hosts_at)
    between = sum(len(ends) * each.count for ends, each in pairs)
    require_links(planes * (at_hosts + between), "the graph")
    builder = FabricBuilder()
    of_planes = [_switches(builder, plane, listed) for plane in range(planes)]
    for places, host in hosts_at:
        link = checked.link(checked.host_rate_bps if host.rate_bps is None else rate("rate_bps", host.rate_bps))
        for place in places:
            for _ in range(host.count):
                builder.add_host([of_plane[name] for of_plane in of_planes for name in place], link)
    for of_plane in of_planes:
        for ends, each in pairs:
            link = _link(each, checked)
            for a, b in ends:
                for _ in range(each.count):
                    builder.add_link(of_plane[a], of_plane[b], link)
    return builder.build(
        {
            "kind": NAME,
            "planes": planes,
            "switches": [asdict(each) for each in listed],
            "hosts": [asdict(each) for each in attached],
            "links": [asdict(each) for each in joined],
            **asdict(checked),
        }
    )


def _switches(builder: FabricBuilder, plane: int, switches: Sequence[Switches]) -> dict[str, NewSwitch]:
    added = [
        builder.add_switch(plane, each.role, tier=each.tier, letter=each.letter)
        for each in switches
        for _ in range(each.count)
    ]
    return dict(zip(names_of(switches), added, strict=True))


def _link(links: Links, defaults: PlaneLinks) -> LinkSpec:
    """Return a link with the figures that it gives, and the fabric's figures for the rest."""
    return link_of(
        defaults.fabric_rate_bps if links.rate_bps is None else rate("rate_bps", links.rate_bps),
        defaults.delay_ps if links.delay_ps is None else delay(links.delay_ps),
        defaults.queue_capacity_bytes
        if links.queue_capacity_bytes is None
        else queue_capacity(links.queue_capacity_bytes),
    )


KIND = TopologyKind(NAME, GraphSection, graph, implied_by=("switches",), places=circle_without_tiers)
