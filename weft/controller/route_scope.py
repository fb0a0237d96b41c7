"""The addresses for which switches need routes; fewer routes make set-up faster and take less memory."""

from __future__ import annotations

from dataclasses import dataclass

from weft.topologies.addressing import IpVersion


@dataclass(frozen=True)
class RouteScope:
    """The addresses for which switches need routes.

    Attributes:
        ip_versions: IP versions of the packets.
        is_compact: whether switches without hosts are no destinations, and neighbouring prefixes with the same next
            hops share one entry. Hosts and the switches above them are reached as before.

    """

    ip_versions: tuple[IpVersion, ...] = (4, 6)
    is_compact: bool = False


ALL_ROUTES = RouteScope()
"""Routes to every address, one entry for each subnet: for packets and entries that Weft cannot foresee."""
