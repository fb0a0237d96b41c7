"""Converts the nodes and edges of a file to switches, NICs and links with all figures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from weft.quantities.definitions import QUEUE_SIZE, RATE, SHORT_TIME, Quantity
from weft.quantities.units import shown
from weft.topologies.addressing import MAX_PLANES
from weft.topologies.distances import distances_from_any
from weft.topologies.errors import TopologyError
from weft.topologies.files.listed import ListedEdge, ListedGraph, ListedNode

_ROLES = ("leaf", "spine", "core")
_MOST_TIER = 15
_MOST_NUMBER = 2**31 - 1
_MOST_COORDINATES = 8
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class PlacedSwitch:
    """A switch with its name in the file."""

    name: str
    role: str
    plane: int = 0
    tier: int = 0
    letter: str | None = None
    coordinates: tuple[int, ...] | None = None
    group: int | None = None


@dataclass(frozen=True)
class PlacedLink:
    """A link between two switches, or between a host (`a`) and a switch (`b`), by their names in the file."""

    a: str
    b: str
    rate_bps: float
    delay_ps: int
    queue_capacity_bytes: int | None


@dataclass(frozen=True)
class Defaults:
    """Figures of links that the file does not give; a queue of None is derived from the link's rate."""

    host_rate_bps: int
    fabric_rate_bps: int
    delay_ps: int
    queue_capacity_bytes: int | None


@dataclass(frozen=True)
class PlacedGraph:
    """A file's graph: its switches, a link for each NIC (host by host, in file order), the other links, and notes."""

    switches: tuple[PlacedSwitch, ...]
    nics: tuple[PlacedLink, ...]
    links: tuple[PlacedLink, ...]
    notes: tuple[str, ...] = ()


def place(listed: ListedGraph, defaults: Defaults, ranks_meet: bool = False) -> PlacedGraph:
    """Return a file's graph with all figures.

    Args:
        listed: the file's graph.
        defaults: figures of links that the file does not give.
        ranks_meet: whether hosts may lack a path to each other, because they are ranks that meet inside hosts.

    Raises:
        TopologyError: an attribute is invalid, or the hosts do not match; names place, node, value and choices.

    """
    hosts = {name for name, node in listed.nodes.items() if _type(node) == "host"}
    if not hosts:
        raise TopologyError("no node is of type host", valid="at least one")
    at_hosts = [edge for edge in listed.edges if edge.a in hosts or edge.b in hosts]
    between = [edge for edge in listed.edges if not (edge.a in hosts or edge.b in hosts)]
    neighbours = _neighbours(listed, between)
    attached = [(edge, *((edge.a, edge.b) if edge.a in hosts else (edge.b, edge.a))) for edge in at_hosts]
    for edge, host, switch in attached:
        if switch in hosts:
            raise TopologyError(
                f"joins hosts {shown(host)} and {shown(switch)}", place=edge.place, valid="a switch to each"
            )
    tiers = _tiers(neighbours, [switch for _, _, switch in attached])
    switches = {name: _switch(node, tiers) for name, node in listed.nodes.items() if name not in hosts}
    for edge in between:
        a, b = switches[edge.a], switches[edge.b]
        if a.plane != b.plane:
            raise TopologyError(
                f"joins {shown(a.name)} of plane {a.plane} and {shown(b.name)} of plane {b.plane}",
                place=edge.place,
                valid="two switches of a plane",
            )
    nics: dict[str, list[PlacedLink]] = {name: [] for name in listed.nodes if name in hosts}
    for edge, host, switch in attached:
        nics[host].append(_link(edge, host, switch, defaults.host_rate_bps, defaults))
    for name in nics:
        nics[name].sort(key=lambda nic: switches[nic.b].plane)
    _require_alike(listed, nics, switches)
    if not ranks_meet:
        _require_paths(listed, nics, neighbours)
    return PlacedGraph(
        tuple(switches.values()),
        tuple(nic for of_host in nics.values() for nic in of_host),
        tuple(_link(edge, edge.a, edge.b, defaults.fabric_rate_bps, defaults) for edge in between),
        tuple(listed.notes),
    )


def _type(node: ListedNode) -> object:
    kind = node.attributes.get("type")
    if kind not in ("host", "switch"):
        raise _refused(node, "type", kind, "host, switch")
    if kind == "host" and (others := sorted(node.attributes.keys() - {"type"})):
        name = others[0]
        raise _refused(node, name, node.attributes[name], "only type; hosts have no other attribute")
    return kind


def _switch(node: ListedNode, tiers: Mapping[str, int]) -> PlacedSwitch:
    tier = _optional(node, "tier", lambda value: _whole(value, _MOST_TIER), f"0 to {_MOST_TIER}")
    if tier is None:
        tier = tiers.get(node.name)
    if tier is None:
        raise TopologyError(
            f"switch {shown(node.name)} has no path to a host", place=node.place, valid="a link, or a tier"
        )
    role = _optional(node, "role", lambda value: _word(value, 12), "a word of up to 12 small letters")
    return PlacedSwitch(
        node.name,
        role or (_ROLES[tier] if tier < len(_ROLES) else "switch"),
        _optional(node, "plane", lambda value: _whole(value, MAX_PLANES - 1), f"0 to {MAX_PLANES - 1}") or 0,
        tier,
        _optional(node, "letter", lambda value: _word(value, 2), "a small letter or two"),
        _optional(node, "coordinates", _coordinates, "whole numbers, such as 0,1"),
        _optional(node, "group", lambda value: _whole(value, _MOST_NUMBER), f"0 to {_MOST_NUMBER}"),
    )


def _link(edge: ListedEdge, a: str, b: str, rate_bps: int, defaults: Defaults) -> PlacedLink:
    def given(name: str, quantity: Quantity) -> int | None:
        value = edge.attributes.get(name)
        try:
            return None if value is None else int(quantity.read(value, units_required=True))
        except ValueError as error:
            raise TopologyError(f"edge {shown(edge.a)} to {shown(edge.b)}: {name}: {error}", place=edge.place) from None

    own_rate_bps, delay_ps = given("rate", RATE), given("delay", SHORT_TIME)
    capacity_bytes = given("queue_capacity", QUEUE_SIZE)
    return PlacedLink(
        a,
        b,
        rate_bps if own_rate_bps is None else own_rate_bps,
        defaults.delay_ps if delay_ps is None else delay_ps,
        defaults.queue_capacity_bytes if capacity_bytes is None else capacity_bytes,
    )


def _neighbours(listed: ListedGraph, between: Iterable[ListedEdge]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in listed.nodes}
    for edge in between:
        found[edge.a].append(edge.b)
        found[edge.b].append(edge.a)
    return found


def _tiers(neighbours: Mapping[str, list[str]], edge_switches: Iterable[str]) -> dict[str, int]:
    """Return each switch's distance in links from the nearest switch with hosts."""
    distances = distances_from_any(edge_switches, neighbours.__getitem__)
    return {name: min(hops, _MOST_TIER) for name, hops in distances.items()}


def _require_alike(
    listed: ListedGraph, nics: Mapping[str, list[PlacedLink]], switches: Mapping[str, PlacedSwitch]
) -> None:
    planes = {name: [switches[nic.b].plane for nic in of_host] for name, of_host in nics.items()}
    usual, _ = Counter(map(tuple, planes.values())).most_common(1)[0]
    numbers = {switch.plane for switch in switches.values()}
    if usual and set(usual) != set(range(1 + max(numbers))):
        raise TopologyError(
            f"hosts have NICs in planes {sorted(set(usual))}, switches are in {sorted(numbers)}",
            valid="both in 0, 1, … without a gap",
        )
    for name, found in planes.items():
        where = f"{listed.nodes[name].place}: host {shown(name)}"
        if not found:
            raise TopologyError(f"{where} has no link", valid="at least one, to a switch")
        if tuple(found) != usual:
            raise TopologyError(
                f"{where} has NICs in planes {found}, most others in {list(usual)}",
                valid="the same at all hosts",
            )


def _require_paths(
    listed: ListedGraph, nics: Mapping[str, list[PlacedLink]], neighbours: Mapping[str, list[str]]
) -> None:
    (first, first_nics), *others = nics.items()
    for number, nic in enumerate(first_nics):
        reached = _tiers(neighbours, [nic.b])
        for name, of_host in others:
            if of_host[number].b not in reached:
                raise TopologyError(
                    f"hosts {shown(first)} and {shown(name)} have no path between their "
                    f"NICs {number}: no links lead from {shown(nic.b)} to {shown(of_host[number].b)}",
                    place=listed.nodes[name].place,
                    valid="links between all hosts' switches of a plane",
                )


def _optional(node: ListedNode, name: str, read: Callable[[object], _Value | None], valid: str) -> _Value | None:
    value = node.attributes.get(name)
    if value is None:
        return None
    found = read(value)
    if found is None:
        raise _refused(node, name, value, valid)
    return found


def _refused(node: ListedNode, name: str, value: object, valid: str) -> TopologyError:
    return TopologyError(f"node {shown(node.name)}: {name}: {shown(value)} is not valid", place=node.place, valid=valid)


def _whole(value: object, highest: int) -> int | None:
    """Return a whole number, which GraphML gives as text; None if it is invalid or out of range."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,10}", value):
        value = int(value)
    return value if type(value) is int and 0 <= value <= highest else None


def _word(value: object, most: int) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(rf"[a-z]{{1,{most}}}", value) else None


def _coordinates(value: object) -> tuple[int, ...] | None:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not 1 <= len(parts) <= _MOST_COORDINATES:
        return None
    numbers = [_whole(each.strip() if isinstance(each, str) else each, _MOST_NUMBER) for each in parts]
    found = tuple(number for number in numbers if number is not None)
    return found if len(found) == len(numbers) else None
