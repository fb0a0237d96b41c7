"""A host's own IP stack, for whatever is not RoCEv2; hosts of the real clock have their kernel's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_interface, ip_network

from weft.engine import IpStack, Nic

DEFAULT_QUEUE_PACKETS = 1000
"""Linux's txqueuelen."""


@dataclass(frozen=True)
class IpNicConfig:
    """How a NIC takes part in IP.

    `addresses` have prefixes, which are on the link; `routes` map prefixes to the addresses of gateways. `neighbours`
    are static entries, MACs by address. `mtu_bytes` limits IP packets; `queue_packets` may wait in each class.
    """

    addresses: tuple[str, ...]
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
        for address in config.addresses:
            on_link = ip_interface(address).network
            stack.add_route(str(on_link.network_address), on_link.prefixlen, interface=port)
        for prefix, gateway in config.routes.items():
            network = ip_network(prefix)
            stack.add_route(str(network.network_address), network.prefixlen, interface=port, gateway=gateway)
        for address, mac in config.neighbours.items():
            stack.add_neighbour(address, mac, interface=port)
    return stack
