"""Assigns addresses and MACs: one octet per level where a fabric fits, otherwise a hierarchy of bit fields.

docs/spec/addressing.md specifies both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Protocol

from weft.topologies import addressing
from weft.topologies.errors import TopologyError

Networks = tuple[IPv4Network, IPv6Network]
_BITS = 24
"""Free bits of 10.0.0.0/8."""
_IPV4_BASE = 10 << _BITS
_IPV6_BASE = 0xFD00 << 112
_FEWEST_HOST_BITS = 2
_PLANE_OCTET = 8


@dataclass(frozen=True)
class Placed:
    """The facts about a switch that determine its addresses.

    `position` is its place among the switches of its role, widest level first. `nics` counts the NICs attached to it.
    """

    plane: int
    role: str
    index: int
    position: tuple[int, ...]
    nics: int


@dataclass(frozen=True)
class SwitchAddresses:
    """A switch's own addresses; in a hierarchy, `networks` are the prefixes of the switch and its hosts."""

    address: IPv4Address
    ipv6: IPv6Address
    mac: str
    networks: Networks | None


@dataclass(frozen=True)
class NicAddresses:
    """A NIC's addresses."""

    ipv4: IPv4Interface
    ipv6: IPv6Interface
    mac: str


class AddressPlan(Protocol):
    """Gives every node of a fabric its addresses."""

    def plane_networks(self, plane: int) -> Networks:
        """Return the networks that hold a plane."""

    def of_switch(self, switch: Placed) -> SwitchAddresses:
        """Return a switch's addresses."""

    def of_nic(self, switch: Placed, number: int) -> NicAddresses:
        """Return the addresses of a NIC, the `number`th (from 0) at its switch."""


def address_plan(planes: int, switches: Sequence[Placed]) -> AddressPlan:
    """Return the plan of a fabric.

    Raises:
        TopologyError: 10.0.0.0/8 is too small for it, or two switches of a role have one position.

    """
    return OctetPlan() if OctetPlan.fits(planes, switches) else HierarchicalPlan(planes, switches)


@dataclass(frozen=True)
class _Octets:
    most: int
    most_with_cores: int
    ipv4: Callable[[int, int], IPv4Address]
    ipv6: Callable[[int, int], IPv6Address]
    mac: Callable[[int, int], str]


_OCTETS: Mapping[str, _Octets] = {
    "leaf": _Octets(
        # A leaf with the index of the cores' octet would share their addresses.
        addressing.MAX_LEAVES,
        addressing.MAX_LEAVES - 1,
        addressing.leaf_ipv4,
        addressing.leaf_ipv6,
        addressing.leaf_mac,
    ),
    "spine": _Octets(
        addressing.MAX_SPINES,
        addressing.MAX_SPINES,
        addressing.spine_ipv4,
        addressing.spine_ipv6,
        addressing.spine_mac,
    ),
    "core": _Octets(
        addressing.MAX_CORES,
        addressing.MAX_CORES,
        addressing.core_ipv4,
        addressing.core_ipv6,
        addressing.core_mac,
    ),
}


class OctetPlan:
    """10.plane.leaf.host: leaves, spines and cores of small fabrics; see `weft.topologies.addressing`."""

    @staticmethod
    def fits(planes: int, switches: Sequence[Placed]) -> bool:
        """Return whether a fabric has only these roles, hosts only on leaves, and counts that fit in octets."""
        has_cores = any(switch.role == "core" for switch in switches)
        return planes <= addressing.MAX_PLANES and all(
            (octets := _OCTETS.get(switch.role)) is not None
            and switch.index < (octets.most_with_cores if has_cores else octets.most)
            and switch.nics <= (addressing.MAX_HOSTS_PER_LEAF if switch.role == "leaf" else 0)
            for switch in switches
        )

    def plane_networks(self, plane: int) -> Networks:
        """See AddressPlan."""
        return _networks(addressing.leaf_ipv4(plane, 0), 16, addressing.leaf_ipv6(plane, 0), 32)

    def of_switch(self, switch: Placed) -> SwitchAddresses:
        """See AddressPlan."""
        octets, here = _OCTETS[switch.role], (switch.plane, switch.index)
        return SwitchAddresses(octets.ipv4(*here), octets.ipv6(*here), octets.mac(*here), None)

    def of_nic(self, switch: Placed, number: int) -> NicAddresses:
        """See AddressPlan."""
        here = switch.plane, switch.index, number
        # From numbers: from addresses, the standard library makes texts, which it parses.
        return NicAddresses(
            IPv4Interface((int(addressing.host_ipv4(*here)), addressing.HOST_IPV4_PREFIX_LENGTH)),
            IPv6Interface((int(addressing.host_ipv6(*here)), addressing.HOST_IPV6_PREFIX_LENGTH)),
            addressing.host_mac(*here),
        )


class HierarchicalPlan:
    """Divides 10.0.0.0/8 into plane | role | position, level by level | host.

    Switches that agree in the first levels of their position share a prefix, in both IP versions. Raises as
    `address_plan`.
    """

    def __init__(self, planes: int, switches: Sequence[Placed]) -> None:
        roles = list(dict.fromkeys(switch.role for switch in switches))
        self._role_number = {role: number for number, role in enumerate(roles)}
        self._level_bits = {role: _level_bits(role, switches) for role in roles}
        role_bits = (len(roles) - 1).bit_length()
        self._position_bits = max(sum(bits) for bits in self._level_bits.values())
        most_nics = max(switch.nics for switch in switches)
        # A subnet also holds its network address, the switch and the broadcast address.
        self._host_bits = max(_FEWEST_HOST_BITS, (most_nics + 2).bit_length())
        self._switch_bits = role_bits + self._position_bits
        plane_bits = (planes - 1).bit_length()
        spare = _BITS - plane_bits - self._switch_bits - self._host_bits
        if spare < 0:
            levels = ", ".join(
                f"{role} {'+'.join(str(each) for each in bits) or 0}" for role, bits in self._level_bits.items()
            )
            raise TopologyError(
                f"{planes} planes ({plane_bits} bits), switches ({self._switch_bits} bits: {role_bits} for the role, "
                f"positions of {levels}) and {most_nics} NICs a switch ({self._host_bits} bits) need {_BITS - spare} "
                f"bits of 10.0.0.0/8, which has {_BITS}",
                valid=f"{-spare} bits fewer; {_fewer(planes, most_nics, -spare)}",
            )
        # A whole octet, if there is room, is easier to read.
        self._plane_bits = max(plane_bits, min(_PLANE_OCTET, plane_bits + spare))
        self._ipv6_switch_bits = 16 if self._switch_bits <= 16 else 32

    def plane_networks(self, plane: int) -> Networks:
        """See AddressPlan."""
        return _networks(
            IPv4Address(_IPV4_BASE | plane << (_BITS - self._plane_bits)),
            32 - _BITS + self._plane_bits,
            IPv6Address(_IPV6_BASE | plane << 96),
            32,
        )

    def of_switch(self, switch: Placed) -> SwitchAddresses:
        """See AddressPlan."""
        ipv4, ipv6 = self._bases(switch)
        own = (1 << self._host_bits) - 2
        return SwitchAddresses(
            IPv4Address(ipv4 + own),
            IPv6Address(ipv6 + own),
            _mac(0x11, ipv4),
            _networks(IPv4Address(ipv4), 32 - self._host_bits, IPv6Address(ipv6), 32 + self._ipv6_switch_bits),
        )

    def of_nic(self, switch: Placed, number: int) -> NicAddresses:
        """See AddressPlan."""
        ipv4, ipv6 = self._bases(switch)
        return NicAddresses(
            IPv4Interface((ipv4 + number + 1, 32 - self._host_bits)),
            IPv6Interface((ipv6 + number + 1, addressing.HOST_IPV6_PREFIX_LENGTH)),
            _mac(0x10, ipv4 + number + 1),
        )

    def _bases(self, switch: Placed) -> tuple[int, int]:
        """Return the first addresses of a switch's networks."""
        number = self._role_number[switch.role]
        position = 0
        for value, bits in zip(switch.position, self._level_bits[switch.role], strict=True):
            position = position << bits | value
        number = number << self._position_bits | position
        ipv4 = _IPV4_BASE | switch.plane << (_BITS - self._plane_bits) | number << self._host_bits
        return ipv4, _IPV6_BASE | switch.plane << 96 | number << (96 - self._ipv6_switch_bits)


def _level_bits(role: str, switches: Sequence[Placed]) -> tuple[int, ...]:
    """Return how many bits each level of a role's positions needs."""
    of_role = [switch for switch in switches if switch.role == role]
    lengths = {len(switch.position) for switch in of_role}
    if len(lengths) > 1:
        raise TopologyError(f"switches of role {role} have positions of {sorted(lengths)} levels", valid="one number")
    (switch, count), *_ = Counter((each.plane, each.position) for each in of_role).most_common(1)
    if count > 1:
        raise TopologyError(f"{count} switches of role {role} in plane {switch[0]} have position {switch[1]}")
    return tuple(max(level).bit_length() for level in zip(*(each.position for each in of_role), strict=True))


def _fewer(planes: int, most_nics: int, excess_bits: int) -> str:
    """Return what would fit, in words."""
    choices = []
    plane_bits, host_bits = (planes - 1).bit_length(), (most_nics + 2).bit_length()
    if plane_bits >= excess_bits:
        choices.append(f"at most {1 << (plane_bits - excess_bits)} planes")
    if host_bits - excess_bits >= _FEWEST_HOST_BITS:
        choices.append(f"at most {(1 << (host_bits - excess_bits)) - 3} NICs a switch")
    choices.append(f"levels of a {1 << excess_bits}th of the switches" if excess_bits > 1 else "half the switches")
    return " or ".join(choices)


def _networks(ipv4: IPv4Address, ipv4_length: int, ipv6: IPv6Address, ipv6_length: int) -> Networks:
    return (
        IPv4Network((int(ipv4), ipv4_length), strict=False),
        IPv6Network((int(ipv6), ipv6_length), strict=False),
    )


def _mac(kind: int, ipv4: int) -> str:
    """Return a locally administered MAC: the kind, then the last three octets of the IPv4 address."""
    low = ipv4 & 0xFFFFFF
    return f"02:{kind:02x}:{low >> 16:02x}:{low >> 8 & 0xFF:02x}:{low & 0xFF:02x}:00"
