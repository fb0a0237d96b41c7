"""Access list: permit, deny or punt packets by port, EtherType, addresses, protocol and ports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Literal

import finsy

from weft.controller.errors import SettingError
from weft.controller.features.kind import Feature, OfSwitch, Settings
from weft.topologies import FabricSpec

TABLE = "acl"
AclAction = Literal["permit", "deny", "punt"]
_ACTIONS = ("permit", "deny", "punt")
_ADDRESS_BITS = 128
_ALL_ONES = (1 << _ADDRESS_BITS) - 1


@dataclass(frozen=True)
class AclRule:
    """A rule; None matches anything, the highest priority wins, `punt` sends packets to the controller."""

    priority: int
    action: AclAction
    port: int | None = None
    ether_type: int | None = None
    source: IPv4Network | IPv6Network | None = None
    destination: IPv4Network | IPv6Network | None = None
    protocol: int | None = None
    source_port: int | None = None
    destination_port: int | None = None

    def __post_init__(self) -> None:
        if self.action not in _ACTIONS:
            raise SettingError(f"unknown access list action {self.action!r}", valid=_ACTIONS)
        if self.priority < 1:
            raise SettingError(f"access list priority {self.priority} is out of range", valid="1 or more")


@dataclass(frozen=True)
class AclSettings:
    """The access list of every switch."""

    rules: tuple[AclRule, ...] = ()


def acl_entities(rules: Iterable[AclRule]) -> list[finsy.P4TableEntry]:
    """Return the entries of `acl`."""
    return [
        finsy.P4TableEntry(TABLE, match=_match(rule), action=finsy.P4TableAction(rule.action), priority=rule.priority)
        for rule in rules
    ]


def _match(rule: AclRule) -> finsy.P4TableMatch:
    match = {
        name: value
        for name in ("port", "ether_type", "protocol", "source_port", "destination_port")
        if (value := getattr(rule, name)) is not None
    }
    for name, network in (("source", rule.source), ("destination", rule.destination)):
        if network is not None:
            match[name] = _address(network)
    return finsy.P4TableMatch(match)


def _address(network: IPv4Network | IPv6Network) -> tuple[int, int]:
    """Return value and mask; the program pads IPv4 addresses to 128 bits with leading zeros."""
    host_bits = network.max_prefixlen - network.prefixlen
    return int(network.network_address), _ALL_ONES >> host_bits << host_bits


def _entities(_fabric: FabricSpec, settings: Settings) -> OfSwitch:
    entries = acl_entities(settings.of(AclSettings).rules)
    return lambda _switch: entries


KIND = Feature(name="acl", summary="Access list of every switch.", tables=(TABLE,), entities=_entities)
