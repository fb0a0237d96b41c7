"""A switch's notification of a queue to the sender of a packet that met it (docs/spec/host-transports.md)."""

from __future__ import annotations

from weft.wire.fields import Field, Header, reserved

NOTIFICATION_UDP_PORT = 0x4570
"""IANA has assigned it to nobody."""
NOTIFICATION_VERSION = 1
LAST_WINDOW, FIRST_WINDOW = 0x20, 0x10
"""Two of the bits that the BTH reserves, set in packets of a flow's last and first window."""

SWITCH_NOTIFICATION = Header(
    "SwitchNotification",
    "Switch notification",
    "docs/spec/host-transports.md",
    (
        Field("version", 8, default=NOTIFICATION_VERSION, is_fixed=True),
        Field("queue_pair", 24, "the packet's destination", notation="hexadecimal"),
        reserved(8),
        Field("psn", 24, "the packet's", label="Packet sequence number"),
        Field("queue_bytes", 32, "that the packet left behind in its queue"),
        Field("rate_mbps", 32, "of the queue's port, in Mb/s", label="Rate (Mb/s)"),
    ),
    p4="notification_t",
)
