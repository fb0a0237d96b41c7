"""Summarises routes: one prefix replaces many.

With hierarchical addresses, each branch of the address tree is a prefix. If all switches in a branch are reached over
the same next hops, one entry covers them; otherwise its parts are examined. Unreachable switches, and the switch
itself, have no route, so branches that contain them are not summarised: undeliverable packets are dropped instead of
looping.

With other addresses, two halves of a prefix that have the same next hops become the prefix. Every address is forwarded
as before, because the prefix covers no address that its halves do not cover.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import TypeVar

from weft.controller.routing.routes import Destinations, LpmEntries, Prefix
from weft.topologies.addressing import IpVersion
from weft.topologies.distances import bits_of
from weft.topologies.fabric import SwitchSpec

_Way = TypeVar("_Way")


@dataclass(frozen=True)
class Branch:
    """A branch of the tree; the branch of a single switch has no parts."""

    destinations: Destinations
    parts: tuple[Branch, ...] = ()


def address_tree(switches: Sequence[SwitchSpec], versions: Collection[IpVersion]) -> Branch | None:
    """Return the address tree of a plane's switches; None if their addresses are not hierarchical.

    Its entries are of these IP versions.
    """
    networks = [switch.networks for switch in switches]
    known = [each for each in networks if each is not None]
    if len(known) < len(switches):
        return None
    numbers = sorted(((int(ipv4.network_address), 1 << place) for place, (ipv4, _) in enumerate(known)))
    return _branch(numbers, *known[0], versions)


def _branch(
    numbers: Sequence[tuple[int, int]], ipv4: IPv4Network, ipv6: IPv6Network, versions: Collection[IpVersion]
) -> Branch:
    """Return the branch of some switches, given in order by the first address of their IPv4 network and their bit.

    `ipv4` and `ipv6` are the networks of any one switch: both end with the same bits for the switch.
    """
    switches = sum(bit for _, bit in numbers)
    lowest, highest = numbers[0][0], numbers[-1][0]
    length = min(ipv4.prefixlen, 32 - (lowest ^ highest).bit_length())
    shorter_by = ipv4.prefixlen - length
    prefixes: tuple[Prefix, ...] = (
        IPv4Network((lowest, ipv4.prefixlen)).supernet(shorter_by),
        _ipv6_of(lowest, ipv4, ipv6).supernet(shorter_by),
    )
    destinations = Destinations(tuple(LpmEntries(each) for each in prefixes if each.version in versions), switches)
    if len(numbers) == 1:
        return Branch(destinations)
    bit = 1 << (31 - length)
    cut = next(place for place, (number, _) in enumerate(numbers) if number & bit)
    return Branch(destinations, tuple(_branch(part, ipv4, ipv6, versions) for part in (numbers[:cut], numbers[cut:])))


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


class JoinedPrefixes:
    """The fewest prefixes that cover exactly the addresses of sets of switches; equal sets share one object."""

    def __init__(self, behind: Sequence[Destinations]) -> None:
        """Take the prefixes of each switch, by place."""
        self._entries = {lpm.prefix: lpm for each in behind for lpm in each.entries}
        self._numbers = [[_numbers_of(lpm.prefix) for lpm in each.entries] for each in behind]
        # A whole that is itself a switch's prefix would replace the route to that switch.
        self._taken = {numbers for of_switch in self._numbers for numbers in of_switch}
        self._of: dict[int, Destinations] = {}

    def of(self, switches: int) -> Destinations:
        """Return the prefixes of some switches, given as bits by place."""
        found = self._of.get(switches)
        if found is None:
            found = self._of[switches] = Destinations(tuple(map(self._entry, self._joined(switches))), switches)
        return found

    def _joined(self, switches: int) -> Iterator[Prefix]:
        """Yield the prefixes in order of version and address."""
        by_version: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for place in bits_of(switches):
            for version, length, number in self._numbers[place]:
                by_version[version][length].add(number)
        for kind in _KINDS:
            by_length, found = by_version[kind.version], list[tuple[int, int]]()
            while by_length:
                length = max(by_length)
                numbers = by_length.pop(length)
                bit = 1 << (kind.bits - length)
                for number in [each for each in numbers if each & bit and each ^ bit in numbers]:
                    if (kind.version, length - 1, number ^ bit) not in self._taken:
                        numbers -= {number, number ^ bit}
                        by_length[length - 1].add(number ^ bit)
                found += [(number, length) for number in numbers]
            yield from map(kind.network, sorted(found))

    def _entry(self, prefix: Prefix) -> LpmEntries:
        return self._entries.setdefault(prefix, LpmEntries(prefix))


@dataclass(frozen=True)
class _Kind:
    version: int
    bits: int
    network: Callable[[tuple[int, int]], Prefix]


_KINDS = (_Kind(4, 32, IPv4Network), _Kind(6, 128, IPv6Network))


def _numbers_of(prefix: Prefix) -> tuple[int, int, int]:
    return prefix.version, prefix.prefixlen, int(prefix.network_address)
