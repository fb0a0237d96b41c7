"""What packets cost at the hosts alone: two NICs on a cable, no switch between them.

    .venv/bin/python benchmarks/bench_hosts.py [--queue-pairs N] [--megabytes N] [--json] [--realtime]

Queue pairs of both hosts write to each other at 100 Gb/s with packets of 1,024 bytes as lengths, a window of one
bandwidth-delay product, and every packet is acknowledged. A packet's cost is that of sending and of receiving it, of
its acknowledgement, and of the port and the link at each end. Subtracted from a fabric's benchmark
(bench_websearch.py), it gives the cost of the switches there.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from figures import Figure, argument_parser, report
from scheduling import pin_this_process

from weft.engine import CompletionQueue, Engine, Link, Nic, RcQueuePair, TransmitPort, make_congestion_control

RATE_BPS = 100_000_000_000
DELAY_PS = 1_000_000
TIMEOUT_PS = 1_000_000_000
MTU_BYTES = 1024
SINK_BYTES = 2**40


class Cable:
    """Two hosts, connected by queue pairs in both directions."""

    def __init__(self, queue_pairs: int, *, telemetry: bool) -> None:
        self.engine = Engine(seed=1)
        links = [Link(self.engine, name=f"link{end}", delay_ps=DELAY_PS) for end in range(2)]
        self.ports = [TransmitPort(self.engine, link, rate_bps=RATE_BPS) for link in links]
        nics = [Nic(self.engine, f"h{end}") for end in range(2)]
        for end, nic in enumerate(nics):
            nic.add_port(self.ports[end], mac=_mac(end), addresses=[_address(end)])
            links[1 - end].connect(nic, 0)
        self.sinks = [nic.register_sink(SINK_BYTES) for nic in nics]
        self.completions = [CompletionQueue(self.engine) for _ in nics]
        self.queue_pairs = [
            [self._queue_pair(nics[end], end, number, telemetry=telemetry) for number in range(queue_pairs)]
            for end in range(2)
        ]

    def _queue_pair(self, nic: Nic, end: int, number: int, *, telemetry: bool) -> RcQueuePair:
        return RcQueuePair(
            nic,
            0,
            self.completions[end],
            queue_pair=0x100 + number,
            remote_queue_pair=0x100 + number,
            destination_mac=_mac(1 - end),
            destination_ip=_address(1 - end),
            path_mtu_bytes=MTU_BYTES,
            telemetry=telemetry,
            ack_interval_packets=1,
            retransmission_timeout_ps=TIMEOUT_PS,
            congestion_control=make_congestion_control(
                "fixed-window",
                line_rate_bps=RATE_BPS,
                base_round_trip_ps=2 * DELAY_PS,
                frame_bytes=MTU_BYTES + 100,
            ),
        )

    def write(self, bytes_per_host: int) -> None:
        """Have every queue pair write its share, and run until all has been acknowledged."""
        for end, queue_pairs in enumerate(self.queue_pairs):
            for queue_pair in queue_pairs:
                queue_pair.post_write_as_length(
                    bytes_per_host // len(queue_pairs), remote_address=0, rkey=self.sinks[1 - end].rkey
                )
        self.engine.run()

    def transmitted_packets(self) -> int:
        """Data packets and acknowledgements that both have sent."""
        return sum(port.stats()["transmitted"]["packets"] for port in self.ports)


def _mac(end: int) -> str:
    return f"02:00:00:00:00:{end + 1:02x}"


def _address(end: int) -> str:
    return f"10.0.0.{end + 1}"


def measure(queue_pairs: int, megabytes: int) -> list[Figure]:
    """All figures."""
    figures = []
    for telemetry in (False, True):
        cable = Cable(queue_pairs, telemetry=telemetry)
        began_s = time.process_time()
        cable.write(megabytes * 10**6)
        passed_s = time.process_time() - began_s
        packets = cable.transmitted_packets()
        name = f"{queue_pairs} queue pairs each way, {'INT' if telemetry else 'no INT'}"
        figures.append(Figure(name, packets / passed_s, "packets/s"))
        figures.append(Figure("  a packet and its acknowledgement", 2e9 * passed_s / packets, "ns"))
    return figures


def main() -> None:
    """Print the figures."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("--queue-pairs", type=int, default=16, help="of each host")
    parser.add_argument("--megabytes", type=int, default=500, help="that each host writes")
    options: Any = parser.parse_args()
    pin_this_process(1, realtime=options.realtime)
    report("hosts on a cable, one core", measure(options.queue_pairs, options.megabytes), as_json=options.json)


if __name__ == "__main__":
    main()
