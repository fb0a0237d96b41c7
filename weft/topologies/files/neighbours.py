"""Joins what devices say of their neighbours into a graph: each link is seen from one end or from both.

Switches need a file. A neighbour without one is a host, or, if it is a switch, such as one of the management network,
it is left out. Links have keys of their own, so that parallel ones stay apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from weft.quantities.units import shown
from weft.topologies.errors import TopologyError
from weft.topologies.files.listed import ListedEdge, ListedGraph, ListedNode

_MOST_NAME = 255
_MOST_NAMED = 8
_Port = tuple[str, str]
"""A device and one of its ports."""


@dataclass(frozen=True)
class Neighbour:
    """A port's report of its other end.

    Attributes:
        name: the neighbour.
        ports: names that the neighbour's port may have, the likeliest first; may be empty.
        is_switch: whether the neighbour says that it is a switch; None if it does not say.
    """

    name: str
    ports: tuple[str, ...]
    is_switch: bool | None = None


@dataclass
class Device:
    """A device with a file.

    Attributes:
        name: its name, as neighbours know it.
        place: its file.
        neighbours: by port, in the order of the file.
        aliases: other names of its ports.
        rates: rates of its ports, as texts, where they are known.
        is_switch: whether it says that it is a switch; None if only its neighbours do.
    """

    name: str
    place: str
    neighbours: dict[str, Neighbour] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    rates: dict[str, str] = field(default_factory=dict)
    is_switch: bool | None = None


def joined(devices: Iterable[Device], notes: Iterable[str] = ()) -> ListedGraph:
    """Return the graph of devices. Raises TopologyError where two of them contradict each other."""
    return _Join(devices, notes).graph()


class _Join:
    def __init__(self, devices: Iterable[Device], notes: Iterable[str]) -> None:
        self._devices: dict[str, Device] = {}
        for device in devices:
            _require_name(device.name, device.place)
            if device.name in self._devices:
                other = self._devices[device.name].place
                raise TopologyError(
                    f"is of {shown(device.name)}, as {other}", place=device.place, valid="one file a device"
                )
            self._devices[device.name] = device
        self._short = _unique({name: name.partition(".")[0] for name in self._devices})
        self._switches = self._known_switches()
        self._back: dict[str, dict[str, tuple[dict[str, list[str]], list[str]]]] = {}
        self._listed = ListedGraph()
        self._listed.notes.extend(notes)

    def graph(self) -> ListedGraph:
        links, one_sided, left_out = self._links()
        used = {device for ends in links for device, _ in ends}
        hosts = sorted((name for name in used if name not in self._switches), key=natural)
        for name in hosts:
            self._listed.add_node(ListedNode(name, self._place(name), {"type": "host"}))
        idle = sorted(self._switches - used, key=natural)
        for name in sorted(self._switches & used, key=natural):
            self._listed.add_node(ListedNode(name, self._place(name), {"type": "switch"}))
        for number, ((a, b), place) in enumerate(
            sorted(links.items(), key=lambda each: [natural("/".join(end)) for end in each[0]])
        ):
            attributes: dict[str, object] = {"rate": rate} if (rate := self._rate(a, b, place)) else {}
            self._listed.add_edge(ListedEdge(a[0], b[0], number, place, attributes))
        for what, names in (
            ("switches without a file, left out with their links", left_out),
            ("switches without a neighbour, left out", idle),
            ("links that one end reports and the other does not", one_sided),
        ):
            if names:
                self._listed.notes.append(f"{what}: {_listing(names)}")
        return self._listed

    def _known_switches(self) -> set[str]:
        said: dict[str, set[bool]] = {}
        for device in self._devices.values():
            for neighbour in device.neighbours.values():
                if neighbour.is_switch is not None and self._resolved(neighbour.name) != device.name:
                    said.setdefault(self._resolved(neighbour.name), set()).add(neighbour.is_switch)
        switches = set()
        for name, device in self._devices.items():
            found = {device.is_switch} if device.is_switch is not None else said.get(name, {True})
            if len(found) > 1:
                raise TopologyError(
                    f"neighbours of {shown(name)} differ on whether it is a switch",
                    place=device.place,
                    valid="the same",
                )
            if True in found:
                switches.add(name)
        if not switches:
            raise TopologyError("no file is of a switch", place="the whole", valid="a file for each switch")
        return switches

    def _resolved(self, name: str) -> str:
        """Return the name of the device with a file that a neighbour's name means, or the name itself."""
        return name if name in self._devices else self._short.get(name.partition(".")[0], name)

    def _links(self) -> tuple[dict[tuple[_Port, _Port], str], list[str], list[str]]:
        """Return the links with the place of their first report, those that one end reports, and switches left out."""
        seen: dict[_Port, tuple[_Port, str]] = {}
        left_out: set[str] = set()
        for device in self._devices.values():
            for port, neighbour in device.neighbours.items():
                place = f"{device.place}: {port}"
                _require_name(port, place)
                _require_name(neighbour.name, place)
                peer = self._resolved(neighbour.name)
                if peer == device.name:
                    raise TopologyError(f"{shown(peer)} is its own neighbour", place=place, valid="another device")
                if peer not in self._devices and neighbour.is_switch:
                    left_out.add(peer)
                    continue
                if peer not in self._switches and device.name not in self._switches:
                    raise TopologyError(
                        f"joins hosts {shown(device.name)} and {shown(peer)}", place=place, valid="a switch"
                    )
                seen[device.name, port] = (peer, self._peer_port(peer, neighbour, device.name, port)), place
        links: dict[tuple[_Port, _Port], str] = {}
        one_sided = []
        for here, (there, place) in seen.items():
            back = seen.get(there)
            if back is not None and back[0] != here:
                raise TopologyError(
                    f"{'/'.join(here)} leads to {'/'.join(there)}, which leads to {'/'.join(back[0])} ({back[1]})",
                    place=place,
                    valid="the same link from both ends",
                )
            ends = (
                (here, there)
                if here[0] not in self._switches or natural(here[0]) < natural(there[0])
                else (there, here)
            )
            if there[0] not in self._switches:
                ends = (there, here)
            if back is None and there[0] in self._devices:
                one_sided.append(f"{'/'.join(here)} to {there[0]}")
            links.setdefault(ends, place)
        ports: dict[_Port, tuple[_Port, _Port]] = {}
        for ends in links:
            for end in ends:
                if end in ports:
                    raise TopologyError(
                        f"{'/'.join(end)} has two links", place=links[ends], valid=f"one, as at {links[ports[end]]}"
                    )
                ports[end] = ends
        return links, one_sided, sorted(left_out, key=natural)

    def _peer_port(self, peer: str, neighbour: Neighbour, name: str, port: str) -> str:
        device = self._devices.get(peer)
        if device is not None:
            for each in neighbour.ports:
                known = device.aliases.get(each, each)
                if known in device.neighbours or known in device.rates:
                    return known
            named, nameless = self._ports_back(device).get(name, ({}, []))
            found = named.get(port) or nameless
            if len(found) == 1:
                return found[0]
        # Of a port without a name, the other end is one of its own.
        return neighbour.ports[0] if neighbour.ports else f"to {name}/{port}"

    def _ports_back(self, device: Device) -> dict[str, tuple[dict[str, list[str]], list[str]]]:
        """Return a device's ports to each other device: by the names they give the port there, and those without."""
        back = self._back.get(device.name)
        if back is None:
            back = self._back[device.name] = {}
            for own, each in device.neighbours.items():
                peer = self._resolved(each.name)
                if peer in self._devices:
                    named, nameless = back.setdefault(peer, ({}, []))
                    aliases = self._devices[peer].aliases
                    for port in {aliases.get(known, known) for known in each.ports}:
                        named.setdefault(port, []).append(own)
                    if not each.ports:
                        nameless.append(own)
        return back

    def _rate(self, a: _Port, b: _Port, place: str) -> str | None:
        rates = {name: rate for name, port in (a, b) if (rate := self._rate_of(name, port))}
        if len(set(rates.values())) > 1:
            raise TopologyError(
                f"{'/'.join(a)} has {rates[a[0]]}, {'/'.join(b)} {rates[b[0]]}",
                place=place,
                valid="the same rate at both ends",
            )
        return next(iter(rates.values()), None)

    def _rate_of(self, name: str, port: str) -> str | None:
        return self._devices[name].rates.get(port) if name in self._devices else None

    def _place(self, name: str) -> str:
        return self._devices[name].place if name in self._devices else "the whole"


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts numbers in names by their value: leaf2 before leaf10. Each name has its own."""
    parts = re.split(r"([0-9]{1,9})", name)
    # leaf1 and leaf01 differ only in the last part. It sorts before any other, so that leaf stays before leaf1.
    return [*((0, int(part), "") if at % 2 else (1, 0, part) for at, part in enumerate(parts)), (-1, 0, name)]


def _require_name(name: str, place: str) -> None:
    if not name or len(name) > _MOST_NAME or not name.isprintable():
        raise TopologyError(
            f"{shown(name)} is not a name", place=place, valid=f"1 to {_MOST_NAME} printable characters"
        )


def _unique(short: Mapping[str, str]) -> dict[str, str]:
    """Return the names by their first label, where only one has it."""
    found: dict[str, list[str]] = {}
    for name, label in short.items():
        found.setdefault(label, []).append(name)
    return {label: names[0] for label, names in found.items() if len(names) == 1}


def _listing(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
