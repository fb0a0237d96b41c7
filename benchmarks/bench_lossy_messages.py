"""A million messages over a fabric that loses, duplicates and reorders packets, and whose links flap.

    .venv/bin/python benchmarks/bench_lossy_messages.py [--transports NAME…] [--messages N] [--ranks N] [--json]

Eight spines and leaves of four hosts (100 Gb/s and 1 µs a link, fabric.p4 at every switch). All-to-alls follow one
another until so many messages have been sent; a message has one to four packets of 1,024 bytes, drawn from a seed. On
every link one packet of a hundred is lost, one is duplicated, and one comes 10 µs later; each spine has a link that is
down for half of every 2 ms, at other moments than the others'. What each rank has received is compared with what the
others sent, and a message that does not arrive ends the benchmark with an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from figures import argument_parser, report_rows

from weft import Fabric
from weft.run.collectives import CollectiveRequest
from weft.scenario import EventSection, FaultsSection, TransportSection
from weft.topologies import leaf_spine

US = 10**6
SPINES, HOSTS_PER_LEAF = 8, 4
RATE_BPS = 100 * 10**9
PACKET_BYTES, MOST_PACKETS = 1024, 4
PERIOD_US = 2000
FAILURES = 1000
TRANSPORTS: dict[str, Any] = {
    "MRC": {"protocol": "mrc", "connections": "kept"},
    "UET": {"protocol": "uet", "connections": "kept"},
    "RoCEv2, sprayed": {"retransmission": "selective-repeat", "path": "spray", "connections": "kept"},
}


@dataclass(frozen=True)
class Row:
    """All messages over one transport."""

    transport: str
    messages: int
    wrong: int
    packets: int
    sent_again: int
    failures_of_links: int
    emulated_ms: float


def flaps(leaves: int) -> list[EventSection]:
    """Return the failures of a link of each spine, one after the other, for more time than the messages take."""
    return [
        EventSection(
            link=f"p0l{spine % leaves}<->p0s{spine}",
            state="flapping",
            count=FAILURES,
            period=PERIOD_US * US,
            at=(1 + spine) * PERIOD_US // SPINES * US,
        )
        for spine in range(SPINES)
    ]


def rounds(ranks: int, messages: int, seed: int) -> Iterator[list[npt.NDArray[np.int32]]]:
    """Yield what each rank sends in each all-to-all, in equal parts to all ranks."""
    random = np.random.default_rng(seed)
    for _ in range(-(-messages // (ranks * (ranks - 1)))):
        elements = ranks * int(random.integers(1, MOST_PACKETS * PACKET_BYTES // 4 + 1))
        yield [random.integers(-(2**31), 2**31, elements, np.int32) for _ in range(ranks)]


def measure(name: str, messages: int, ranks: int) -> Row:
    """Run all messages over one transport. Raises weft.CheckFailedError if one does not arrive."""
    leaves = -(-ranks // HOSTS_PER_LEAF)
    topology = leaf_spine(
        planes=1, leaves=leaves, spines=SPINES, hosts_per_leaf=HOSTS_PER_LEAF, host_rate_bps=RATE_BPS, delay_ps=US
    )
    faults = FaultsSection(loss=0.01, duplicate=0.01, delay_probability=0.01, extra_delay=10 * US)
    sent = wrong = 0
    with Fabric(
        topology,
        clock="virtual",
        seed=1,
        int_telemetry=False,
        transport=TransportSection(**TRANSPORTS[name]),
        faults=faults,
        events=flaps(leaves),
    ) as fabric:
        for inputs in rounds(ranks, messages, seed=1):
            run = fabric.run(CollectiveRequest("alltoall", inputs, "direct"))
            expected = np.stack([each.reshape(ranks, -1) for each in inputs]).swapaxes(0, 1)
            for rank, output in enumerate(run.buffers):
                received = np.asarray(output).reshape(ranks, -1)
                wrong += int((received != expected[rank]).any(axis=1).sum())
            sent += ranks * (ranks - 1)
        totals = [host["totals"] for host in fabric.hosts.stats()]
        result = fabric.summary()
        emulated_ps = max(phase.end_ps for phase in result.phases)
    return Row(
        transport=name,
        messages=sent,
        wrong=wrong,
        packets=sum(each["data_packets_sent"] for each in totals),
        sent_again=sum(each["retransmitted_packets"] for each in totals),
        failures_of_links=sum(e.state == "down" and e.happened_ps is not None for e in result.link_events),
        emulated_ms=emulated_ps / 1e9,
    )


def main() -> int:
    """Print the table; the exit status is 1 if a message was wrong."""
    parser = argument_parser(__doc__)
    parser.add_argument("--transports", nargs="+", choices=TRANSPORTS, default=list(TRANSPORTS), metavar="NAME")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--ranks", type=int, default=16, help="hosts, a multiple of 4")
    options = parser.parse_args()
    rows = [measure(name, options.messages, options.ranks) for name in options.transports]
    report_rows("Messages over a fabric with faults", rows, as_json=options.json)
    return int(any(row.wrong for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
