"""How many packets links carry for an all-reduce: in the network and by hosts, in closed form beside what ports count.

    .venv/bin/python benchmarks/bench_packet_hops.py [--ranks N…] [--size BYTES] [--json]

The fabrics of bench_in_network.py, a rank a host. All packets carry 1,024 bytes; hosts acknowledge every eighth. A
packet-hop is a packet on a link. Closed forms are of n ranks below L leaves, for each packet's worth of a rank's data:

- in-network: a contribution from each rank and each leaf, and a result to each: 2 (n + L).
- ring: 2 (n - 1) / n from each rank to the next, over two links below a leaf, over four from leaf to leaf.
- tree: of two trees of n - 1 edges each, half of the data up and down each edge.
- halving-doubling: a half, a quarter, … of the data from each rank to its partner at distance 1, 2, … n / 2, and as
  much again when it is doubled.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction

from bench_in_network import ALGORITHMS, HOSTS_PER_LEAF, LANES, fabric_of
from rich.console import Console
from rich.table import Table

from weft import Fabric
from weft.recording.observations import ports_table
from weft.run.collectives import CollectiveRequest
from weft.scenario import AggregationSection, TransportSection
from weft.traffic.aggregation_format import LANE_BYTES
from weft.traffic.schedules.tree import TREES, parent_of

PAYLOAD_BYTES = LANES * LANE_BYTES
ACK_INTERVAL = 8
RATE_GBPS = 100.0
RANKS, SIZE_BYTES = (8, 64), 1 << 20


@dataclass(frozen=True)
class Row:
    """Packet-hops of an all-reduce for each packet's worth of a rank's data.

    `data` and `acknowledgements` are in closed form; `counted` is what the ports of hosts and switches count of both.
    """

    ranks: int
    algorithm: str
    data: float
    acknowledgements: float
    counted: float
    wire_bytes: float


@dataclass(frozen=True)
class Place:
    """Ranks below leaves, as many below each, in order."""

    ranks: int
    per_leaf: int

    @property
    def leaves(self) -> int:
        """How many."""
        return self.ranks // self.per_leaf

    def hops(self, a: int, b: int) -> int:
        """Links between two ranks."""
        return 2 if a // self.per_leaf == b // self.per_leaf else 4


def of_switches(place: Place) -> Fraction:
    """Up and down the links of hosts, and of leaves."""
    return Fraction(2 * (place.ranks + place.leaves))


def of_ring(place: Place) -> Fraction:
    """To the next rank, and from the last to the first."""
    n = place.ranks
    hops = sum(place.hops(rank, (rank + 1) % n) for rank in range(n))
    return Fraction(2 * (n - 1), n) * hops


def of_trees(place: Place) -> Fraction:
    """Up and down the edges. The second tree is the first one with every rank but the root one further."""
    n = place.ranks
    edges = [(role, parent) for role in range(n) if (parent := parent_of(role, n)) is not None]

    def rank(role: int, tree: int) -> int:
        return (role - 1 - tree) % (n - 1) + 1 if role else 0

    hops = sum(place.hops(rank(a, tree), rank(b, tree)) for tree in range(TREES) for a, b in edges)
    return Fraction(2 * hops, TREES)


def of_halving(place: Place) -> Fraction:
    """To the partner at each distance and back, the half of the data to the next rank."""
    n = place.ranks
    distances = [1 << bit for bit in range(n.bit_length() - 1)]
    return sum(
        (Fraction(place.hops(rank, rank ^ distance), distance) for rank in range(n) for distance in distances),
        Fraction(0),
    )


CLOSED_FORMS: dict[str, Callable[[Place], Fraction]] = {
    "in-network": of_switches,
    "ring": of_ring,
    "tree": of_trees,
    "halving-doubling": of_halving,
}


def rows_of(ranks: int, size_bytes: int = SIZE_BYTES, algorithms: Sequence[str] = ALGORITHMS) -> Iterator[Row]:
    """All-reduces of int32 on one fabric, one after the other."""
    place = Place(ranks, HOSTS_PER_LEAF[ranks])
    with Fabric(
        fabric_of(ranks, RATE_GBPS),
        clock="virtual",
        seed=1,
        mtu_bytes=PAYLOAD_BYTES,
        int_telemetry=False,
        transport=TransportSection(retransmission="selective-repeat", ack_interval=ACK_INTERVAL),
        aggregation=AggregationSection(lanes=LANES),
    ) as fabric:
        for name in algorithms:
            before = _sent(fabric)
            found = fabric.run(CollectiveRequest("allreduce", size_bytes, name, dtype="int32")).result
            if found.retransmissions:
                raise SystemExit(f"{name}: {found.retransmissions} packets were sent again")
            packets, wire_bytes = (now - then for now, then in zip(_sent(fabric), before, strict=True))
            data = CLOSED_FORMS[name](place)
            acknowledgements = Fraction(0) if name == "in-network" else data / ACK_INTERVAL
            worth = size_bytes // PAYLOAD_BYTES
            yield Row(ranks, name, float(data), float(acknowledgements), packets / worth, wire_bytes / size_bytes)


def _sent(fabric: Fabric) -> tuple[int, int]:
    """Return packets and bytes that all ports have sent."""
    ports = ports_table(fabric.topology, fabric.lab.switch_stats(), fabric.hosts.stats())
    return int(ports["transmitted_packets"].sum()), int(ports["transmitted_bytes"].sum())


def show(rows: Sequence[Row]) -> None:
    """Print a table."""
    table = Table(title=f"Packet-hops for {PAYLOAD_BYTES:,} bytes of a rank's data", title_justify="left")
    for name in (
        "ranks",
        "algorithm",
        "data",
        "acknowledgements",
        "counted",
        "of in-network",
        "bytes on links",
    ):
        table.add_column(name, justify="left" if name == "algorithm" else "right")
    in_network = {row.ranks: row.counted for row in rows if row.algorithm == "in-network"}
    for row in rows:
        table.add_row(str(row.ranks), *cells(row, in_network.get(row.ranks)))
    Console(width=120).print(table)


def cells(row: Row, in_network: float | None) -> tuple[str, ...]:
    """Return a row as the table and the page have it; bytes on links are for each byte of a rank's data."""
    ratio = "–" if in_network is None else f"{row.counted / in_network:.2f}"
    counts = (f"{each:.2f}" for each in (row.data, row.acknowledgements, row.counted))
    return row.algorithm, *counts, ratio, f"{row.wire_bytes:.1f}"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", choices=HOSTS_PER_LEAF, default=list(RANKS))
    parser.add_argument("--size", type=int, default=SIZE_BYTES, help="bytes, a multiple of 8 packets for each rank")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    for ranks in options.ranks:
        if options.size < 1 or options.size % (ranks * ACK_INTERVAL * PAYLOAD_BYTES):
            parser.error(f"--size {options.size}: not a multiple of {ranks * ACK_INTERVAL * PAYLOAD_BYTES:,} bytes")
    rows = []
    for ranks in options.ranks:
        for row in rows_of(ranks, options.size):
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps([asdict(each) for each in rows], indent=1))
        return
    show(rows)


if __name__ == "__main__":
    main()
