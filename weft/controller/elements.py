"""Elements that an operator can take out of use: links, switches, planes and hosts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from weft.controller.errors import SettingError
from weft.controller.failures import Failures
from weft.topologies import Endpoint, FabricLink, FabricSpec, SwitchSpec
from weft.topologies.distances import distances_from

ElementKind = Literal["link", "switch", "plane", "host"]
ELEMENT_KINDS = get_args(ElementKind)


@dataclass(frozen=True)
class Element:
    """A link, a switch, a plane or a host.

    Attributes:
        kind: link, switch, plane or host.
        name: for users: `p0l0<->p0s1`, `p0s1`, `plane 1`, `h3`.
        link, switch, plane, host: set according to `kind`.
        ports: switch ports with counters that show whether the element carries packets.

    """

    kind: ElementKind
    name: str
    ports: tuple[Endpoint, ...]
    link: FabricLink | None = None
    switch: str | None = None
    plane: int | None = None
    host: str | None = None

    def added_to(self, avoided: Failures) -> Failures:
        """Return `avoided` with this element added. Hosts avoid planes and collectives avoid hosts; routes do not."""
        if self.link is not None:
            return avoided.with_link(self.link)
        return avoided if self.switch is None else avoided.with_switch(self.switch)

    @property
    def ends(self) -> tuple[str, ...]:
        """The nodes that must stop routing over the element before it is removed."""
        if self.link is not None:
            return self.link.a.node, self.link.b.node
        return () if self.switch is None else (self.switch,)


def link_element(fabric: FabricSpec, link: FabricLink) -> Element:
    """Return the element of a link."""
    switches = {switch.name for switch in fabric.switches}
    ports = tuple(end for end in (link.a, link.b) if end.node in switches)
    return Element("link", fabric.link_name(link), ports, link=link)


def switch_element(fabric: FabricSpec, name: str) -> Element:
    """Return the element of a switch. TopologyError: the name is unknown; the message lists the valid ones."""
    switch = fabric.switch(name)
    ports = [Endpoint(name, port.number) for port in switch.ports]
    ports += [port.peer for port in switch.fabric_ports]
    return Element("switch", name, tuple(ports), switch=name)


def plane_element(fabric: FabricSpec, number: int) -> Element:
    """Return the element of a plane. SettingError: the number is unknown; the message lists the valid ones."""
    if not 0 <= number < fabric.planes:
        raise SettingError(f"no plane {number}", valid=f"0 to {fabric.planes - 1}")
    ports = (Endpoint(switch.name, port.number) for switch in fabric.switches_of_plane(number) for port in switch.ports)
    return Element("plane", f"plane {number}", tuple(ports), plane=number)


def host_element(fabric: FabricSpec, name: str) -> Element:
    """Return the element of a host. TopologyError: the name is unknown; the message lists the valid ones."""
    ports = tuple(Endpoint(nic.switch, nic.switch_port) for nic in fabric.host(name).nics)
    return Element("host", name, ports, host=name)


def named_element(fabric: FabricSpec, kind: str, name: str) -> Element:
    """Return the element with this kind and name.

    Raises:
        SettingError, TopologyError: there is none; the message lists the valid ones.

    """
    if kind == "switch":
        return switch_element(fabric, name)
    if kind == "host":
        return host_element(fabric, name)
    if kind == "plane":
        if not name.isascii() or not name.isdigit():
            raise SettingError(f"{name!r} is not a plane's number", valid=f"0 to {fabric.planes - 1}")
        return plane_element(fabric, int(name[:9]))
    ends = name.split("<->" if "<->" in name else "-")
    if len(ends) != 2:
        raise SettingError(f"{name!r} names no link", valid="NODE-NODE, such as p0l0-p0s1")
    return link_element(fabric, fabric.link_between(*(end.strip() for end in ends)))


def waves(fabric: FabricSpec, element: Element, failures: Failures) -> list[set[str]]:
    """Return the switches in waves in which to stop using an element, farthest first.

    If a switch stopped before its upstream switches, it could send their packets back to them (ordered FIB updates,
    RFC 6976). Reverse the order to use the element again.
    """
    switches: Mapping[str, SwitchSpec] = {switch.name: switch for switch in fabric.switches}
    distance: dict[str, int] = {}
    for end in element.ends:
        if end in switches:
            for name, hops in distances_from(end, _neighbours(switches, failures)).items():
                distance[name] = min(hops, distance.get(name, hops))
    return [
        {name for name, hops in distance.items() if hops == each}
        for each in sorted(set(distance.values()), reverse=True)
    ]


def transit_ends(fabric: FabricSpec, element: Element) -> Collection[str]:
    """Return the ends of an element without hosts; no packet originates there, so they change last."""
    switches = {switch.name: switch for switch in fabric.switches}
    return [end for end in element.ends if end in switches and not switches[end].host_ports]


def _neighbours(switches: Mapping[str, SwitchSpec], failures: Failures) -> Callable[[str], Iterator[str]]:
    def of(name: str) -> Iterator[str]:
        return (port.peer.node for port in failures.live_ports(switches[name]))

    return of
