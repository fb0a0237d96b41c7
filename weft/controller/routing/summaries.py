"""Summarises routes: with hierarchical addresses, one prefix replaces many.

Each branch of the address tree is a prefix. If all switches in a branch are reached over the same next hops, one entry
covers them; otherwise its parts are examined. Unreachable switches, and the switch itself, have no route, so branches
that contain them are not summarised: undeliverable packets are dropped instead of looping.
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
    """A branch of the tree; the branch of a single switch has no parts."""

    destinations: Destinations
    parts: tuple[Branch, ...] = ()


def address_tree(switches: Sequence[SwitchSpec]) -> Branch | None:
    """Return the address tree of a plane's switches; None if their addresses are not hierarchical."""
    networks = [switch.networks for switch in switches]
    known = [each for each in networks if each is not None]
    if len(known) < len(switches):
        return None
    numbers = sorted(((int(ipv4.network_address), 1 << place) for place, (ipv4, _) in enumerate(known)))
    return _branch(numbers, *known[0])


def _branch(numbers: Sequence[tuple[int, int]], ipv4: IPv4Network, ipv6: IPv6Network) -> Branch:
    """Return the branch of some switches, given in order by the first address of their IPv4 network and their bit.

    `ipv4` and `ipv6` are the networks of any one switch: both end with the same bits for the switch.
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
    """Return the IPv6 network of the switch with the IPv4 network that begins at `number`."""
    offset = (number - int(ipv4.network_address)) >> (32 - ipv4.prefixlen)
    return IPv6Network((int(ipv6.network_address) + (offset << (128 - ipv6.prefixlen)), ipv6.prefixlen))


def summarised(tree: Branch, towards: Mapping[_Way, int]) -> list[tuple[Destinations, _Way]]:
    """Return the branches that need one entry each, with their next hops; branches without a route are omitted.

    Other values shared by several switches, such as a lane, are summarised in the same way.
    """
    found = []
    pending: list[tuple[Branch, list[tuple[_Way, int]]]] = [(tree, list(towards.items()))]
    while pending:
        branch, routes = pending.pop()
        switches = branch.destinations.switches
        inside = [(way, bits) for way, whole in routes if (bits := whole & switches)]
        if not inside:
            continue
        # One way covers the whole branch. No way has the bit of a switch without a route, so its branch never matches.
        if inside[0][1] == switches:
            found.append((branch.destinations, inside[0][0]))
        else:
            pending += [(part, inside) for part in reversed(branch.parts)]
    return found
