"""What flowlets are worth where hosts pause: bursts of a permutation on a non-blocking fat tree.

    .venv/bin/python benchmarks/bench_flowlets.py [--hosts N] [--burst BYTES] [--bursts N] [--loads SHARE…]
        [--gap-us N…] [--json]

Hosts pair up as in bench_load_balancing.py, but write bursts over one queue pair; a burst and its pause together
have the load that is asked for. Between two bursts a flow pauses, and switches that balance by flowlets may choose its
path anew, if the pause is at least the gap. Retransmission is go-back-N, which needs packets in order; spraying, to
compare with, has selective repeat. Times are those of single bursts, from when they are posted to their last
acknowledgement, beside a burst's that is alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from bench_load_balancing import FIXED_WINDOW, MTU_BYTES, PATIENCE_S, Retransmission, write_bytes
from bench_permutation import PORTS, RATE_BPS, fabric_of_hosts
from figures import Figure, argument_parser, report

from weft import Fabric
from weft.controller.features.load_balancing import LoadBalancingMode
from weft.recording.ideal_times import IdealTimes
from weft.scenario import RoutingSection, TransportSection
from weft.traffic.patterns import Flow, permutation

WINDOW = "400KB"
CASES: tuple[tuple[LoadBalancingMode, Retransmission], ...] = (
    ("flow", "go-back-n"),
    ("flowlet", "go-back-n"),
    ("adaptive", "go-back-n"),
    ("round_robin", "selective-repeat"),
)


def bursts_of(hosts: int, burst_bytes: int, count: int, load: float) -> list[Flow]:
    """All bursts of all hosts, which start together."""
    period_ps = round(write_bytes(burst_bytes) * 8 / RATE_BPS * 1e12 / load)
    return [
        replace(flow, start_ps=number * period_ps)
        for flow in permutation(hosts, burst_bytes, seed=1)
        for number in range(count)
    ]


def run(
    mode: LoadBalancingMode,
    retransmission: Retransmission,
    gap_us: int,
    load: float,
    options: argparse.Namespace,
) -> Iterator[Figure]:
    """What the table shows of a mode."""
    by_flowlets = mode in ("flowlet", "adaptive")
    gap = {"flowlet_gap": gap_us * 10**6} if by_flowlets else {}
    with Fabric(
        fabric_of_hosts(options.hosts),
        clock="virtual",
        seed=1,
        mtu_bytes=MTU_BYTES,
        int_telemetry=False,
        routing=RoutingSection(load_balancing=mode, **gap),
        transport=TransportSection(
            congestion_control=FIXED_WINDOW,
            parameters={"window": WINDOW},
            retransmission=retransmission,
            reordering_window=100 * 10**6,
            ack_interval=4,
        ),
    ) as fabric:
        flows = bursts_of(options.hosts, options.burst, options.bursts, load)
        result = fabric.run_flows("bursts", flows, PATIENCE_S, data="lengths")
        ends = (result.records[name] for name in ("source", "destination", "plane", "size_bytes"))
        alone_ps = IdealTimes.of_fabric(fabric.topology, fabric.options).of(*ends)
    slowdown = result.records["completion_ps"] / alone_ps
    name = f"{mode}, load {load:g}" + (f", gap {gap_us} us" if by_flowlets else "")
    yield Figure(f"{name}: mean", float(slowdown.mean()), "x", "a lone burst")
    yield Figure("  median", float(np.median(slowdown)), "x", "a lone burst")
    yield Figure("  99th percentile", float(np.percentile(slowdown, 99)), "x", "a lone burst")
    yield Figure("  packets sent again", result.retransmissions, "")


def measure(options: argparse.Namespace) -> list[Figure]:
    """All rows."""
    return [
        figure
        for load in options.loads
        for mode, retransmission in CASES
        for gap_us in (options.gap_us if mode in ("flowlet", "adaptive") else options.gap_us[:1])
        for figure in run(mode, retransmission, gap_us, load, options)
    ]


def main() -> None:
    """Print the figures."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("--hosts", type=int, choices=PORTS, default=128, help="of the fat tree")
    parser.add_argument("--burst", type=int, default=125_000, help="bytes that a host writes without a pause")
    parser.add_argument("--bursts", type=int, default=40, help="of each host")
    parser.add_argument("--loads", type=float, nargs="+", default=[0.3], help="shares of the line")
    parser.add_argument("--gap-us", type=int, nargs="+", default=[10], help="pauses that end a flowlet")
    options = parser.parse_args()
    report(f"bursts of {options.hosts} hosts", measure(options), as_json=options.json)


if __name__ == "__main__":
    main()
