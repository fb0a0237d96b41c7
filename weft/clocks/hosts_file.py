"""Names of a fabric's nodes, as programs in its hosts look them up."""

from __future__ import annotations

from weft.topologies import FabricSpec

_LOCAL_NAMES = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"


def hosts_file(fabric: FabricSpec) -> str:
    """Return an /etc/hosts: a host's name stands for its first NIC; interfaces and switches have their own names.

    IPv6 addresses have the same names after `ip6-`.
    """
    lines = [_LOCAL_NAMES]
    for host in fabric.hosts:
        for nic in host.nics:
            names = f"{host.name} {nic.interface}" if nic.number == 0 else nic.interface
            lines += [f"{nic.ipv4.ip} {names}\n", f"{nic.ipv6.ip} {_of_ipv6(names)}\n"]
    for switch in fabric.switches:
        lines += [f"{switch.address} {switch.name}\n", f"{switch.ipv6} {_of_ipv6(switch.name)}\n"]
    return "".join(lines)


def _of_ipv6(names: str) -> str:
    """Return names as Debian has them for IPv6's localhost, so that a name alone is always IPv4's."""
    return " ".join(f"ip6-{name}" for name in names.split())
