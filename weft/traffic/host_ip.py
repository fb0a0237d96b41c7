"""A host's own IP stack, for whatever is not RoCEv2; hosts of the real clock have their kernel's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_network

from weft.engine import IpStack, Nic

DEFAULT_QUEUE_PACKETS = 1000
"""Linux's txqueuelen."""


@dataclass(frozen=True)
class IpNicConfig:
    """How a NIC takes part in IP.

    The prefixes `on_link` are reached without a gateway; `routes` map prefixes to the addresses of gateways.
    `neighbours` are static entries, MACs by address. `mtu_bytes` limits IP packets; `queue_packets` may wait in each
    class.
    """

    on_link: tuple[str, ...]
    routes: Mapping[str, str] = field(default_factory=dict)
    neighbours: Mapping[str, str] = field(default_factory=dict)
    mtu_bytes: int = 1500
    queue_packets: int = DEFAULT_QUEUE_PACKETS


def make_ip_stack(nic: Nic, interfaces: tuple[IpNicConfig, ...]) -> IpStack:
    """Return a stack with an interface for each NIC port, in order.

    Raises ValueError for an invalid address, prefix or MAC.
    """
    stack = IpStack(nic)
    for port, config in enumerate(interfaces):
        stack.add_interface(port, mtu_bytes=config.mtu_bytes, queue_packets=config.queue_packets)
        for prefix in config.on_link:
            stack.add_route(*_parts(prefix), interface=port)
        for prefix, gateway in config.routes.items():
            stack.add_route(*_parts(prefix), interface=port, gateway=gateway)
        for address, mac in config.neighbours.items():
            stack.add_neighbour(address, mac, interface=port)
    return stack


@lru_cache(maxsize=1 << 12)
def _parts(prefix: str) -> tuple[str, int]:
    """Return the address and the length of a prefix; hosts of a leaf share them. Raises ValueError if it is invalid."""
    network = ip_network(prefix)
    return str(network.network_address), network.prefixlen
