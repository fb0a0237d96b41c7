"""The name of a host's RDMA device, and its ports, taken from the host's NICs."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from weft.topologies import HostSpec

DEVICE = "weft0"
UVERBS = "uverbs0"
MODALIAS = "weft:nic"
"""By which the provider (`verbs/provider/`) knows the device."""

_GIGABIT = 10**9


@dataclass(frozen=True)
class LinkSpeed:
    """A port's width and speed as InfiniBand names them: `lanes` lanes of `lane_bps` each."""

    lanes: int
    name: str
    lane_bps: int

    @property
    def rate_bps(self) -> int:
        """The port's rate."""
        return self.lanes * self.lane_bps


_SPEEDS = (
    LinkSpeed(1, "SDR", 5 * _GIGABIT // 2),
    LinkSpeed(1, "FDR10", 10 * _GIGABIT),
    LinkSpeed(4, "DDR", 5 * _GIGABIT),
    LinkSpeed(1, "EDR", 25 * _GIGABIT),
    LinkSpeed(4, "FDR10", 10 * _GIGABIT),
    LinkSpeed(1, "HDR", 50 * _GIGABIT),
    LinkSpeed(4, "EDR", 25 * _GIGABIT),
    LinkSpeed(4, "HDR", 50 * _GIGABIT),
    LinkSpeed(4, "NDR", 100 * _GIGABIT),
    LinkSpeed(8, "NDR", 100 * _GIGABIT),
)
"""As Linux names the rates of Ethernet ports (drivers/infiniband/core/verbs.c, ib_get_eth_speed), in order of rates."""


def link_speed(rate_bps: int) -> LinkSpeed:
    """Return the slowest speed with a name that is no slower than a rate; the fastest if none is."""
    return next((each for each in _SPEEDS if each.rate_bps >= rate_bps), _SPEEDS[-1])


def eui64(mac: str) -> bytes:
    """Return the 8 bytes of a MAC's EUI-64, the GUID of a device with this port first."""
    octets = bytes.fromhex(mac.replace(":", ""))
    return bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]


def guid(mac: str) -> str:
    """Return the EUI-64 of a MAC, as sysfs writes GUIDs: `0200:00ff:fe00:0001`."""
    return _in_groups(eui64(mac))


def gid_bytes(address: IPv4Address | IPv6Address) -> bytes:
    """Return the 16 bytes of a RoCEv2 GID; IPv4 addresses are mapped into IPv6."""
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed


def gid(address: IPv4Address | IPv6Address) -> str:
    """Return a RoCEv2 GID, as sysfs writes it."""
    return _in_groups(gid_bytes(address))


def _in_groups(octets: bytes) -> str:
    return octets.hex(":", 2)


@dataclass(frozen=True)
class Port:
    """A port of the device, counted from 1: a NIC of the host.

    Attributes:
        number: its number.
        interface: the network interface of the same NIC, by its name in the host.
        mac: the NIC's MAC.
        rate_bps: the rate of its link, in emulated time.
        addresses: the addresses of its GIDs, by GID index.
    """

    number: int
    interface: str
    mac: str
    rate_bps: int
    addresses: tuple[IPv4Address | IPv6Address, ...]


@dataclass(frozen=True)
class Device:
    """The RDMA device of a host; its GUID is the first port's."""

    host: str
    ports: tuple[Port, ...]

    @property
    def guid(self) -> str:
        """The node's GUID, as sysfs writes it."""
        return guid(self.ports[0].mac)


def device_of(host: HostSpec) -> Device:
    """Return a host's device: a port for each NIC, its first GID from its IPv4 address, its second from IPv6."""
    ports = [
        Port(nic.number + 1, nic.interface, nic.mac, nic.link.rate_bps, (nic.ipv4.ip, nic.ipv6.ip)) for nic in host.nics
    ]
    return Device(host.name, tuple(ports))
