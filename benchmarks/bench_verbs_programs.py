"""perftest on a lab's RDMA devices beside programs of `weft.rdma` that do the same, in one lab of Mininet, in turns.

    sudo .venv/bin/python benchmarks/bench_verbs_programs.py [--dilation 1000] [--latency-size 8]
        [--bandwidth-size 64KiB] [--iterations 100] [--turns 3] [--json]

Two hosts at 100 Gb/s behind two leaves and a spine. One-way latencies are half of a ping-pong's median round trip: of
ib_write_lat, which looks at its memory, and of WRITEs with immediate. Bandwidths are those of data. Times are emulated:
what perftest measures is real, and divided by the dilation. Of the turns the shortest latency and the largest bandwidth
count. docs/verbs.md explains them. Needs perftest.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from figures import Figure, argument_parser, report

from weft import Fabric, topologies
from weft.clocks.real.lab import MininetLab
from weft.clocks.real.parallel_programs import outputs_of
from weft.errors import EnvironmentLacksError, WeftError
from weft.quantities.units import parse_size_bytes
from weft.verbs.libraries import missing_because

LINE_GBPS = 100
TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1, host_rate_bps=LINE_GBPS * 10**9)
SERVER, CLIENT = (host.name for host in TOPOLOGY.hosts)
PROGRAMS = Path(__file__).with_name("verbs_ping_pong.py")
TIMEOUT_S = 300.0
# Columns of perftest's last line of figures.
TYPICAL_US, AVERAGE_GBPS = 4, 3


def perftest(fabric: Fabric, command: str, column: int) -> float:
    """Run a program of perftest between both hosts; return a figure that the client prints."""
    assert isinstance(fabric.lab, MininetLab)
    address = str(TOPOLOGY.hosts[0].nics[0].ipv4.ip)
    # The server listens some time after it has begun, and a client tries once only.
    retrying = f"for i in $(seq 50); do {command} {address} && exit 0; sleep 0.2; done; exit 1"
    commands = {SERVER: ["sh", "-c", command], CLIENT: ["sh", "-c", retrying]}
    printed = outputs_of(fabric.lab, commands, TIMEOUT_S)[CLIENT]
    rows = [line.split() for line in printed.splitlines() if line[:2].strip().isdigit()]
    return float(rows[-1][column])


def program(fabric: Fabric, name: str, size_bytes: int, iterations: int) -> float:
    """Run a program of `weft.rdma` on both hosts; return what the client reports."""
    common = {"size_bytes": size_bytes, "iterations": iterations}
    result = fabric.rdma(
        {SERVER: f"{PROGRAMS}:{name}", CLIENT: f"{PROGRAMS}:{name}"},
        {SERVER: common, CLIENT: {**common, "peer": SERVER}},
        timeout_s=TIMEOUT_S,
    )
    (value,) = next(each.values for each in result.programs if each.host == CLIENT).values()
    return value


def measured_figures(options: argparse.Namespace) -> list[Figure]:
    """Bring the lab up and measure in turns. Raises EnvironmentLacksError without perftest or devices."""
    if shutil.which("ib_write_lat") is None:
        raise EnvironmentLacksError("ib_write_lat is missing (apt install perftest)")
    if lacking := missing_because():
        raise EnvironmentLacksError(lacking)
    latency = (options.latency_size, options.iterations)
    bandwidth = (options.bandwidth_size, options.iterations)
    found: list[tuple[float, float, float, float]] = []
    with Fabric(TOPOLOGY, clock="real", dilation=options.dilation) as fabric:
        for _ in range(options.turns):
            shared = "-x 0 -F -s {} -n {}".format
            found.append(
                (
                    perftest(fabric, f"ib_write_lat {shared(*latency)}", TYPICAL_US) / options.dilation,
                    program(fabric, "ping_pong", *latency),
                    perftest(fabric, f"ib_write_bw --report_gbits {shared(*bandwidth)}", AVERAGE_GBPS)
                    * options.dilation,
                    program(fabric, "stream", *bandwidth),
                )
            )
        lateness = fabric.summary().lateness
    if lateness is not None and not lateness.valid:
        print(f"the machine was too slow: set --dilation {lateness.sufficient_dilation:g} or more", file=sys.stderr)
    of_perftest_us, of_weft_us, of_perftest_gbps, of_weft_gbps = zip(*found, strict=True)
    return [
        Figure(f"one way, {options.latency_size} B, weft.rdma", min(of_weft_us), "us"),
        Figure(
            f"one way, {options.latency_size} B, ib_write_lat",
            min(of_perftest_us),
            "us",
            "weft.rdma",
            min(of_perftest_us) / min(of_weft_us),
            goal=1.1,
            at_most=True,
        ),
        Figure(
            f"data, {options.bandwidth_size} B, weft.rdma",
            max(of_weft_gbps),
            "Gb/s",
            "line rate",
            max(of_weft_gbps) / LINE_GBPS,
        ),
        Figure(
            f"data, {options.bandwidth_size} B, ib_write_bw",
            max(of_perftest_gbps),
            "Gb/s",
            "line rate",
            max(of_perftest_gbps) / LINE_GBPS,
        ),
    ]


def main() -> None:
    """Measure and print."""
    parser = argument_parser(__doc__)
    parser.add_argument("--dilation", type=float, default=1000.0)
    parser.add_argument("--latency-size", type=parse_size_bytes, default=8)
    parser.add_argument("--bandwidth-size", type=parse_size_bytes, default=65536)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    try:
        figures = measured_figures(options)
    except WeftError as error:
        raise SystemExit(str(error)) from None
    report("RDMA programs between two hosts in Mininet, emulated time", figures, as_json=options.json)


if __name__ == "__main__":
    main()
