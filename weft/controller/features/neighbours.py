"""ARP and neighbour discovery, answered in the data plane.

A switch answers for its own address and, with its own MAC, for the attached hosts (RFC 1027, proxy ARP): hosts of a
leaf share a subnet, but the leaf routes all their packets.
"""

from __future__ import annotations

from collections.abc import Collection

import finsy

from weft.controller.entities import entry, mac_number
from weft.controller.features.kind import Feature, OfSwitch, Settings
from weft.controller.route_scope import ALL_ROUTES
from weft.topologies import FabricSpec, SwitchSpec
from weft.topologies.addressing import IpVersion


def neighbour_entities(
    fabric: FabricSpec, switch: SwitchSpec, versions: Collection[IpVersion] = ALL_ROUTES.ip_versions
) -> list[finsy.P4TableEntry]:
    """Return the entries of `arp_responder` and `nd_responder`, of these IP versions."""
    nics = [fabric.host(port.peer.node).nic(port.peer.port) for port in switch.host_ports]
    ipv4 = [switch.address, *(nic.ipv4.ip for nic in nics)] if 4 in versions else []
    ipv6 = [switch.ipv6, *(nic.ipv6.ip for nic in nics)] if 6 in versions else []
    mac = mac_number(switch.mac)
    return [
        *(entry("arp_responder", {"target_ipv4": address}, "arp_reply", mac=mac) for address in ipv4),
        *(entry("nd_responder", {"target_ipv6": address}, "nd_reply", mac=mac) for address in ipv6),
    ]


def _entities(fabric: FabricSpec, settings: Settings) -> OfSwitch:
    return lambda switch: neighbour_entities(fabric, switch, settings.routes.ip_versions)


KIND = Feature(
    name="neighbours",
    summary="Answers to ARP and neighbour discovery.",
    tables=("arp_responder", "nd_responder"),
    entities=_entities,
)
