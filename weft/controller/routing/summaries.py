"""Few prefixes in place of many: routes over the tree of a plane's addresses, where these are a hierarchy.

Each branch of the tree is a prefix. Where all switches in a branch are reached over the same next hops, one entry leads
to all of them; otherwise the branch is looked into. A switch that is out of reach, and the switch itself, have no route
and so keep their branches apart: what cannot be delivered is dropped, and never sent back and forth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import TypeVar

from weft.controller.routing.routes import Destinations, LpmEntries
from weft.topologies.fabric import SwitchSpec

_Way = TypeVar("_Way")


@dataclass(frozen=True)
class Branch:
    """A part of the tree; the branches of a single switch have no parts of their own."""

    destinations: Destinations
    parts: tuple[Branch, ...] = ()


def address_tree(switches: Sequence[SwitchSpec]) -> Branch | None:
    """Return the tree of a plane's switches; None where their addresses are no hierarchy."""
    networks = [switch.networks for switch in switches]
    known = [each for each in networks if each is not None]
    if len(known) < len(switches):
        return None
    numbers = sorted(((int(ipv4.network_address), 1 << place) for place, (ipv4, _) in enumerate(known)))
    return _branch(numbers, *known[0])


def _branch(numbers: Sequence[tuple[int, int]], ipv4: IPv4Network, ipv6: IPv6Network) -> Branch:
    """Return the branch of switches, each with the first address of its IPv4 network and its bit, in order.

    `ipv4` and `ipv6` are the networks of any switch: both versions have the same bits of the switch at their ends.
    """
    switches = sum(bit for _, bit in numbers)
    lowest, highest = numbers[0][0], numbers[-1][0]
    length = min(ipv4.prefixlen, 32 - (lowest ^ highest).bit_length())
    shorter_by = ipv4.prefixlen - length
    first_ipv6 = _ipv6_of(lowest, ipv4, ipv6)
    destinations = Destinations(
        (
            LpmEntries(IPv4Network((lowest, ipv4.prefixlen)).supernet(shorter_by)),
            LpmEntries(first_ipv6.supernet(shorter_by)),
        ),
        switches,
    )
    if len(numbers) == 1:
        return Branch(destinations)
    bit = 1 << (31 - length)
    cut = next(place for place, (number, _) in enumerate(numbers) if number & bit)
    return Branch(destinations, tuple(_branch(part, ipv4, ipv6) for part in (numbers[:cut], numbers[cut:])))


def _ipv6_of(number: int, ipv4: IPv4Network, ipv6: IPv6Network) -> IPv6Network:
    """Return the IPv6 network of the switch whose IPv4 network begins with `number`."""
    offset = (number - int(ipv4.network_address)) >> (32 - ipv4.prefixlen)
    return IPv6Network((int(ipv6.network_address) + (offset << (128 - ipv6.prefixlen)), ipv6.prefixlen))


def summarised(tree: Branch, towards: Mapping[_Way, int]) -> list[tuple[Destinations, _Way]]:
    """Return the branches that take one entry each, with their next hops; those without a route are left out.

    What else stands for several switches, such as a lane, is summarised in the same way.
    """
    found = []
    pending: list[tuple[Branch, list[tuple[_Way, int]]]] = [(tree, list(towards.items()))]
    while pending:
        branch, routes = pending.pop()
        switches = branch.destinations.switches
        inside = [(way, bits) for way, whole in routes if (bits := whole & switches)]
        if not inside:
            continue
        # One way covers the whole branch. A switch without a route is in no way's bits, so its branch never matches
        # here.
        if inside[0][1] == switches:
            found.append((branch.destinations, inside[0][0]))
        else:
            pending += [(part, inside) for part in reversed(branch.parts)]
    return found
