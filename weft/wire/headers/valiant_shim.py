"""The shim of a route by an intermediate, between Ethernet and all else (docs/spec/frames.md)."""

from __future__ import annotations

from weft.wire.fields import Field, Header, reserved
from weft.wire.headers.int_shim import INT_ETHERTYPE
from weft.wire.headers.network import IPV4_ETHERTYPE, IPV6_ETHERTYPE

VALIANT_ETHERTYPE = 0x88B6
"""IEEE's second for local experiments; frames to `mac_control.MAC_CONTROL_ADDRESS` are credit updates."""
VALIANT_VERSION = 1

VALIANT_SHIM = Header(
    "ValiantShim",
    "Shim of routes by intermediates",
    "docs/spec/frames.md",
    (
        Field("version", 4, default=VALIANT_VERSION, is_fixed=True),
        reserved(12),
        Field("intermediate", 16, "number of the switch or group, as the controller has given it"),
        Field(
            "next_ethertype",
            16,
            default=IPV4_ETHERTYPE,
            values={IPV4_ETHERTYPE: "IPv4", IPV6_ETHERTYPE: "IPv6", INT_ETHERTYPE: "INT shim"},
            notation="hexadecimal",
            label="Next EtherType",
        ),
    ),
    p4="valiant_shim_t",
)
