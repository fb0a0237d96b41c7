"""Load against latency and throughput on a dragonfly: minimal routes, adaptive ones, Valiant's and UGAL-L.

    .venv/bin/python benchmarks/bench_dragonfly.py [--hosts 72|1056] [--loads X…] [--patterns NAME…] [--routes NAME…]
        [--duration-us N] [--buffer-frames N] [--plot FILE] [--json]

The balanced dragonflies of Kim, Dally, Scott and Abts (ISCA 2008): 72 hosts (p = 2, a = 4, h = 2, g = 9) or their
1,056 (p = 4, a = 8, h = 4, g = 33). Links have 100 Gb/s and 200 ns, fabric.p4 runs at every router, and credits make
the lanes of data lossless, with buffers of 16 frames. Each host sends messages of one packet of 4,096 bytes, at times
of a Poisson process, each to a host drawn anew: of all hosts (uniform), or of the next group (adversarial).

Load is what hosts offer, as a share of their line, frames on the wire counted. Throughput is what was acknowledged in
the last 60 % of the time in which messages start, as a share of the line. Latency is the mean of the messages that
started then, from their start until they were acknowledged; beyond saturation it grows with the time measured. Times
are those of the virtual clock, so figures are the same in every run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from curves import Panel, svg_of
from figures import Figure, argument_parser, report

from weft import Fabric
from weft.controller.features.load_balancing import LoadBalancingMode
from weft.controller.features.virtual_lanes import lane_classes
from weft.controller.routing import ROUTING_KINDS
from weft.papers.dragonfly_messages import PATTERNS, Shape, messages
from weft.quantities.traffic_classes import DATA_CLASS
from weft.results.flow_tables import flow_table
from weft.scenario import CreditsSection, RoutingSection, TransportSection
from weft.topologies import FabricSpec
from weft.topologies.kinds.dragonfly import dragonfly
from weft.traffic.header_sizes import RETH, overhead_bytes
from weft.traffic.messages import AS_LENGTHS

RATE_BPS = 100e9
DELAY_PS = 200_000
MTU_BYTES: Literal[4096] = 4096
GAP_BYTES = 24
"""Preamble, check sequence and gap of Ethernet."""
FRAME_BYTES = MTU_BYTES + overhead_bytes(4, int_telemetry=False) + RETH
FRAME_PS = (FRAME_BYTES + GAP_BYTES) * 8e12 / RATE_BPS
WARM_UP = 0.4
"""Of the time in which messages start."""
MOST_LATENCY_US = 25.0
PATIENCE_S = 1.0
"""Of emulated time."""


def fabric_of(shape: Shape) -> FabricSpec:
    """Describe a dragonfly."""
    return dragonfly(
        groups=shape.groups,
        routers_per_group=shape.routers,
        global_links_per_router=shape.global_links,
        hosts_per_switch=shape.hosts_per_router,
        host_rate_bps=RATE_BPS,
        delay_ps=DELAY_PS,
    )


SHAPES: Mapping[int, Shape] = {72: Shape(2, 4, 2, 9), 1056: Shape(4, 8, 4, 33)}
DEFAULT_LOADS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
ROUTES: Mapping[str, tuple[str, LoadBalancingMode]] = {
    "minimal": ("dragonfly_minimal", "flow"),
    "adaptive": ("dragonfly_minimal", "adaptive"),
    "Valiant": ("dragonfly_valiant", "flow"),
    "UGAL-L": ("dragonfly_ugal", "flow"),
}


@dataclass(frozen=True)
class Point:
    """One run."""

    pattern: str
    routes: str
    load: float
    throughput: float
    latency_us: float


def run(shape: Shape, pattern: str, routes: str, load: float, options: argparse.Namespace) -> Point:
    """One load of one pattern, over routes of one kind."""
    kind, balancing = ROUTES[routes]
    duration_ps = options.duration_us * 10**6
    flows = messages(shape, pattern, MTU_BYTES, FRAME_PS / load, duration_ps)
    threshold = {"ugal_threshold": options.ugal_threshold} if kind == "dragonfly_ugal" else {}
    fabric_spec = fabric_of(shape)
    lanes = lane_classes(DATA_CLASS, ROUTING_KINDS.named(kind).lanes(fabric_spec, 0))
    with Fabric(
        fabric_spec,
        clock="virtual",
        seed=1,
        mtu_bytes=MTU_BYTES,
        int_telemetry=False,
        routing=RoutingSection(kind=kind, load_balancing=balancing, **threshold),
        credits=CreditsSection(classes=list(lanes), buffer=options.buffer_frames * -(-FRAME_BYTES // 64) * 64),
        transport=TransportSection(
            congestion_control="fixed-window",
            retransmission="selective-repeat",
            retransmission_timeout=10**11,
        ),
    ) as fabric:
        prepared = fabric.hosts.prepare_workload(flows, telemetry=False, payload=AS_LENGTHS)
        _, ended = fabric.hosts.run_flows(prepared, PATIENCE_S)
    table = flow_table(flows, ended)
    begins_ps = WARM_UP * duration_ps
    ends_ps = table["start_ps"] + table["completion_ps"]
    arrived = np.count_nonzero((ends_ps >= begins_ps) & (ends_ps < duration_ps))
    return Point(
        pattern,
        routes,
        load,
        float(arrived * FRAME_PS / (duration_ps - begins_ps) / shape.hosts),
        float(table["completion_ps"][table["start_ps"] >= begins_ps].mean()) / 1e6,
    )


def picture(points: list[Point], hosts: int) -> str:
    """Return latency over load as SVG, as figures 8 and 16 of the paper show it."""
    return svg_of(
        [
            Panel(
                f"{pattern}, {hosts} hosts",
                "offered load",
                "mean latency (µs)",
                1.0,
                MOST_LATENCY_US,
                {
                    routes: [
                        (point.load, point.latency_us)
                        for point in points
                        if (point.pattern, point.routes) == (pattern, routes)
                    ]
                    for routes in dict.fromkeys(point.routes for point in points)
                },
            )
            for pattern in dict.fromkeys(point.pattern for point in points)
        ]
    )


def main() -> None:
    """Print a row for each load, and draw them."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("--hosts", type=int, choices=SHAPES, default=72)
    parser.add_argument("--loads", type=float, nargs="+", default=DEFAULT_LOADS)
    parser.add_argument("--patterns", nargs="+", choices=PATTERNS, default=list(PATTERNS))
    parser.add_argument("--routes", nargs="+", choices=ROUTES, default=list(ROUTES))
    parser.add_argument("--duration-us", type=int, default=200, help="time in which messages start")
    parser.add_argument("--buffer-frames", type=int, default=16, help="of each lane at each port")
    parser.add_argument("--ugal-threshold", type=int, default=0, help="bytes times hops")
    parser.add_argument("--plot", type=Path, help="file of an SVG picture")
    options = parser.parse_args()
    shape = SHAPES[options.hosts]
    points = [
        run(shape, pattern, routes, load, options)
        for pattern in options.patterns
        for routes in options.routes
        for load in options.loads
    ]
    if options.plot:
        options.plot.write_text(picture(points, options.hosts), encoding="utf-8")
    figures = [
        figure
        for each in points
        for figure in (
            Figure(f"{each.pattern}, {each.routes}, load {each.load:g}", each.throughput, "of the line"),
            Figure("  mean latency", each.latency_us, "us"),
        )
    ]
    report(f"a dragonfly of {options.hosts} hosts", figures, as_json=options.json)


if __name__ == "__main__":
    main()
