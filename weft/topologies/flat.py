"""Fabrics without tiers, in which every switch has hosts; shared by tori, HyperX and dragonflies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from weft.topologies import addressing
from weft.topologies.builder import FabricBuilder, require_links
from weft.topologies.errors import require_range
from weft.topologies.fabric import FabricSpec, LinkSpec
from weft.topologies.limits import delay, optional_queue_capacity, rate
from weft.topologies.port_memory import link_of

Coordinates = tuple[int, ...]


@dataclass(frozen=True)
class FlatParameters:
    """Validated parameters that all flat fabrics share.

    Attributes:
        planes: independent planes; a host has one NIC in each.
        hosts_per_switch: hosts on each switch.
        host_rate_bps: rate of the links between hosts and switches.
        fabric_rate_bps: rate of the links between switches.
        delay_ps: propagation delay of every link.
        queue_capacity_bytes: queue of every transmitting port; None derives it from the port's rate.

    """

    planes: int
    hosts_per_switch: int
    host_rate_bps: int
    fabric_rate_bps: int
    delay_ps: int
    queue_capacity_bytes: int | None

    @classmethod
    def checked(
        cls,
        planes: int,
        hosts_per_switch: int,
        host_rate_bps: float,
        fabric_rate_bps: float | None,
        delay_ps: int,
        queue_capacity_bytes: int | None,
    ) -> FlatParameters:
        """Return checked parameters; the fabric rate defaults to the hosts' rate. Raises TopologyError."""
        fabric_rate = host_rate_bps if fabric_rate_bps is None else fabric_rate_bps
        return cls(
            planes=require_range("planes", planes, 1, addressing.MAX_PLANES),
            hosts_per_switch=require_range("hosts_per_switch", hosts_per_switch, 1, addressing.MAX_PORTS),
            host_rate_bps=rate("host_rate_bps", host_rate_bps),
            fabric_rate_bps=rate("fabric_rate_bps", fabric_rate),
            delay_ps=delay(delay_ps),
            queue_capacity_bytes=optional_queue_capacity(queue_capacity_bytes),
        )

    @property
    def host_link(self) -> LinkSpec:
        """A link between a host and its switch."""
        return link_of(self.host_rate_bps, self.delay_ps, self.queue_capacity_bytes)

    @property
    def fabric_link(self) -> LinkSpec:
        """A link between two switches."""
        return link_of(self.fabric_rate_bps, self.delay_ps, self.queue_capacity_bytes)


@dataclass(frozen=True)
class FlatLink:
    """A link between two switches, given by their coordinates."""

    a: Coordinates
    b: Coordinates
    link: LinkSpec


def build_flat(
    role: str,
    parameters: FlatParameters,
    places: Sequence[Coordinates],
    links: Callable[[], Iterable[FlatLink]],
    described: Mapping[str, object],
    *,
    grouped: bool = False,
) -> FabricSpec:
    """Return a fabric with a switch and its hosts at each place of each plane, joined by the given links.

    Args:
        role: the switches' role.
        parameters: figures of every plane.
        places: coordinates of the switches, in order of their numbers.
        links: returns the links of a plane.
        described: stored as `FabricSpec.parameters`.
        grouped: whether the first coordinate is a switch's group.

    Raises:
        TopologyError: a switch has too few ports, or the address space is too small.

    """
    require_links(parameters.planes * len(places) * parameters.hosts_per_switch, "the fabric's hosts")
    builder = FabricBuilder()
    switches = [
        {
            place: builder.add_switch(plane, role, coordinates=place, group=place[0] if grouped else None)
            for place in places
        }
        for plane in range(parameters.planes)
    ]
    for place in places:
        for _ in range(parameters.hosts_per_switch):
            builder.add_host([of_plane[place] for of_plane in switches], parameters.host_link)
    for of_plane in switches:
        for each in links():
            builder.add_link(of_plane[each.a], of_plane[each.b], each.link)
    return builder.build(described)
