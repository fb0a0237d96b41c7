"""InfraGraph (github.com/Keysight/infragraph), the infrastructure schema of its version 2, as YAML or JSON.

Devices have components, instances are copies of devices, and edges join components of instances. An instance with xpus,
or with NICs and without ports, is a host; one with ports is a switch. Names carry slices, as `leaf[0:2]` and `port[4]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

from weft.errors import BadInputError
from weft.quantities.units import shown
from weft.topologies.builder import MOST_LINKS
from weft.topologies.errors import TopologyError
from weft.topologies.files.format import FileFormat
from weft.topologies.files.json_text import parsed_json
from weft.topologies.files.listed import ListedEdge, ListedGraph, ListedNode

_KEYS = ("name", "description", "devices", "instances", "links", "edges")
_SCHEMES = ("one2one", "many2many")
_RATES = {"gigabits_per_second": 1, "gigabytes_per_second": 8}
"""In Gb/s."""
_LATENCIES = ("ms", "us", "ns")
_MOST_COUNT = 1 << 20
_MOST_YAML_NODES = 200_000
_MOST_NESTED = 8
_MOST_ELEMENTS = _MOST_NESTED + 2
"""Names in a component's path: devices may start with their own name."""
_MOST_ENDPOINTS = 8 * MOST_LINKS
"""Of all edges. A link has two, but those of a path count at each of its levels."""
_ELEMENT = re.compile(r"([^\[\]]+)(?:\[([0-9]{0,7}(?::[0-9]{0,7}){0,2})\])?", re.ASCII)
_XPU, _NIC, _PORT = "xpu", "nic", "port"
_TELLING_KINDS = (_XPU, _NIC, _PORT)
"""Kinds of components that tell hosts and switches apart."""
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class _Component:
    kind: str
    count: int


@dataclass(frozen=True)
class _Instance:
    device: str
    count: int
    place: str


def read_infragraph(content: bytes) -> ListedGraph:
    """Return the graph of an infrastructure. Raises TopologyError with the path within the file."""
    return _Reader(_mapping(_tree(content), "the whole")).read()


def _tree(content: bytes) -> object:
    if content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return parsed_json(content)
    # Few topologies are YAML.
    from weft.quantities.yaml_files import read_yaml

    try:
        return read_yaml(content.decode("utf-8-sig"), "YAML", _MOST_YAML_NODES)
    except UnicodeDecodeError as error:
        raise TopologyError(f"is not UTF-8 text: {error}", place="the whole") from None
    except BadInputError as error:
        raise TopologyError(error.problem, place=error.place, valid=error.valid) from None


def _mapping(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TopologyError(f"must be a mapping, is {shown(value)}", place=place)
    return value


class _Reader:
    def __init__(self, tree: dict[str, Any]) -> None:
        self._tree = _mapping(tree["infrastructure"], "infrastructure") if "infrastructure" in tree else tree
        if "connections" in self._tree:
            valid = "edges, as of InfraGraph 0.5 and later"
            raise TopologyError("connections of an older schema are not read", place="connections", valid=valid)
        for key in self._tree:
            if key not in _KEYS:
                raise TopologyError(f"unknown key {shown(key)}", place="the whole", valid=_KEYS)
        self._devices: dict[str, dict[str, _Component]] = {}
        self._instances: dict[str, _Instance] = {}
        self._links: dict[str, dict[str, object]] = {}
        self._listed = ListedGraph()
        self._joined = 0
        self._endpoint_count = 0
        self._nested: dict[str, tuple[frozenset[str], int]] = {}
        """Kinds of the components of each device, and the levels of devices among them."""
        self._ports: dict[str, str] = {}
        """Where each port was used."""

    def read(self) -> ListedGraph:
        inner = 0
        for place, device in _named(self._tree, "devices"):
            components = {}
            for within, component in _named(device, "components", place):
                count = _count(component, within)
                kind = _text(component, "choice", within)
                components[component["name"]] = _Component(kind, count)
            self._devices[device["name"]] = components
            inner += len(_list(device, "edges", place))
        for place, instance in _named(self._tree, "instances"):
            name = _text(instance, "device", place)
            self._known(self._devices, name, f"{place}.device", "device")
            self._instances[instance["name"]] = _Instance(name, _count(instance, place), place)
        for place, link in _named(self._tree, "links"):
            self._links[link["name"]] = _attributes(link, place)
        edges = [self._edge(f"edges[{at}]", edge) for at, edge in enumerate(_list(self._tree, "edges"))]
        ends = [pair for each in edges for pair in each]
        self._add_nodes({end for a, b, _, _ in ends for end in (a, b)})
        parallel: dict[frozenset[str], int] = {}
        for a, b, place, attributes in ends:
            pair = frozenset((a, b))
            parallel[pair] = parallel.get(pair, -1) + 1
            self._listed.add_edge(ListedEdge(a, b, parallel[pair], place, attributes))
        if inner:
            self._listed.notes.append(
                f"edges inside devices, left out: {inner}; ranks_per_host and scale_up describe the inside of hosts"
            )
        return self._listed

    def _add_nodes(self, used: set[str]) -> None:
        unused = 0
        numbers: dict[str, list[int]] = {}
        for node in used:
            instance_name, _, number = node.rpartition(".")
            numbers.setdefault(instance_name, []).append(int(number))
        for name, instance in self._instances.items():
            kinds, _ = self._kinds(instance.device, 0)
            is_host = _XPU in kinds or (_NIC in kinds and _PORT not in kinds)
            if not is_host and _PORT not in kinds:
                raise TopologyError(
                    f"instance {shown(name)} of device {shown(instance.device)} is neither host nor switch",
                    place=instance.place,
                    valid="a device with components of choice xpu, nic or port",
                )
            joined = sorted(numbers.get(name, ()))
            unused += instance.count - len(joined)
            kind = "host" if is_host else "switch"
            for each in joined:
                self._listed.add_node(ListedNode(f"{name}.{each}", instance.place, {"type": kind}))
        if unused:
            self._listed.notes.append(f"instances that no edge joins, left out: {unused}")

    def _kinds(self, device: str, depth: int) -> tuple[frozenset[str], int]:
        """Return the kinds of a device's components, and of the devices among them, and the levels of these."""
        levels = 0
        if depth <= _MOST_NESTED and device not in self._nested:
            kinds: set[str] = set()
            for name, component in self._devices.get(device, {}).items():
                if component.kind == "device":
                    within, below = self._kinds(name, depth + 1)
                    kinds |= within
                    levels = max(levels, below + 1)
                elif component.kind in _TELLING_KINDS:
                    kinds.add(component.kind)
            self._nested[device] = frozenset(kinds), levels
        # A device that contains itself gets here before its levels are known.
        if depth > _MOST_NESTED or depth + self._nested[device][1] > _MOST_NESTED:
            raise TopologyError(f"device {shown(device)} is nested too deeply", valid=f"{_MOST_NESTED} levels")
        return self._nested[device]

    def _edge(self, place: str, edge: object) -> list[tuple[str, str, str, dict[str, object]]]:
        given = _mapping(edge, place)
        link = self._known(self._links, _text(given, "link", place), f"{place}.link", "link")
        scheme = _text(given, "scheme", place)
        if scheme not in _SCHEMES:
            raise TopologyError(f"{shown(scheme)} is not supported", place=f"{place}.scheme", valid=_SCHEMES)
        first, second = (self._endpoints(given.get(end), f"{place}.{end}") for end in ("ep1", "ep2"))
        self._joined += len(first) * len(second) if scheme == "many2many" else min(len(first), len(second))
        if self._joined > MOST_LINKS:
            raise TopologyError(f"{self._joined} links up to here", place=place, valid=f"at most {MOST_LINKS}")
        # As in InfraGraph, the rest of the longer side has no link.
        pairs = product(first, second) if scheme == "many2many" else zip(first, second, strict=False)
        found = []
        for (a, a_port), (b, b_port) in pairs:
            for port in filter(None, (a_port, b_port)):
                if port in self._ports:
                    raise TopologyError(f"port {shown(port)} has a link at {self._ports[port]} already", place=place)
                self._ports[port] = place
            found.append((a, b, place, link))
        return found

    def _endpoints(self, endpoint: object, place: str) -> list[tuple[str, str | None]]:
        """Return instances, as `leaf.0`, in the order of their components; with the port, where these are ports."""
        given = _mapping(endpoint, place)
        name, chosen = _sliced(_text(given, "instance", place), f"{place}.instance")
        instance = self._known(self._instances, name, f"{place}.instance", "instance")
        numbers = _range(chosen, instance.count, f"{place}.instance")
        device, paths, kind = instance.device, [""], ""
        elements = _text(given, "component", place).split(".")
        if len(elements) > _MOST_ELEMENTS:
            raise TopologyError(
                f"{len(elements)} names", place=f"{place}.component", valid=f"at most {_MOST_ELEMENTS} between dots"
            )
        self._count_endpoints(len(numbers), place)
        for element in elements:
            component_name, chosen = _sliced(element, f"{place}.component")
            if component_name == device and component_name not in self._devices[device]:
                continue
            component = self._known(self._devices[device], component_name, f"{place}.component", "component")
            indices = _range(chosen, component.count, f"{place}.component")
            self._count_endpoints(len(paths) * len(indices) * len(numbers), place)
            paths = [f"{path}.{component_name}.{index}" for path in paths for index in indices]
            kind = component.kind
            if kind == "device":
                self._known(self._devices, component_name, f"{place}.component", "device")
                device = component_name
        nodes = [f"{name}.{number}" for number in numbers]
        return [(node, f"{node}{path}" if kind == _PORT else None) for node in nodes for path in paths]

    def _count_endpoints(self, count: int, place: str) -> None:
        """Refuse too many endpoints before they are listed."""
        self._endpoint_count += count
        if count > MOST_LINKS or self._endpoint_count > _MOST_ENDPOINTS:
            valid = f"at most {MOST_LINKS}, and {_MOST_ENDPOINTS} of all edges"
            raise TopologyError("too many endpoints", place=place, valid=valid)

    def _known(self, held: dict[str, _Value], name: str, place: str, what: str) -> _Value:
        if name not in held:
            listed = ", ".join(list(held)[:8]) or "none is listed"
            more = ", …" if len(held) > 8 else ""
            raise TopologyError(f"no {what} is named {shown(name)}", place=place, valid=f"{listed}{more}")
        return held[name]


def _sliced(text: str, place: str) -> tuple[str, str | None]:
    match = _ELEMENT.fullmatch(text)
    if match is None:
        raise TopologyError(
            f"{shown(text)} is not valid", place=place, valid="a name, name[3], name[0:4] or name[0:8:2]"
        )
    return match[1], match[2]


def _range(chosen: str | None, count: int, place: str) -> range:
    if chosen is None:
        return range(count)
    parts = chosen.split(":")
    if len(parts) == 1:
        start = int(parts[0] or 0)
        numbers = range(start, start + 1)
    else:
        start, stop, step = (
            int(part) if part else default for part, default in zip([*parts, ""][:3], (0, count, 1), strict=True)
        )
        if not step:
            raise TopologyError(f"[{chosen}] has step 0", place=place, valid="1 or more")
        numbers = range(start, stop, step)
    if not numbers or numbers[-1] >= count:
        raise TopologyError(f"[{chosen}] is out of range", place=place, valid=f"0 to {count - 1}")
    return numbers


def _attributes(link: dict[str, Any], place: str) -> dict[str, object]:
    """Return rate and delay of a link, as far as it has them."""
    attributes: dict[str, object] = {}
    physical = _mapping(link.get("physical") or {}, f"{place}.physical")
    bandwidth = _chosen(physical, "bandwidth", (*_RATES, "gigatransfers_per_second"), place)
    if bandwidth is not None:
        unit, value = bandwidth
        if unit not in _RATES:
            raise TopologyError(
                "gigatransfers_per_second do not tell the rate of a link", place=f"{place}.physical", valid=_RATES
            )
        attributes["rate"] = f"{value * _RATES[unit]:.12g}Gb/s"
    latency = _chosen(physical, "latency", _LATENCIES, place)
    if latency is not None:
        attributes["delay"] = f"{latency[1]:.12g}{latency[0]}"
    return attributes


def _chosen(physical: dict[str, Any], key: str, units: tuple[str, ...], place: str) -> tuple[str, float] | None:
    if physical.get(key) is None:
        return None
    where = f"{place}.physical.{key}"
    given = _mapping(physical[key], where)
    unit = given.get("choice")
    if unit not in units:
        raise TopologyError(f"choice {shown(unit)}", place=where, valid=units)
    value = given.get(unit)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise TopologyError(f"{unit} {shown(value)} is not valid", place=where, valid="a number of 0 or more")
    return str(unit), float(value)


def _list(tree: dict[str, Any], key: str, place: str = "") -> list[Any]:
    items = tree.get(key)
    items = [] if items is None else items
    if not isinstance(items, list):
        raise TopologyError(f"must be a list, is {shown(items)}", place=f"{place}.{key}".strip("."))
    return items


def _named(tree: dict[str, Any], key: str, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the mappings of a list, with their places; each has a name that no other has."""
    seen: set[str] = set()
    for at, item in enumerate(_list(tree, key, place)):
        where = f"{place}.{key}[{at}]".strip(".")
        name = _text(_mapping(item, where), "name", where)
        if name in seen:
            raise TopologyError(f"name {shown(name)} is repeated", place=where, valid="each name once")
        seen.add(name)
        yield where, item


def _text(item: dict[str, Any], key: str, place: str) -> str:
    value = item.get(key)
    if not isinstance(value, str) or not value:
        raise TopologyError(f"{shown(value)} is not valid", place=f"{place}.{key}", valid="a text")
    return value


def _count(item: dict[str, Any], place: str) -> int:
    value = item.get("count")
    if type(value) is not int or not 1 <= value <= _MOST_COUNT:
        raise TopologyError(f"{shown(value)} is not valid", place=f"{place}.count", valid=f"1 to {_MOST_COUNT}")
    return value


def _recognised(content: bytes) -> bool:
    return all(
        re.search(rb"^\s*[\"']?" + key + rb"[\"']?\s*:", content, re.MULTILINE) for key in (b"devices", b"instances")
    )


KIND = FileFormat("infragraph", read_infragraph, _recognised, suffixes=(".json", ".yaml", ".yml"))
