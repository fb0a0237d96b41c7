"""The largest packets of a run against what links carry."""

from __future__ import annotations

from weft.scenario.options import FabricOptions
from weft.scenario.places import KeyProblem
from weft.traffic.aggregation_format import frame_bytes
from weft.traffic.header_sizes import ETHERNET, largest_frame_bytes


def check_packet(options: FabricOptions, key: str, packet_bytes: int) -> None:
    """Raise KeyProblem for `key`, which makes IP packets so large, if that is more than what links carry."""
    if packet_bytes > options.link_mtu_bytes:
        raise KeyProblem(
            key,
            f"makes IP packets of {packet_bytes} B",
            valid=f"at most {options.link_mtu_bytes} B, which is link_mtu",
        )


def check_link_mtu(options: FabricOptions) -> None:
    """Raise KeyProblem if a full RoCEv2 or aggregation packet is larger than what links carry.

    A link's MTU counts all behind the Ethernet header, so INT's shim, too (RFC 894).
    """
    roce_bytes = largest_frame_bytes(options.ip_version, options.mtu_bytes) - ETHERNET
    lanes = options.aggregation.lane_count
    aggregation_bytes = frame_bytes(options.ip_version, lanes) - ETHERNET
    for key, packet_bytes, what in (
        ("mtu", roce_bytes, f"a RoCEv2 packet of {options.mtu_bytes} B payload"),
        ("aggregation.lanes", aggregation_bytes, f"an aggregation packet of {lanes} lanes"),
    ):
        if packet_bytes > options.link_mtu_bytes:
            raise KeyProblem(
                key,
                f"{what} takes {packet_bytes} B of a link's MTU",
                valid=f"at most {options.link_mtu_bytes} B, which is link_mtu",
            )
