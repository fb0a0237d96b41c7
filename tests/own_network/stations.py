"""A host that sends frames at given times, and prints in hexadecimal what it sees."""

import weft


class Station(weft.ScriptedHost):
    """`frames` are pairs of a time in picoseconds and a frame in hexadecimal, from Ethernet on."""

    def __init__(self, frames=()):
        self.frames = frames

    def on_start(self):
        for time_ps, frame in self.frames:
            self.send(bytes.fromhex(frame), at=time_ps)

    def on_packet(self, packet):
        self.print(bytes(packet).hex())
