"""Networks from p4lang/tutorials' topology.json and p4-utils' p4app.json, with the names and ports given there."""

from __future__ import annotations

from weft.topologies.networks.model import Network, NetworkHost, NetworkLink, NetworkSwitch, SwitchSetup
from weft.topologies.networks.reading import is_network_file, read_network

__all__ = [
    "Network",
    "NetworkHost",
    "NetworkLink",
    "NetworkSwitch",
    "SwitchSetup",
    "is_network_file",
    "read_network",
]
