"""Goodput of all-reduce in the network by the width of packets, at 100 and 400 Gb/s in virtual time.

    .venv/bin/python benchmarks/bench_aggregation_goodput.py [--size 64MiB] [--rates G…] [--lanes N…] [--json]

Sixteen ranks below four leaves and two spines reduce int32 of this size, lengths in place of data. Goodput is the size
by the line's rate and the time; beside it is the share of lanes in a frame, which is the most that it can be, and how
busy the line is, which is the quotient of both. Start and end of a run, a round trip and the slots that switches have
memory for are the rest.
"""

from __future__ import annotations

from figures import Figure, argument_parser, report

from weft import Fabric, topologies
from weft.quantities.units import parse_size_bytes
from weft.run.collectives import CollectiveRequest
from weft.scenario import AggregationSection
from weft.traffic.aggregation_format import LANE_COUNTS, frame_bytes

WIDTHS = LANE_COUNTS[1:]
GOAL_FROM_LANES, GOAL_SHARE = 256, 0.95


def time_s(rate_gbps: float, lanes: int, size_bytes: int) -> float:
    """Of an all-reduce, emulated."""
    fabric = topologies.leaf_spine(planes=1, leaves=4, spines=2, hosts_per_leaf=4, host_rate_bps=rate_gbps * 1e9)
    with Fabric(fabric, clock="virtual", aggregation=AggregationSection(lanes=lanes)) as shared:
        result = shared.run(CollectiveRequest("allreduce", size_bytes, "in-network", dtype="int32")).result
    return result.time_ps * 1e-12


def measure(size_bytes: int, rates_gbps: list[float], widths: list[int]) -> list[Figure]:
    """All figures."""
    figures = []
    for rate_gbps in rates_gbps:
        for lanes in widths:
            goodput_gbps = 8e-9 * size_bytes / time_s(rate_gbps, lanes, size_bytes)
            most_gbps = rate_gbps * 4 * lanes / frame_bytes(4, lanes)
            goal = GOAL_SHARE if lanes >= GOAL_FROM_LANES else None
            name = f"{rate_gbps:g} Gb/s, {lanes} lanes"
            figures += [
                Figure(name, goodput_gbps, "Gb/s", "the line", goodput_gbps / rate_gbps),
                Figure("  of what headers leave", most_gbps, "Gb/s", "", goodput_gbps / most_gbps, goal),
            ]
    return figures


def main() -> None:
    """Print the figures."""
    parser = argument_parser(__doc__)
    parser.add_argument("--size", default="64MiB", help="of the data of each rank")
    parser.add_argument("--rates", type=float, nargs="+", default=[100.0, 400.0], metavar="G", help="in Gb/s")
    parser.add_argument("--lanes", type=int, nargs="+", default=list(WIDTHS), choices=WIDTHS)
    options = parser.parse_args()
    figures = measure(parse_size_bytes(options.size), options.rates, options.lanes)
    report(f"all-reduce of {options.size} in the network, 16 ranks", figures, as_json=options.json)


if __name__ == "__main__":
    main()
