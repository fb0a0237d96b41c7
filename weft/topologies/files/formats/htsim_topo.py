"""Topology files of htsim (github.com/ultraethernet/uet-htsim): fat trees of two or three tiers.

The header gives `Nodes`, `Tiers` and `Podsize`; then follow the figures of each tier of switches, from `Tier 0`, the
leaves, up. Links are as in htsim's fat_tree_topology.cpp: a leaf has a bundle to each spine of its pod; spine i
of a pod of s spines has a bundle to cores i, i + s, i + 2 s, ….
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from weft.quantities.units import shown
from weft.topologies.builder import MOST_LINKS, require_links
from weft.topologies.errors import TopologyError
from weft.topologies.files.format import FileFormat
from weft.topologies.files.listed import ListedEdge, ListedGraph, ListedNode

_HEADER = ("nodes", "tiers", "podsize")
_OF_TIER = (
    "downlink_speed_gbps",
    "radix_down",
    "radix_up",
    "bundle",
    "oversubscribed",
    "queue_down",
    "queue_up",
    "downlink_latency_ns",
    "switch_latency_ns",
)
_ROLES = ("leaf", "spine", "core")
_MOST_NUMBER = (1 << 31) - 1
"""htsim reads 32-bit integers."""


@dataclass
class _Figures:
    """Figures of the header, or of a tier: numbers by key in small letters, with their lines."""

    place: str
    numbers: dict[str, int] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def add(self, key: str, number: int, place: str) -> None:
        if key in self.numbers:
            raise TopologyError(f"{key} is at {self.places[key]} already", place=place, valid="once")
        self.numbers[key], self.places[key] = number, place

    def needed(self, key: str) -> int:
        if not self.numbers.get(key):
            raise TopologyError(f"{key} is missing or 0", place=self.places.get(key, self.place), valid="1 or more")
        return self.numbers[key]


def read_topo(content: bytes) -> ListedGraph:
    """Return the graph: hosts 0, 1, …, switches leaf0, …, spine0, …, core0, …. Raises TopologyError with the line."""
    header, tiers = _figures(content)
    return _Tree(header, tiers).listed()


def _figures(content: bytes) -> tuple[_Figures, list[_Figures]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TopologyError(f"is not UTF-8 text: {error}", place="the whole") from None
    header, tiers = _Figures("the header"), dict[int, _Figures]()
    current = header
    for number, line in enumerate(text.splitlines(), 1):
        words, place = line.split(), f"line {number}"
        if not words or words[0].startswith("#"):
            continue
        key = words[0].lower()
        valid = (*_HEADER, "tier") if current is header else (*_OF_TIER, "tier")
        if key not in valid:
            raise TopologyError(f"unknown key {shown(words[0])}", place=place, valid=valid)
        if len(words) != 2:
            raise TopologyError(f"{key} with {len(words) - 1} values", place=place, valid="one whole number")
        value = _whole(words[1], _MOST_NUMBER, f"{place}: {key}")
        if key == "tier":
            if value in tiers or value > 2:
                raise TopologyError(f"tier {value}", place=place, valid="0, 1 and 2, each once")
            current = tiers[value] = _Figures(place)
        else:
            current.add(key, value, place)
    count = header.needed("tiers")
    if count not in (2, 3):
        raise TopologyError(f"{count} tiers", place=header.places["tiers"], valid="2, 3")
    for tier in range(count):
        if tier not in tiers:
            raise TopologyError(f"tier {tier} is missing", place="the whole", valid=f"tiers 0 to {count - 1}")
    return header, [tiers[tier] for tier in range(count)]


def _whole(text: str, most: int, place: str) -> int:
    value = int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else -1
    if not 0 <= value <= most:
        raise TopologyError(f"{shown(text)} is out of range", place=place, valid=f"0 to {most}")
    return value


class _Tree:
    """The counts that follow from the figures, checked against each other as htsim checks them."""

    def __init__(self, header: _Figures, tiers: list[_Figures]) -> None:
        self._tiers = tiers
        self._top = len(tiers) - 1
        self.nodes, podsize = header.needed("nodes"), header.needed("podsize")
        self._bundles = [tier.numbers.get("bundle", 1) or 1 for tier in tiers]
        self._radix_down = [tier.needed("radix_down") for tier in tiers]
        self._radix_up = [tier.needed("radix_up") for tier in tiers[:-1]]
        if "radix_up" in tiers[-1].numbers:
            raise TopologyError(
                f"radix_up of tier {self._top}", place=tiers[-1].places["radix_up"], valid="none: it is the highest"
            )
        if self._bundles[0] != 1:
            raise TopologyError("a bundle of several links to hosts", place=tiers[0].places["bundle"], valid="1")
        self.pods = _divided(header, "nodes", self.nodes, podsize, "podsize")
        if self._top == 1 and self.pods != 1:
            place = header.places["podsize"]
            raise TopologyError(f"podsize {podsize} with two tiers", place=place, valid=f"{self.nodes}, all nodes")
        self.leaves = _divided(header, "podsize", podsize, self._radix_down[0], "radix_down of tier 0")
        self.spines = _divided(tiers[0], "radix_up", self._radix_up[0], self._bundles[1], "bundle of tier 1")
        self._require_radix(1, self.leaves, "leaves of a pod")
        self.cores = 0
        if self._top == 2:
            above = _divided(tiers[1], "radix_up", self._radix_up[1], self._bundles[2], "bundle of tier 2")
            self.cores = self.spines * above
            self._require_radix(2, self.pods, "pods")
        for tier in range(self._top):
            self._require_oversubscription(tier)
        # Every key is a line of text, so a short file could ask for a huge tree.
        uplinks = self.pods * (self.leaves * self._radix_up[0] + (self.spines * self._radix_up[1] if self.cores else 0))
        if self.nodes > MOST_LINKS:
            raise TopologyError(f"{self.nodes} nodes", place=header.places["nodes"], valid=f"1 to {MOST_LINKS}")
        require_links(self.nodes + uplinks, "the fat tree")

    def _require_radix(self, tier: int, below: int, what: str) -> None:
        needed = below * self._bundles[tier]
        if self._radix_down[tier] != needed:
            raise TopologyError(
                f"radix_down {self._radix_down[tier]} of tier {tier}, with {below} {what} and bundles of "
                f"{self._bundles[tier]}",
                place=self._tiers[tier].places["radix_down"],
                valid=f"{needed}",
            )

    def _require_oversubscription(self, tier: int) -> None:
        below, above = self._tiers[tier], self._tiers[tier + 1]
        given = below.numbers.get("oversubscribed")
        speeds = [each.numbers.get("downlink_speed_gbps", 0) for each in (below, above)]
        if given is None or not all(speeds):
            return
        down, up = self._radix_down[tier] * speeds[0], self._radix_up[tier] * speeds[1]
        if down != up * given:
            raise TopologyError(
                f"oversubscribed {given}, with {down} Gb/s down and {up} Gb/s up",
                place=below.places["oversubscribed"],
                valid=f"{down / up:g}",
            )

    def listed(self) -> ListedGraph:
        listed = ListedGraph()
        counts = (self.pods * self.leaves, self.pods * self.spines, self.cores)
        for host in range(self.nodes):
            listed.add_node(ListedNode(f"{host}", "the header", {"type": "host"}))
        for tier, figures in enumerate(self._tiers):
            for number in range(counts[tier]):
                attributes: dict[str, object] = {"type": "switch", "role": _ROLES[tier], "tier": tier}
                if tier < 2 and self._top == 2:
                    attributes["group"] = number // (counts[tier] // self.pods)
                listed.add_node(ListedNode(f"{_ROLES[tier]}{number}", figures.place, attributes))
        for tier, figures in enumerate(self._tiers):
            attributes = self._of_links(tier)
            for lower, upper in self._pairs(tier):
                for key in range(self._bundles[tier]):
                    listed.add_edge(ListedEdge(lower, upper, key, figures.place, attributes))
        if any(tier.numbers.get("switch_latency_ns") for tier in self._tiers):
            listed.notes.append("switch_latency_ns: half of it is added to the delay of each of the switch's links")
        return listed

    def _of_links(self, tier: int) -> dict[str, object]:
        """Return the attributes of a tier's downlinks, which are the uplinks of the tier below."""
        numbers = self._tiers[tier].numbers
        below = self._tiers[tier - 1].numbers if tier else {}
        attributes: dict[str, object] = {}
        if numbers.get("downlink_speed_gbps"):
            attributes["rate"] = f"{numbers['downlink_speed_gbps']}Gb/s"
        if "downlink_latency_ns" in numbers:
            switches_ns = numbers.get("switch_latency_ns", 0) + below.get("switch_latency_ns", 0)
            attributes["delay"] = f"{numbers['downlink_latency_ns'] * 1000 + switches_ns * 500}ps"
        elif numbers.get("switch_latency_ns") or below.get("switch_latency_ns"):
            raise TopologyError(
                f"tier {tier} has no downlink_latency_ns to which a switch_latency_ns can be added",
                place=self._tiers[tier].place,
                valid="downlink_latency_ns",
            )
        queues = {each for each in (numbers.get("queue_down"), below.get("queue_up")) if each}
        if len(queues) > 1:
            raise TopologyError(
                f"queue_down {numbers['queue_down']} of tier {tier}, queue_up {below['queue_up']} of tier {tier - 1}",
                place=self._tiers[tier].places["queue_down"],
                valid="one size at both ends of a link",
            )
        if queues:
            attributes["queue_capacity"] = f"{queues.pop()}B"
        return attributes

    def _pairs(self, tier: int) -> Iterator[tuple[str, str]]:
        """Yield the ends of a tier's downlinks, the lower one first, in the order of the lower ones."""
        if tier == 0:
            for host in range(self.nodes):
                yield f"{host}", f"leaf{host // self._radix_down[0]}"
        elif tier == 1:
            for leaf in range(self.pods * self.leaves):
                for spine in range(self.spines):
                    yield f"leaf{leaf}", f"spine{leaf // self.leaves * self.spines + spine}"
        else:
            for spine in range(self.pods * self.spines):
                for core in range(spine % self.spines, self.cores, self.spines):
                    yield f"spine{spine}", f"core{core}"


def _divided(figures: _Figures, key: str, number: int, by: int, what: str) -> int:
    if number % by:
        raise TopologyError(f"{key} {number} with {what} {by}", place=figures.places[key], valid=f"multiples of {by}")
    return number // by


def _recognised(content: bytes) -> bool:
    lines = (line.split() for line in content[:4096].decode("utf-8", "replace").splitlines())
    first = next((words for words in lines if words and not words[0].startswith("#")), [])
    return bool(first) and first[0].lower() in _HEADER


KIND = FileFormat("htsim_topo", read_topo, _recognised, suffixes=(".topo",))
