"""How devices and addresses are named by verbs."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address


def eui64(mac: str) -> int:
    """Return the EUI-64 of a MAC, by which devices are known."""
    octets = bytes.fromhex(mac.replace(":", ""))
    return int.from_bytes(bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:])


def gid_of(address: IPv4Address | IPv6Address) -> bytes:
    """Return the 16 bytes of a RoCEv2 GID; IPv4 addresses are mapped into IPv6."""
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed
