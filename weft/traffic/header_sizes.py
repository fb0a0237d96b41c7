"""Sizes of the headers of RoCEv2 frames, in bytes (InfiniBand Architecture 1.4, volume 1, annexes A16 and A17)."""

from __future__ import annotations

from weft.topologies.addressing import IpVersion

ETHERNET = 14
INT_SHIM = 46
"""Weft's, with five hops."""
VALIANT_SHIM = 6
"""Between switches, while a packet goes to its intermediate."""
IP: dict[IpVersion, int] = {4: 20, 6: 40}
UDP = 8
BTH = 12
RETH = 16
AETH = 4
IMMEDIATE = 4
ICRC = 4
PAD = 4
"""A payload is padded to a multiple of this (InfiniBand Architecture, 9.2.4)."""


def overhead_bytes(ip_version: IpVersion, int_telemetry: bool) -> int:
    """Return what a frame has besides extended headers and payload."""
    return ETHERNET + (INT_SHIM if int_telemetry else 0) + IP[ip_version] + UDP + BTH + ICRC


def largest_frame_bytes(ip_version: IpVersion, mtu_bytes: int) -> int:
    """Return the largest frame of an RDMA WRITE: alone in its message, with an immediate and INT."""
    return overhead_bytes(ip_version, int_telemetry=True) + RETH + IMMEDIATE + mtu_bytes
