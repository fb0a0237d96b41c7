"""HPCC's INT in a shim between Ethernet and IP (docs/spec/frames.md).

After Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, section 4.1.
"""

from __future__ import annotations

from weft.wire.fields import Field, Header, Repeated, reserved
from weft.wire.headers.network import IPV4_ETHERTYPE, IPV6_ETHERTYPE

INT_ETHERTYPE = 0x88B5
INT_VERSION = 1
INT_HOP_SLOTS = 5
STANDARD_RATES_GBPS = (0, 1, 10, 25, 40, 50, 100, 200, 400, 800, 1600)
"""By rate code, 0 for an unknown one. A fabric gives the other codes to rates of its own."""
_SOURCE = "docs/spec/frames.md, after HPCC (SIGCOMM 2019), 4.1"

INT_HOP = Header(
    "IntHop",
    "A switch's stamp in the INT shim",
    _SOURCE,
    (
        Field(
            "rate_code",
            4,
            "of the port's rate in bit/s",
            values={code: f"{gbps}G" if gbps else "unknown" for code, gbps in enumerate(STANDARD_RATES_GBPS)},
            is_closed=False,
        ),
        Field("timestamp_ns", 24, "when the packet left the queue; wraps", label="Timestamp (ns, modulo 2^24)"),
        Field(
            "tx_units",
            20,
            "sent by the port before this packet; wraps",
            unit_bytes=128,
            label="Bytes sent by the port (modulo 2^27)",
        ),
        Field(
            "queue_cells",
            16,
            "left behind in the queue; saturates",
            unit_bytes=80,
            label="Queue left behind (bytes)",
        ),
    ),
    p4="int_hop_t",
)

INT_SHIM = Header(
    "IntShim",
    "INT shim",
    _SOURCE,
    (
        Field("version", 4, default=INT_VERSION, is_fixed=True),
        Field(
            "echo",
            1,
            "1: the stack is a receiver's echo in an ACK or NAK; switches do not stamp it",
            label="Echo of the receiver",
        ),
        Field("overflow", 1, "there was no room for a sixth hop", label="A hop found no room"),
        reserved(2),
        Field("hop_slots", 8, default=INT_HOP_SLOTS, is_fixed=True),
        Field(
            "next_ethertype",
            16,
            default=IPV4_ETHERTYPE,
            values={IPV4_ETHERTYPE: "IPv4", IPV6_ETHERTYPE: "IPv6"},
            notation="hexadecimal",
            label="Next EtherType",
        ),
        Field("hop_count", 4, "hops stamped (nHop)", label="Hops stamped"),
        Field("path_id", 12, "XOR of the 12-bit ids of the switches passed", notation="hexadecimal"),
        Repeated("hops", INT_HOP, INT_HOP_SLOTS, counted_by="hop_slots"),
    ),
    p4="int_shim_t",
)
