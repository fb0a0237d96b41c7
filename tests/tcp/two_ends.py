"""Two TCP machines and what lies between them: segments that are lost, doubled, delayed and marked as a test says."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from weft.engine._core import TcpConnection, read_tcp_segment

MILLISECOND_PS = 10**9
SECOND_PS = 10**12
FIN, SYN, RST, PSH, ACK, ECE, CWR = 1, 2, 4, 8, 16, 64, 128
CONGESTION_EXPERIENCED = 3


@dataclass(order=True)
class Sent:
    """A segment on its way."""

    arrives_ps: int
    number: int
    to: int = field(compare=False)
    segment: bytes = field(compare=False)
    ecn: int = field(compare=False)


Fate = Callable[[int, int, bytes], list[tuple[int, bool]]]
"""By (sender, number of the segment, segment): the delay in picoseconds of each copy, and whether it is marked."""


def arrive_at_once(_sender: int, _number: int, _segment: bytes) -> list[tuple[int, bool]]:
    return [(MILLISECOND_PS, False)]


class TwoEnds:
    """A client (0) and a server (1). `log` has (time, sender, fields, payload, ecn) of every segment sent."""

    def __init__(self, client: TcpConnection, server: TcpConnection, fate: Fate = arrive_at_once) -> None:
        self.ends = [client, server]
        self.fate = fate
        self.now_ps = 0
        self.under_way: list[Sent] = []
        self.sent = 0
        self.log: list[tuple[int, int, dict[str, object], bytes, int]] = []
        self.received = [b"", b""]
        self.on_sent: list[Callable[[int, dict[str, object]], None]] = []
        server.listen()
        client.connect()
        self.collect()

    def collect(self) -> None:
        for sender, end in enumerate(self.ends):
            while (taken := end.take_segment(self.now_ps)) is not None:
                segment, ecn = taken
                fields = dict(read_tcp_segment(segment))
                payload_bytes = int(str(fields["payload_bytes"]))
                payload = segment[len(segment) - payload_bytes :]
                self.log.append((self.now_ps, sender, fields, payload, ecn))
                for notice in self.on_sent:
                    notice(sender, fields)
                for delay_ps, marked in self.fate(sender, self.sent, segment):
                    bits = CONGESTION_EXPERIENCED if marked and ecn else ecn
                    sent = Sent(self.now_ps + delay_ps, self.sent, 1 - sender, segment, bits)
                    heapq.heappush(self.under_way, sent)
                self.sent += 1

    def next_time_ps(self) -> int | None:
        times = [sent.arrives_ps for sent in self.under_way[:1]]
        times += [end.next_deadline_ps for end in self.ends if end.next_deadline_ps is not None]
        return min(times, default=None)

    def step(self) -> bool:
        """Goes to the next event; false when there is none."""
        if (time_ps := self.next_time_ps()) is None:
            return False
        self.now_ps = max(self.now_ps, time_ps)
        if self.under_way and self.under_way[0].arrives_ps <= self.now_ps:
            arrived = heapq.heappop(self.under_way)
            self.ends[arrived.to].on_segment(self.now_ps, arrived.segment, arrived.ecn)
        else:
            for end in self.ends:
                end.on_timer(self.now_ps)
        for number, end in enumerate(self.ends):
            self.received[number] += end.read()
        self.collect()
        return True

    def run(self, until: Callable[[], bool] = lambda: False, most_steps: int = 200_000) -> None:
        for _ in range(most_steps):
            if until() or not self.step():
                return
        raise AssertionError(f"no end after {most_steps} events, at {self.now_ps} ps")

    def run_for(self, duration_ps: int) -> None:
        end_ps = self.now_ps + duration_ps
        while (time_ps := self.next_time_ps()) is not None and time_ps <= end_ps:
            self.step()
        self.now_ps = end_ps

    def establish(self) -> None:
        self.run(lambda: all(end.state == "established" for end in self.ends))
        self.collect()


def sequence_of(segment: bytes) -> int:
    return read_tcp_segment(segment)["sequence"]
