"""Two hosts written with Scapy: one asks, the other answers in upper case."""

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

import weft

PORT = 7777
INTERVAL_PS = 10_000_000


class Asker(weft.ScriptedHost):
    """Asks every 10 µs, and reports how long answers took."""

    def __init__(self, questions: int = 1) -> None:
        self.questions = questions
        self.took_ps: list[int] = []

    def on_start(self) -> None:
        """Ask, and wait for answers."""
        for number in range(self.questions):
            self.send(self.question(number), at=number * INTERVAL_PS)
        self.sniff(self.on_answer, lfilter=lambda packet: UDP in packet and packet[UDP].sport == PORT)

    def question(self, number: int) -> Packet:
        """Return a question, which switches route."""
        peer = self.host.peers["h3"]
        return (
            Ether(src=self.host.mac, dst=self.host.gateway_mac)
            / IP(src=self.host.ipv4, dst=peer.ipv4)
            / UDP(sport=5000 + number, dport=PORT)
            / f"question {number}".encode()
        )

    def on_answer(self, packet: Packet) -> None:
        """Note how long it took."""
        number = packet[UDP].dport - 5000
        self.took_ps.append(self.now - number * INTERVAL_PS)
        self.print(packet[Raw].load.decode())
        if len(self.took_ps) == self.questions:
            self.finish()

    def on_end(self) -> None:
        """Report."""
        self.report("answers", len(self.took_ps))
        self.report("slowest_us", max(self.took_ps, default=0) / 1e6)


class Answerer(weft.ScriptedHost):
    """Sends back what it is asked, in upper case."""

    def on_packet(self, packet: Packet) -> None:
        """Answer what came to the port."""
        if UDP in packet and packet[UDP].dport == PORT:
            self.answer(packet, packet[Raw].load.upper())
