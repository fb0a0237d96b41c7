"""Links of p4-utils' p4app.json: their ends and ports, and the values that switches and controllers use."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from weft.hints import did_you_mean
from weft.quantities.units import PS_PER_US, shown
from weft.topologies.addressing import cpu_interface_names
from weft.topologies.errors import TopologyError
from weft.topologies.networks import fields as read
from weft.topologies.networks.fields import Fields
from weft.topologies.networks.model import (
    DEFAULT_QUEUE_PACKETS,
    DEFAULT_RATE_BPS,
    PACKET_BYTES,
    LinkFacts,
    NetworkLink,
    natural_order,
)

_CPU_BRIDGE = "sw-cpu"
_MOST_WEIGHT = 10**9
LINK_FIELDS = (
    "port1",
    "port2",
    "addr1",
    "addr2",
    "params1",
    "params2",
    "bw",
    "delay",
    "loss",
    "max_queue_size",
    "sw_ip1",
    "sw_ip2",
    "weight",
)
"""Options of a link that mean something here; others are for controllers."""


@dataclass
class FileLink:
    """A link as in the file; ports and MACs are filled in later."""

    place: str
    ends: tuple[str, str]
    options: Fields
    ports: list[int | None]


def cpu_links(switches: Fields, names: list[str]) -> Iterator[FileLink]:
    """Yield the links of switches with `cpu_port` to p4-utils' bridge. TopologyError: a name is too long."""
    for name in names:
        fields = switches.child(name)
        if not fields.flag("cpu_port", False):
            continue
        try:
            cpu_interface_names(name)
        except TopologyError as error:
            raise TopologyError(error, place=fields.at("cpu_port")) from None
        yield FileLink(fields.at("cpu_port"), (name, _CPU_BRIDGE), Fields({}, ""), [None, 0])


def read_links(topology: Fields, hosts: Collection[str], switches: Collection[str]) -> list[FileLink]:
    """Return the links in file order, with the ports that the file gives. TopologyError: an end is unknown."""
    links = []
    for place, item in read.link_items(topology, 2, 3):
        options = Fields(item[2] if len(item) > 2 else {}, f"{place}[2]")
        for end in item[:2]:
            if end not in hosts and end not in switches:
                raise TopologyError(
                    f"{shown(end)} is not a node; {did_you_mean(end, [*hosts, *switches])}", place=place
                )
        ports: list[int | None] = []
        for end, key in zip(item[:2], ("port1", "port2"), strict=True):
            number = options.get(key)
            ports.append(0 if end in hosts else None if number is None else read.switch_port(number, options.at(key)))
        links.append(FileLink(place, (item[0], item[1]), options, ports))
    return links


def number_ports(links: list[FileLink]) -> None:
    """Number the link ends that have no port yet. TopologyError: a switch has no port left."""
    taken: dict[str, set[int]] = {}
    for link in links:
        for end, port in zip(link.ends, link.ports, strict=True):
            if port is not None:
                taken.setdefault(end, set()).add(port)
    free: dict[str, Iterator[int]] = {}
    for link in sorted(links, key=lambda each: tuple(map(natural_order, each.ends))):
        for side, end in enumerate(link.ends):
            if link.ports[side] is None:
                numbers = free.setdefault(end, free_numbers(taken.get(end, ()), 1))
                link.ports[side] = read.switch_port(next(numbers), f"{link.place}: port of {end}")


def free_numbers(taken: Collection[int], first: int) -> Iterator[int]:
    """Yield the numbers from `first` on that are not taken."""
    return (number for number in count(first) if number not in taken)


def network_link(link: FileLink, hosts: Collection[str], defaults: Fields) -> NetworkLink:
    """Return a link as switches use it; a host is its first end. TopologyError: a figure is invalid."""

    def value(name: str) -> Any:
        return link.options.get(name) if name in link.options else defaults.get(name)

    def at(name: str) -> str:
        return link.options.at(name) if name in link.options else defaults.at(name)

    (a, b), (a_port, b_port) = link.ends, (int(port or 0) for port in link.ports)
    if b in hosts:
        a, a_port, b, b_port = b, b_port, a, a_port
    bandwidth, delay, loss, queue = map(value, ("bw", "delay", "loss", "max_queue_size"))
    return NetworkLink(
        a,
        a_port,
        b,
        b_port,
        DEFAULT_RATE_BPS if bandwidth is None else read.rate_bps(bandwidth, at("bw")),
        0 if delay is None else read.delay_ps(delay, at("delay"), PS_PER_US),
        DEFAULT_QUEUE_PACKETS * PACKET_BYTES if queue is None else read.queue_bytes(queue, at("max_queue_size")),
        0.0 if loss is None else read.loss_probability(loss, at("loss")),
    )


def facts_of(link: FileLink, found: NetworkLink, defaults: Fields) -> LinkFacts:
    """Return a link's values for controllers, with the ends in the order of the network's link."""
    of_link = "weight" in link.options
    weight = (link.options if of_link else defaults).get("weight")
    if weight is not None and (
        isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= _MOST_WEIGHT
    ):
        raise TopologyError(
            f"{shown(weight)} is not valid",
            place=(link.options if of_link else defaults).at("weight"),
            valid=f"0 to {_MOST_WEIGHT:,}",
        )
    a_ip, b_ip = (switch_address(link, side) for side in (0, 1))
    if found.a != link.ends[0]:
        a_ip, b_ip = b_ip, a_ip
    has_rate = "bw" in link.options or "bw" in defaults
    others = {name: link.options.get(name) for name in link.options if name not in LINK_FIELDS}
    return LinkFacts(found.rate_bps / 10**6 if has_rate else None, weight, a_ip, b_ip, others)


def switch_address(link: FileLink, side: int) -> str | None:
    """Return the address that controllers attribute to a switch port, which itself has none."""
    name = f"sw_ip{side + 1}"
    value = link.options.get(name)
    return None if value is None else read.ipv4_interface(value, link.options.at(name))
