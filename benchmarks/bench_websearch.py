"""HPCC's evaluation in virtual time: 320 hosts in three tiers, 5 ms of WebSearch flows at 30 % load, on one core.

    .venv/bin/python benchmarks/bench_websearch.py [--duration-us N] [--congestion-control NAME] [--preset NAME]
        [--json] [--realtime]

The fabric is that of the HPCC paper (SIGCOMM 2019, section 5.1): 100 Gb/s hosts, 20 ToRs of 16 hosts, 20 aggregation
and 16 core switches joined by 400 Gb/s links of 1 µs, fabric.p4 at every switch, ECN on. Packets carry 1,024 bytes (the
nearest RDMA path MTU to the paper's 1,000). Flows arrive by a Poisson process for the given time and all run to their
end; every data packet is acknowledged. Only the run is timed, not building and programming the fabric. A link traversal
is one packet over one link, a host's included. ns-3 takes 95 to 143 s for as much.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from typing import Any

from figures import Figure, argument_parser, report
from scheduling import pin_this_process

from weft import Fabric
from weft.engine import congestion_control_kind, congestion_control_names
from weft.scenario import TransportSection, parse_scenario
from weft.scenario.topology import build_topology
from weft.topologies import FabricSpec

GOALS_S = {"fixed-window": 40.0, "hpcc": 15.0}
"""By congestion control, of 5 ms."""
LOAD = 0.3
HPCC_FABRIC: Mapping[str, object] = {
    "kind": "fat_tree",
    "planes": 1,
    "pods": 5,
    "leaves": 4,
    "spines": 4,
    "cores_per_spine": 4,
    "hosts_per_leaf": 16,
    "host_rate": "100Gb/s",
    "fabric_rate": "400Gb/s",
    "delay": "1us",
}
"""Section `fabric` of a scenario: the 320 hosts of the paper."""


def hpcc_fabric() -> FabricSpec:
    """The 320 hosts of the paper, with 32 MiB at each port."""
    return build_topology(parse_scenario({"fabric": {**HPCC_FABRIC, "queue_capacity": "32MiB"}}).fabric)


def transmitted(switches: dict[str, Any], hosts: list[dict[str, Any]]) -> Iterator[int]:
    """Packets that each port of the fabric has sent."""
    for switch in switches["switches"].values():
        for port in switch["ports"].values():
            yield port["transmit"]["transmitted"]["packets"]
    for host in hosts:
        for plane in host["planes"]:
            yield plane["transmit"]["transmitted"]["packets"]


def measure(duration_ps: int, congestion_control: str, preset: str | None, flow_sizes: str) -> list[Figure]:
    """All figures of one run."""
    fabric = Fabric(
        hpcc_fabric(),
        clock="virtual",
        seed=1,
        int_telemetry=congestion_control_kind(congestion_control).needs.telemetry,
        transport=TransportSection(congestion_control=congestion_control, preset=preset, ack_interval=1),
    )
    began_s = time.monotonic()
    with fabric:
        built_s = time.monotonic() - began_s
        wall_s, processor_s = time.monotonic(), time.process_time()
        workload = fabric.workload(flow_sizes, LOAD, duration_ps)
        wall_s, processor_s = time.monotonic() - wall_s, time.process_time() - processor_s
        traversals = sum(transmitted(fabric.lab.switch_stats() or {}, fabric.hosts.stats()))
    names = ("50 %", "95 %", "99 %")
    goal_s = GOALS_S.get(congestion_control)
    goal = None if goal_s is None else goal_s * duration_ps / 5e9
    preset = fabric.options.transport.preset
    return [
        Figure(
            f"{flow_sizes}, {workload.flows} flows, {congestion_control}{f' ({preset})' if preset else ''}",
            wall_s,
            "s",
            goal=goal,
            at_most=True,
        ),
        Figure("  of processor time", processor_s, "s"),
        Figure("  bytes of flows", workload.bytes_delivered, "B"),
        Figure("  link traversals", traversals, ""),
        Figure("  link traversals a second", traversals / wall_s, "1/s"),
        Figure("  packets sent again", workload.retransmissions, ""),
        Figure("  slowdown, mean", float(workload.records["slowdown"].mean()), ""),
        *(Figure(f"  slowdown, {n}", value, "") for n, value in zip(names, workload.slowdown, strict=True)),
        Figure("  built and programmed", built_s, "s"),
    ]


def main() -> None:
    """Print the figures."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("--duration-us", type=int, default=5000, help="time during which flows start")
    parser.add_argument(
        "--congestion-control",
        choices=congestion_control_names(),
        default="fixed-window",
        help="of all hosts",
    )
    parser.add_argument("--preset", help="of its parameters; by default the algorithm's own")
    parser.add_argument("--flow-sizes", default="websearch", help="distribution of the flows' sizes")
    options = parser.parse_args()
    pin_this_process(1, realtime=options.realtime)
    figures = measure(options.duration_us * 10**6, options.congestion_control, options.preset, options.flow_sizes)
    report("HPCC's 320 hosts in virtual time, one core", figures, as_json=options.json)


if __name__ == "__main__":
    main()
