"""A lossless torus at load, against closed forms: an exchange with all neighbours, and a ring all-reduce.

    .venv/bin/python benchmarks/bench_torus.py [--shape X Y ...] [--bytes N] [--json]

Each switch has one host, whose link is as fast as all links of its switch together, so that the torus is the
bottleneck; links have 100 Gb/s and 200 ns, and credits cover a link's round trip. Credits make both lanes of data and
of acknowledgements lossless; dimension order keeps them free of deadlock by datelines. Times are those of the virtual
clock, so the figures are the same in every run.

Closed forms are of serialisation alone; f is a frame's bytes over its payload, R the rate of a link:

- Exchange: each host writes N bytes to each of its 2·d neighbours. A link carries N bytes each way: N·f/R.
- All-reduce by a ring of n ranks in order of coordinates: each rank sends 2·(n - 1)/n·N bytes to the next one, and no
  link carries more than one rank's: 2·(n - 1)/n·N·f/R.

The ratio is the closed form over the measured time: 1 if propagation, headers of later hops and waiting took no time.
"""

from __future__ import annotations

import argparse
from itertools import product
from math import prod

from figures import Figure, argument_parser, report

from weft import Fabric
from weft.run.collectives import CollectiveRequest
from weft.scenario import CreditsSection, RoutingSection, TransportSection
from weft.topologies import FabricSpec
from weft.topologies.kinds.torus import neighbours, torus
from weft.traffic.header_sizes import overhead_bytes
from weft.traffic.patterns import Flow

RATE_BPS = 100e9
DELAY_PS = 200_000
MTU_BYTES = 4096
LOSSLESS = [3, 4, 6, 7]
"""Both lanes of data and of acknowledgements."""


def fabric_of(shape: list[int]) -> FabricSpec:
    """The torus."""
    return torus(shape=shape, host_rate_bps=2 * len(shape) * RATE_BPS, fabric_rate_bps=RATE_BPS, delay_ps=DELAY_PS)


def exchange(shape: list[int], size_bytes: int) -> list[Flow]:
    """A flow to each neighbour of each host."""
    number = {place: each for each, place in enumerate(product(*map(range, shape)))}
    links = [(number[a], number[b]) for a, b in neighbours(shape, [True] * len(shape))]
    return [Flow(a, b, size_bytes) for ends in links for a, b in (ends, ends[::-1])]


def measured(options: argparse.Namespace) -> list[Figure]:
    """Run both patterns on fabrics of their own."""
    overhead = 1 + overhead_bytes(4, int_telemetry=False) / MTU_BYTES
    ranks = prod(options.shape)
    figures = []
    for name in ("exchange with all neighbours", "ring all-reduce"):
        with Fabric(
            fabric_of(options.shape),
            clock="virtual",
            mtu_bytes=MTU_BYTES,
            routing=RoutingSection(kind="dimension_order"),
            credits=CreditsSection(classes=LOSSLESS),
            transport=TransportSection(congestion_control=options.congestion_control),
        ) as fabric:
            if name == "ring all-reduce":
                time_ps = fabric.run(CollectiveRequest("allreduce", options.bytes, "ring")).result.time_ps
                on_a_link = 2 * (ranks - 1) / ranks * options.bytes
            else:
                time_ps = fabric.run_flows(name, exchange(options.shape, options.bytes)).time_ps
                on_a_link = options.bytes
        least_ps = on_a_link * overhead * 8 * 1e12 / RATE_BPS
        figures.append(Figure(name, time_ps / 1e6, "us", "the closed form", least_ps / time_ps))
    return figures


def main() -> None:
    """Print both."""
    parser = argument_parser(__doc__)
    parser.add_argument("--shape", type=int, nargs="+", default=[4, 4])
    parser.add_argument("--bytes", type=int, default=4 << 20)
    parser.add_argument("--congestion-control", default="fixed-window", help="a window that nothing changes by default")
    options = parser.parse_args()
    shape = "x".join(map(str, options.shape))
    report(f"torus {shape}, {options.bytes} bytes, credits", measured(options), as_json=options.json)


if __name__ == "__main__":
    main()
