"""A host that sends probes, and one that prints what switches have written into them."""

import struct

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

import weft

PROBE_PORT = 7000
HOPS = 2
HOP = struct.Struct("!BHIII")
"""Switch, port, packets that waited when the probe came, and when it left, and how long it waited in microseconds."""
SECOND_PS = 10**12


class Prober(weft.ScriptedHost):
    """Sends `count` probes to h2, one every `interval_ms`, the first after one interval."""

    def __init__(self, count: int = 10, interval_ms: int = 100) -> None:
        self.count, self.interval_ps = count, interval_ms * SECOND_PS // 1000

    def on_start(self) -> None:
        """Send them all."""
        for number in range(1, self.count + 1):
            self.send(self.probe(), at=number * self.interval_ps)

    def probe(self) -> Packet:
        """Return a probe with room for its hops."""
        return (
            Ether(src=self.host.mac, dst=self.host.gateway_mac)
            / IP(src=self.host.ipv4, dst=self.host.peers["h2"].ipv4)
            / UDP(sport=PROBE_PORT, dport=PROBE_PORT, chksum=0)
            / Raw(bytes(1 + HOPS * HOP.size))
        )


class Listener(weft.ScriptedHost):
    """Prints each probe's path with its queues."""

    def on_packet(self, packet: Packet) -> None:
        """Print a probe's hops."""
        if UDP in packet and packet[UDP].dport == PROBE_PORT:
            hops = HOP.iter_unpack(packet[Raw].load[1 : 1 + HOPS * HOP.size])
            self.print("; ".join(map(in_words, hops)))


def in_words(hop: tuple[int, ...]) -> str:
    """Return what a switch has written."""
    switch, port, met, left, waited_us = hop
    return f"s{switch}:{port} met {met}, left {left}, waited {waited_us} us"
