"""SRv6 with compressed segments (uSIDs; RFC 9800, flavour NEXT-C-SID): the sender lists the switches on the way.

Each switch has a uSID, its device id. Its table has an entry for each neighbour and each port to a host. Nothing
changes after a failure: senders leave a dead path themselves (MRC; arXiv 2605.04333). Other traffic takes one shortest
path to each prefix, which does not change either. The wire format is in docs/spec/srv6.md.
"""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network

from weft.controller.entities import Entity, default_action, entry, mac_number
from weft.controller.routing.ev_paths import EvOfPath, EvRoute, EvRoutesKind
from weft.controller.routing.kind import RoutingKind
from weft.controller.routing.shortest_paths import KIND as SHORTEST_PATHS
from weft.controller.routing.static_paths import StaticPaths, most_switches
from weft.topologies import FabricSpec, Path, SwitchSpec

BLOCK = IPv6Network("fcbb:bb00::/32")
"""Locator block of all uSIDs (SRV6_BLOCK in p4/include/ev_routes/srv6_parser.p4)."""
USID_BITS = 16
MOST_USIDS = (128 - BLOCK.prefixlen) // USID_BITS
FIRST_LOCAL_USID = 0xE000
"""uSIDs from here on mean something to one switch alone: here, its ports to hosts. Those below name switches."""
FIRST_EV_PORT = 0xC000
"""UDP source port of the EV of path 0, the first of the range of dynamic ports."""


def usid_of(switch: SwitchSpec) -> int:
    """Return a switch's uSID."""
    return switch.device_id


def usids(fabric: FabricSpec, path: Path) -> list[int]:
    """Return the uSIDs of a path between hosts: the switches' and the last switch's port's."""
    switches = (fabric.switch(name) for name in path.nodes[1:-1])
    return [*map(usid_of, switches), FIRST_LOCAL_USID + path.hops[-1].port]


def address_of(listed: list[int]) -> IPv6Address:
    """Return the outer destination that lists these uSIDs."""
    number = int(BLOCK.network_address)
    for place, usid in enumerate(listed, start=1):
        number |= usid << 128 - BLOCK.prefixlen - place * USID_BITS
    return IPv6Address(number)


def _routes(fabric: FabricSpec) -> EvOfPath:
    def of_path(path: Path, number: int) -> EvRoute:
        return (FIRST_EV_PORT + number) << 16, str(address_of(usids(fabric, path)))

    return of_path


class Srv6(StaticPaths):
    """The routes of a plane."""

    def _own_entities(self, switch: SwitchSpec) -> list[Entity]:
        entities: list[Entity] = [default_action("own_usid_of_switch", "set_usid", usid=usid_of(switch))]
        for port in switch.ports:
            if port.peer_is_host:
                usid, action = FIRST_LOCAL_USID + port.number, "to_host"
                mac = self._fabric.host(port.peer.node).nic(port.peer.port).mac
            else:
                peer = self._fabric.switch(port.peer.node)
                usid, action, mac = usid_of(peer), "to_switch", peer.mac
            entities.append(
                entry(
                    "next_usid",
                    {"usid": usid},
                    action,
                    port=port.number,
                    source_mac=mac_number(switch.mac),
                    destination_mac=mac_number(mac),
                )
            )
        return entities


def _objection(fabric: FabricSpec) -> str:
    if fabric.circuits is not None:
        return "circuits change the links that paths name"
    if (most := max(switch.device_id for switch in fabric.switches)) >= FIRST_LOCAL_USID:
        return f"it has {most} switches (valid: at most {FIRST_LOCAL_USID - 1}, one for each uSID)"
    for switch in fabric.switches:
        peers = [port.peer.node for port in switch.fabric_ports]
        if len(peers) != len(set(peers)):
            return f"parallel links lead from {switch.name} to a neighbour, and a uSID names the neighbour alone"
    if (switches := max(most_switches(fabric, plane) for plane in range(fabric.planes))) + 1 > MOST_USIDS:
        return (
            f"a path goes over {switches} switches (valid: at most {MOST_USIDS - 1}; an address has room for "
            f"{MOST_USIDS} uSIDs, of which the host takes one)"
        )
    return ""


KIND = RoutingKind(
    name="srv6",
    summary="static tables of SRv6 uSIDs: hosts name each packet's path",
    tables=("ipv4_lpm", "ipv6_lpm", "own_usid_of_switch", "next_usid"),
    plane=Srv6,
    objection=_objection,
    is_deadlock_free=SHORTEST_PATHS.is_deadlock_free,
    macro="SRV6",
    ev_routes=EvRoutesKind(encapsulates=True, routes=_routes),
)
