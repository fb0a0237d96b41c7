"""A switch's identity, and the priority class of each DSCP."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import finsy

from weft.controller.entities import default_action, entry
from weft.controller.features.kind import DEFAULT_HASH_SEED, Feature, OfSwitch, Settings
from weft.controller.features.load_balancing import DEFAULT_LOAD_BALANCING, LoadBalancingSettings
from weft.controller.routing import ROUTING_KINDS
from weft.quantities.traffic_classes import CONTROL_CLASS, DATA_CLASS, DSCP_OF_CLASS
from weft.topologies import FabricSpec, SwitchSpec

FLOW = LoadBalancingSettings()
SWITCH_ID_BITS = 12


@dataclass(frozen=True)
class TrafficClassSettings:
    """Data classes that switches distinguish by DSCP."""

    data: tuple[int, ...] = (DATA_CLASS,)
    of_transport: tuple[tuple[int, int], ...] = ()
    """Code points of the hosts' transport alone, each with its class."""


@dataclass(frozen=True)
class MoreClassSettings:
    """Further DSCPs that switches map to a class, each with that class."""

    classes: tuple[tuple[int, int], ...] = ()


def switch_id(switch: SwitchSpec) -> int:
    """Return the id that INT carries: the low 12 bits of the device id, the width of HPCC's path id."""
    # Ids repeat beyond 4,096 switches; a flow's planned paths tell equal ids apart (planned_paths.py).
    return switch.device_id % (1 << SWITCH_ID_BITS)


def hash_seed(switch: SwitchSpec, drawn_by: int) -> int:
    """Return the 32-bit seed of a switch's ECMP hash, derived from a seed and the switch's name."""
    # Not a CRC: with it, changing the seed would change all switches' seeds by the same difference.
    text = f"{drawn_by} {switch.name}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")


def identity_entities(
    switch: SwitchSpec,
    balancing: LoadBalancingSettings = FLOW,
    *,
    hashes_drawn_by: int = DEFAULT_HASH_SEED,
    has_intermediates: bool = False,
    compares_queues: bool = False,
) -> list[finsy.P4TableEntry]:
    """Return the default action of `identity`: id, hash seed, MAC, addresses, and parameters of path choices."""
    return [
        default_action(
            "identity",
            "set_identity",
            switch_id=switch_id(switch),
            hash_seed=hash_seed(switch, hashes_drawn_by),
            mac=switch.mac,
            ipv4=switch.address,
            ipv6=switch.ipv6,
            balances_load=int(balancing.mode != DEFAULT_LOAD_BALANCING),
            reports_queue_depths=int(balancing.is_adaptive or compares_queues),
            reports_port_depths=int(compares_queues),
            has_intermediates=int(has_intermediates),
        )
    ]


def class_by_dscp(data: Iterable[int] = (DATA_CLASS,)) -> dict[int, int]:
    """Return the class of each DSCP that hosts use, for data and for acknowledgements and CNPs; others get class 0."""
    return {DSCP_OF_CLASS[number]: number for number in (*data, CONTROL_CLASS)}


@cache
def class_entities(
    data: tuple[int, ...] = (DATA_CLASS,), more: tuple[tuple[int, int], ...] = ()
) -> tuple[finsy.P4TableEntry, ...]:
    """Return every switch's entries of `class_map` and `class_map_ipv6` for data classes and further (DSCP, class)."""
    classes = class_by_dscp(data) | dict(more)
    return tuple(
        entry(table, {"dscp": dscp}, "set_class", **{"class": priority_class})
        for table in ("class_map", "class_map_ipv6")
        for dscp, priority_class in classes.items()
    )


def _entities(fabric: FabricSpec, settings: Settings) -> OfSwitch:
    balancing = settings.of(LoadBalancingSettings)
    found = ROUTING_KINDS.named(settings.routing).intermediates_of(fabric, 0)
    compares_queues = found is not None and found.compares_queues
    traffic = settings.of(TrafficClassSettings)
    more = (*traffic.of_transport, *settings.of(MoreClassSettings).classes)
    classes = class_entities(traffic.data, more)
    return lambda switch: (
        *identity_entities(
            switch,
            balancing,
            hashes_drawn_by=settings.hash_seed,
            has_intermediates=found is not None,
            compares_queues=compares_queues,
        ),
        *classes,
    )


KIND = Feature(
    name="identity",
    summary="A switch's identity, and the class of each DSCP.",
    tables=("identity", "class_map", "class_map_ipv6"),
    entities=_entities,
)
