"""All-reduces in the network beside those of hosts: by size, by number of ranks, under loss, beside published figures.

    .venv/bin/python benchmarks/bench_in_network.py [sizes|ranks|loss|sharp|servers]… [--ranks N…] [--sizes SIZE…]
        [--rates GBPS…] [--dtype NAME] [--lanes N] [--algorithms NAME…] [--losses P…] [--picture FILE.svg] [--json]

Two tiers of fabric.p4 switches without oversubscription, up to four spines, links of 1 µs, one rank a host. Sums of
int32 in virtual time, seed 1; host algorithms send lengths in packets of 4,096 bytes, without INT; what switches reduce
is data, in packets of `--lanes` elements. Times are emulated, so the machine does not matter.

- sizes: time by size. `S/B efficiency` is the ideal transfer time (size over line rate) divided by the time.
- ranks: time by number of ranks, of 8 B and of 1 MiB.
- loss: time of 1 MiB on 8 ranks against the loss of every link, mean of three draws.
- sharp: 128 hosts as in Graham et al., COMHPC 2016: 100 Gb/s, links of 50 ns, switches of 90 ns, without costs of hosts
  and with assumed ones (`SHARP_NIC`); packets of 64 lanes, 256 bytes as there.
- servers: a step of 8 workers with a parameter server on one of their hosts, and with one on each.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from curves import LogAxis, Panel, powers, svg_of
from rich.console import Console
from rich.table import Table

from weft import Fabric
from weft.jobs.parameter_server import parameter_server_job
from weft.jobs.parameter_server.plan import ParameterServerPlan
from weft.run.collectives import CollectiveRequest
from weft.scenario import AggregationSection, FaultsSection, NicSection, SwitchingSection, TransportSection
from weft.topologies import FabricSpec, leaf_spine

Lanes = Literal[64, 128, 256, 1024]
LANES: Lanes = 256
ALGORITHMS = ("in-network", "ring", "tree", "halving-doubling")
SIZES = (4, 256, 4 << 10, 64 << 10, 1 << 20, 16 << 20)
RANKS = (4, 16, 64, 256, 1024)
LOSSES = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
SMALL_BYTES, LARGE_BYTES = 8, 1 << 20
MOST_BYTES = 8 << 30
"""Of all ranks' data together, which is in memory where switches reduce it: larger runs are left out."""
SPINES = 4
QUEUE_CAPACITY_BYTES = 4 << 20
PATIENCE_S = 100.0
"""Of emulated time."""
SIZE_AXIS = LogAxis(
    {
        1: "1 B",
        32: "32 B",
        1 << 10: "1 KiB",
        1 << 15: "32 KiB",
        1 << 20: "1 MiB",
        1 << 25: "32 MiB",
        1 << 30: "1 GiB",
    }
)
HOSTS_PER_LEAF = {4: 2, 8: 4, 16: 4, 32: 8, 64: 8, 128: 16, 256: 16, 512: 32, 1024: 32}
SERVED_RANKS = 8
SERVED_BYTES = (1 << 12, 1 << 20, 1 << 24)
COMPUTE_PS = 1
FREE_GB_PER_S = 1e6
SHARP_NIC = NicSection(dma_latency=300_000, per_packet_overhead=100_000)
SHARP_2016 = {8: (6.01, 2.83), 4096: (46.93, 14.48)}
"""Published times in µs by size: of hosts and of switches."""


@dataclass(frozen=True)
class Row:
    """An all-reduce; `share_of_line` is size over rate, over the time."""

    part: str
    ranks: int
    rate_gbps: float
    size_bytes: int
    loss: float
    algorithm: str
    time_us: float
    share_of_line: float
    packets_sent_again: int


def fabric_of(ranks: int, rate_gbps: float, delay_ps: int = 1_000_000) -> FabricSpec:
    """Two tiers without oversubscription."""
    per_leaf = HOSTS_PER_LEAF[ranks]
    return leaf_spine(
        planes=1,
        leaves=ranks // per_leaf,
        spines=min(SPINES, per_leaf),
        hosts_per_leaf=per_leaf,
        host_rate_bps=rate_gbps * 1e9,
        oversubscription=1.0,
        delay_ps=delay_ps,
        queue_capacity_bytes=QUEUE_CAPACITY_BYTES,
    )


def rows_of(
    part: str,
    topology: FabricSpec,
    cases: Sequence[tuple[str, int]],
    loss: float = 0.0,
    dtype: str = "int32",
    lanes: Lanes = LANES,
    **options: Any,
) -> Iterator[Row]:
    """All-reduces (algorithm, size) on one fabric, one after the other."""
    rate_bps = topology.hosts[0].nics[0].link.rate_bps
    with _started(
        topology, faults=FaultsSection(loss=loss), aggregation=AggregationSection(lanes=lanes), **options
    ) as fabric:
        for algorithm, size_bytes in cases:
            found = fabric.run(
                CollectiveRequest(
                    "allreduce",
                    size_bytes,
                    algorithm,
                    dtype=dtype,
                    repetitions=3 if loss else 1,
                ),
                timeout_s=PATIENCE_S,
            ).result
            share = size_bytes * 8e12 / rate_bps / found.time_ps
            yield Row(
                part,
                topology.rank_count,
                rate_bps / 1e9,
                size_bytes,
                loss,
                algorithm,
                found.time_ps / 1e6,
                share,
                found.retransmissions,
            )


def _started(topology: FabricSpec, **options: Any) -> Fabric:
    return Fabric(
        topology,
        clock="virtual",
        seed=1,
        mtu_bytes=4096,
        int_telemetry=False,
        transport=TransportSection(retransmission="selective-repeat"),
        **options,
    )


def by_size(options: argparse.Namespace) -> Iterator[Row]:
    """Time by size."""
    for ranks in options.ranks or (8, 64):
        for rate in options.rates:
            cases = [(name, size) for size in options.sizes for name in options.algorithms]
            runs = [each for each in cases if ranks * each[1] <= MOST_BYTES]
            yield from rows_of("sizes", fabric_of(ranks, rate), runs, dtype=options.dtype, lanes=options.lanes)


def by_ranks(options: argparse.Namespace) -> Iterator[Row]:
    """Time by number of ranks."""
    for ranks in options.ranks or RANKS:
        for rate in options.rates:
            cases = [(name, size) for size in (SMALL_BYTES, LARGE_BYTES) for name in options.algorithms]
            yield from rows_of(
                "ranks",
                fabric_of(ranks, rate),
                cases,
                lanes=options.lanes,
            )


def by_loss(options: argparse.Namespace) -> Iterator[Row]:
    """Time against loss."""
    for loss in options.losses:
        cases = [(name, LARGE_BYTES) for name in ("in-network", "ring")]
        yield from rows_of("loss", fabric_of(8, options.rates[0]), cases, loss, lanes=options.lanes)


def beside_sharp(options: argparse.Namespace) -> Iterator[Row]:
    """The sizes of SHArP's paper on as many hosts."""
    topology = fabric_of(128, 100, delay_ps=50_000)
    for name, nic in (("sharp, no host costs", NicSection()), ("sharp", SHARP_NIC)):
        cases = [(each, size) for size in SHARP_2016 for each in ("in-network", "tree", "halving-doubling")]
        yield from rows_of(name, topology, cases, lanes=64, nic=nic, switching=SwitchingSection(latency=90_000))


def by_servers(options: argparse.Namespace) -> Iterator[Row]:
    """Time by a parameter server on the host of a worker, and by one on each worker's."""
    for rate in options.rates:
        topology = fabric_of(SERVED_RANKS, rate)
        for servers in (1, SERVED_RANKS):
            for size_bytes in SERVED_BYTES:
                yield row_of_servers(topology, servers, size_bytes)


def row_of_servers(topology: FabricSpec, servers: int, size_bytes: int) -> Row:
    """A step of ranks that compute for next to no time, with servers that add for free, as hosts do elsewhere here."""
    plan = ParameterServerPlan(
        servers,
        topology.rank_count,
        size_bytes,
        1,
        COMPUTE_PS,
        colocated=True,
        memory_bandwidth_gb_per_s=FREE_GB_PER_S,
    )
    rate_bps = topology.hosts[0].nics[0].link.rate_bps
    with _started(topology) as fabric:
        found = fabric.run_job(parameter_server_job(plan).job)
    time_ps = found.duration_ps - COMPUTE_PS
    return Row(
        "servers",
        topology.rank_count,
        rate_bps / 1e9,
        size_bytes,
        0.0,
        f"parameter server, {servers}",
        time_ps / 1e6,
        size_bytes * 8e12 / rate_bps / time_ps,
        found.retransmissions,
    )


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "sizes": by_size,
    "ranks": by_ranks,
    "loss": by_loss,
    "sharp": beside_sharp,
    "servers": by_servers,
}


def show(rows: Sequence[Row]) -> None:
    """Print a table of each part."""
    table = Table(title="All-reduces of int32", title_justify="left")
    for name in (
        "part",
        "ranks",
        "Gb/s",
        "size (B)",
        "loss",
        "algorithm",
        "time (µs)",
        "S/B efficiency",
        "sent again",
    ):
        table.add_column(name, justify="left" if name in ("part", "algorithm") else "right")
    for each in rows:
        table.add_row(
            each.part,
            str(each.ranks),
            f"{each.rate_gbps:g}",
            f"{each.size_bytes:,}",
            f"{each.loss:g}",
            each.algorithm,
            f"{each.time_us:,.2f}",
            f"{each.share_of_line:.3f}",
            f"{each.packets_sent_again:,}",
        )
    Console(width=120).print(table)


def picture(rows: Sequence[Row]) -> str:
    """Draw a panel for each fabric of `sizes`, each size of `ranks`, and `loss`."""
    panels = []
    sizes = [each for each in rows if each.part == "sizes"]
    for ranks, rate in dict.fromkeys((each.ranks, each.rate_gbps) for each in sizes):
        own = [each for each in sizes if (each.ranks, each.rate_gbps) == (ranks, rate)]
        curves = _curves(own, lambda each: (each.size_bytes, each.share_of_line))
        title = f"{ranks} ranks, {rate:g} Gb/s"
        panels.append(Panel(title, "size", "S/B over time", SIZE_AXIS, 1.0, curves))
    for size, label in ((SMALL_BYTES, "8 B"), (LARGE_BYTES, "1 MiB")):
        own = [each for each in rows if each.part == "ranks" and each.size_bytes == size]
        if own:
            curves = _curves(own, lambda each: (each.ranks, each.time_us))
            title = f"{label}, {own[0].rate_gbps:g} Gb/s"
            panels.append(Panel(title, "ranks", "µs", powers(1, 5, 4), powers(0, 4), curves))
    lossy = [each for each in rows if each.part == "loss" and each.loss]
    if lossy:
        curves = _curves(lossy, lambda each: (each.loss, each.time_us))
        panels.append(Panel("1 MiB, 8 ranks", "loss of each link", "µs", powers(-5, -1), powers(1, 5), curves))
    return svg_of(panels)


def _curves(rows: Sequence[Row], point: Callable[[Row], tuple[float, float]]) -> dict[str, list[tuple[float, float]]]:
    names = dict.fromkeys(each.algorithm for each in rows)
    return {name: [point(each) for each in rows if each.algorithm == name] for name in names}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--ranks", type=int, nargs="+", choices=HOSTS_PER_LEAF)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="bytes")
    parser.add_argument("--rates", type=float, nargs="+", default=[100.0], help="Gb/s")
    parser.add_argument("--lanes", type=int, choices=get_args(Lanes), default=LANES)
    parser.add_argument("--dtype", choices=["int32", "float32"], default="int32", help="of `sizes`")
    parser.add_argument("--losses", type=float, nargs="+", default=list(LOSSES))
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    parser.add_argument("--picture", type=Path, help="draw what was run into an SVG file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"unknown part {part!r} (valid: {', '.join(PARTS)})")
    rows = []
    for part in options.parts or PARTS:
        for row in PARTS[part](options):
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    if options.picture is not None:
        options.picture.write_text(picture(rows))
    if options.json:
        print(json.dumps([asdict(each) for each in rows], indent=1))
        return
    show(rows)


if __name__ == "__main__":
    main()
