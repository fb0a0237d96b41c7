"""Scapy layer of switches' notifications of queues (docs/spec/host-transports.md)."""

from __future__ import annotations

from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_layers

from weft.traffic.layers.made_fields import fields_of
from weft.wire.headers.notification import NOTIFICATION_UDP_PORT, SWITCH_NOTIFICATION


class SwitchNotification(Packet):
    """The queue that a packet of this queue pair and sequence number left behind, and the rate of its port."""

    name = "SwitchNotification"
    fields_desc = fields_of(SWITCH_NOTIFICATION)


bind_layers(UDP, SwitchNotification, dport=NOTIFICATION_UDP_PORT)
