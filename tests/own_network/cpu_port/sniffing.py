"""A controller at a switch's CPU port, in virtual time."""

from typing import ClassVar

import weft

FRAME = bytes.fromhex("020000000002020000000001") + (0x1235).to_bytes(2, "big") + (2).to_bytes(2, "big") + bytes(46)
"""For the switch's port 2."""


class Sniffing(weft.Controller):
    """Sends a frame to h2, and keeps what comes; `log` is the class's, where tests look."""

    log: ClassVar = []

    def on_start(self, switch):
        switch.packet_out(FRAME)

    def on_packet_in(self, switch, packet):
        counted = {port: switch.read_counter("received", port).packets for port in (1, 2, 3)}
        self.log.append((switch.name, dict(packet.metadata), packet.payload, counted))


class Asking(weft.Controller):
    """Gives a packet fields that the program has not."""

    def on_start(self, switch):
        switch.packet_out(FRAME, egress_port=2)
