"""Switches' entries for a group with a parameter store: the port of each member, and the cached blocks."""

from __future__ import annotations

from dataclasses import dataclass

from weft.controller.entities import Entity, entry
from weft.controller.features.kind import Feature, OfSwitch, Settings
from weft.topologies import FabricSpec, SwitchSpec
from weft.topologies.addressing import IpVersion

MAX_CACHED_BLOCKS = 4096
"""Blocks that a switch can cache (CACHE_ENTRIES in p4/include/services/parameter_cache.p4)."""


@dataclass(frozen=True)
class ParameterGroup:
    """A parameter store and its clients, in order of their numbers, in one plane.

    Attributes:
        group_id: id in packets.
        epoch: epoch of the group's present use; blocks cached in another epoch count as empty.
        q_key: Queue Key of all its packets, its secret.
        store: name of the store's host.
        clients: names of the clients' hosts.
        plane: number of the plane.
        cached_blocks: number of first blocks that the store's switch caches.
        ip_version: IP version of its packets.

    """

    group_id: int
    epoch: int
    q_key: int
    store: str
    clients: tuple[str, ...]
    plane: int
    cached_blocks: int
    ip_version: IpVersion


@dataclass(frozen=True)
class ParameterCacheSettings:
    """Groups with a parameter store, for a program with caches."""

    groups: tuple[ParameterGroup, ...] = ()


def _entities(fabric: FabricSpec, settings: Settings) -> OfSwitch:
    groups = settings.of(ParameterCacheSettings).groups

    def of_switch(switch: SwitchSpec) -> list[Entity]:
        return [
            entity
            for group in groups
            if switch.plane == group.plane and switch.host_ports
            for entity in _of_group(fabric, group, switch)
        ]

    return of_switch


def _of_group(fabric: FabricSpec, group: ParameterGroup, switch: SwitchSpec) -> list[Entity]:
    """Return the entries of a switch with hosts; ports of non-members get none, so they cannot send to the group."""
    nic = fabric.host(group.store).nic(fabric.first_nics[group.plane])
    address = (nic.ipv4 if group.ip_version == 4 else nic.ipv6).ip
    found: list[Entity] = [
        entry(
            "parameter_group",
            {"group_id": group.group_id},
            "set_parameter_group",
            queue_key=group.q_key,
            epoch=group.epoch,
            cached_blocks=group.cached_blocks if nic.switch == switch.name else 0,
            store_address=int(address),
        )
    ]
    numbers = {name: number for number, name in enumerate(group.clients)}
    for port in switch.ports:
        match = {"group_id": group.group_id, "port": port.number}
        if not port.peer_is_host:
            found.append(entry("parameter_port", match, "parameter_transit"))
        elif port.peer.node == group.store:
            found.append(entry("parameter_port", match, "parameter_store"))
        elif port.peer.node in numbers:
            found.append(entry("parameter_port", match, "parameter_client", number=numbers[port.peer.node]))
    return found


KIND = Feature(
    name="parameter cache",
    summary="Groups with a parameter store; its switch answers for cached blocks.",
    tables=("parameter_group", "parameter_port"),
    entities=_entities,
)
