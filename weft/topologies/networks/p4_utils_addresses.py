"""p4-utils' assignment strategies: addresses of hosts for which the file gives none.

`l2` puts all hosts in 10.0.0.0/16; `mixed` puts hosts of switch n in 10.0.n.0/24 with gateway .254; `l3` gives each
host a network 10.n.h.0/24 with gateway .1 and host .2. A host hN has its number in its address. MACs are 00:00
followed by the address for the host, 00:01 followed by the address for the switch port at the host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network

from weft.quantities.units import shown
from weft.topologies.errors import TopologyError


@dataclass(frozen=True)
class Attached:
    """A host, its switch, and the switch's device id."""

    host: str
    switch: str
    device_id: int

    @property
    def number(self) -> int | None:
        """The number in a name such as h12; None for other names."""
        return int(self.host[1:]) if re.fullmatch("h[0-9]{1,5}", self.host) else None


@dataclass(frozen=True)
class Assigned:
    """A host's address, gateway and MAC, and the MAC of the switch port at the host."""

    ipv4: IPv4Interface
    gateway: str | None
    mac: str
    port_mac: str


def assign(strategy: str, attached: list[Attached]) -> dict[str, Assigned]:
    """Return the addresses of hosts. Raises TopologyError: the strategy is unknown, or a number does not fit."""
    if strategy not in STRATEGIES:
        raise TopologyError(f"{shown(strategy)} is not known", place="topology.assignment_strategy", valid=STRATEGIES)
    assigned = STRATEGIES[strategy](attached)
    seen: dict[IPv4Interface, str] = {}
    for host, found in assigned.items():
        if found.ipv4 in seen:
            raise TopologyError(f"hosts {seen[found.ipv4]} and {host} would both have {found.ipv4}")
        seen[found.ipv4] = host
    return assigned


def _l2(attached: list[Attached]) -> dict[str, Assigned]:
    reserved = {
        each.host: f"10.0.{each.number >> 8 & 0xFF}.{each.number & 0xFF}"
        for each in attached
        if each.number is not None
    }
    free = _free(IPv4Network("10.0.0.0/16"), set(reserved.values()))
    return {each.host: _assigned(f"{reserved.get(each.host) or _next(free, each.host)}/16", None) for each in attached}


def _mixed(attached: list[Attached]) -> dict[str, Assigned]:
    bases = {each.switch: f"10.{each.device_id >> 8 & 0xFF}.{each.device_id & 0xFF}" for each in attached}
    reserved = {
        each.host: f"{bases[each.switch]}.{_below(each.number, 254, each.host)}"
        for each in attached
        if each.number is not None
    }
    taken = {*reserved.values(), *(f"{base}.254" for base in bases.values())}
    free = {switch: _free(IPv4Network(f"{base}.0/24"), taken) for switch, base in bases.items()}
    return {
        each.host: _assigned(
            f"{reserved.get(each.host) or _next(free[each.switch], each.host)}/24",
            f"{bases[each.switch]}.254",
        )
        for each in attached
    }


def _l3(attached: list[Attached]) -> dict[str, Assigned]:
    taken: dict[str, set[int]] = {}
    for each in attached:
        numbers = taken.setdefault(each.switch, set())
        if each.number is not None:
            numbers.add(_below(each.number, 254, each.host))
    found = {}
    for each in attached:
        number = each.number
        if number is None:
            free_numbers = (str(free) for free in range(1, 255) if free not in taken[each.switch])
            number = int(_next(free_numbers, each.host))
            taken[each.switch].add(number)
        base = f"10.{_below(each.device_id, 254, each.switch)}.{number}"
        found[each.host] = _assigned(f"{base}.2/24", f"{base}.1")
    return found


def _manual(attached: list[Attached]) -> dict[str, Assigned]:
    """Assign addresses in 10.0.0.0/8. p4-utils draws MACs at random; these are in the same range, but fixed."""
    free = _free(IPv4Network("10.0.0.0/8"), set())
    return {each.host: _assigned(f"{_next(free, each.host)}/8", None) for each in attached}


STRATEGIES: Mapping[str, Callable[[list[Attached]], dict[str, Assigned]]] = {
    "l2": _l2,
    "mixed": _mixed,
    "l3": _l3,
    "manual": _manual,
}


def _free(network: IPv4Network, reserved: set[str]) -> Iterator[str]:
    return (str(address) for address in network.hosts() if str(address) not in reserved)


def _next(free: Iterator[str], host: str) -> str:
    address = next(free, None)
    if address is None:
        raise TopologyError(f"{host}: its network has no address left", valid="fewer hosts at its switch")
    return address


def _assigned(ipv4: str, gateway: str | None) -> Assigned:
    interface = IPv4Interface(ipv4)
    octets = ":".join(f"{octet:02x}" for octet in interface.ip.packed)
    return Assigned(interface, gateway, f"00:00:{octets}", f"00:01:{octets}")


def _below(number: int, limit: int, name: str) -> int:
    if number >= limit:
        raise TopologyError(
            f"its number {number} does not fit into an octet of its address",
            place=name,
            valid=f"below {limit}",
        )
    return number
