"""Packet-hops per second of real hosts' work: a permutation over three tiers in virtual time, beside bare bursts.

    .venv/bin/python benchmarks/bench_permutation.py [--hosts N] [--congestion-control NAME] [--path NAME]
        [--protocol NAME] [--bytes N] [--mtu N] [--rounds N] [--json] [--realtime]

A fat tree of k-port switches (k³/4 hosts, 100 Gb/s links of 1 µs, fabric.p4 at every switch) whose hosts each write
2 MB to one other, drawn from the seed, and are written to by one. Packets carry 4,096 bytes, are sprayed over all paths
and acknowledged one by one; retransmission is selective and congestion control is Swift. With `--path flow` every queue
pair keeps one path, which HPCC needs; HPCC's packets carry INT.

A packet-hop is one packet, data or acknowledgement, through one switch: parse, tables, queue, deparse, link. The
processor time is that of the run alone; building the fabric, programming it and connecting the queue pairs is shown
apart. In between, the burst benchmark (bench_hops.py, 64 endpoints), whose hosts do nothing but send prepared frames,
takes its turns in the same process. Each figure is the best of the rounds. The ratio does not depend on how fast the
machine happens to be.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench_hops import LINEAR_FROM, Runner, fabric_of, fabric_rig, frames, take_turns
from fabric_setup import compiled_fabric
from figures import Figure, argument_parser, report
from scheduling import pin_this_process

from weft import Fabric
from weft.engine import congestion_control_names
from weft.results.flows import FlowsResult
from weft.scenario import TransportSection
from weft.topologies import FabricSpec, fat_tree
from weft.traffic.transports.registry import TRANSPORT_KINDS

GOAL_TIMES_BURSTS = 0.65
HOSTS_WITH_GOAL = 1024
NEEDS_INT = "hpcc"
RATE_BPS = 100e9
DELAY_PS = 1_000_000
QUEUE_CAPACITY_BYTES = 4 << 20
BURST_ROUNDS = 10
PORTS = {ports**3 // 4: ports for ports in range(4, 21, 2)}
"""Of a switch, by the number of hosts."""


def fabric_of_hosts(hosts: int) -> FabricSpec:
    """The fat tree with so many hosts, a key of PORTS."""
    half = PORTS[hosts] // 2
    return fat_tree(
        pods=2 * half,
        leaves_per_pod=half,
        spines_per_pod=half,
        cores_per_spine=half,
        hosts_per_leaf=half,
        host_rate_bps=RATE_BPS,
        delay_ps=DELAY_PS,
        queue_capacity_bytes=QUEUE_CAPACITY_BYTES,
    )


@dataclass
class Stopwatch:
    """Processor time from the moment that a fabric reports the run of its flows."""

    started_s: float = field(default_factory=time.process_time)

    def progress(self, text: str) -> None:
        """Restart the timer when the flows are about to run."""
        if text.startswith("running "):
            self.started_s = time.process_time()

    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.process_time() - self.started_s


@dataclass(frozen=True)
class Round:
    """A permutation that has run."""

    processor_s: float
    connecting_s: float
    packet_hops: int
    flows: FlowsResult

    @property
    def packet_hops_per_s(self) -> float:
        """The rate, of processor time."""
        return self.packet_hops / self.processor_s


def packet_hops(fabric: Fabric) -> int:
    """Packets that all switches have received so far."""
    stats = fabric.lab.switch_stats() or {}
    return sum(switch["received_packets"] for switch in stats["switches"].values())


def run_permutation(fabric: Fabric, stopwatch: Stopwatch, size_bytes: int) -> Round:
    """One permutation. RuntimeError if a byte is missing."""
    before = packet_hops(fabric)
    began_s = time.process_time()
    flows = fabric.permutation(size_bytes, data="lengths")
    processor_s = stopwatch.elapsed_s()
    expected = len(fabric.topology.hosts) * size_bytes
    if flows.bytes_delivered != expected:
        raise RuntimeError(f"{flows.bytes_delivered} bytes of {expected} arrived")
    return Round(processor_s, stopwatch.started_s - began_s, packet_hops(fabric) - before, flows)


def burst_runner() -> Runner:
    """The burst benchmark's fabric of 64 endpoints."""
    bursts = fabric_of(LINEAR_FROM, planes=1)
    with tempfile.TemporaryDirectory() as folder:
        return Runner([fabric_rig(bursts, compiled_fabric(Path(folder)))], frames(bursts))


def of_protocol(options: argparse.Namespace) -> dict[str, str]:
    """Return the keys of `transport` that say which it is; MRC and UET choose the paths themselves."""
    if options.protocol == "rc":
        return {"retransmission": "selective-repeat", "path": options.path}
    return {"protocol": options.protocol}


def measure(options: argparse.Namespace) -> list[Figure]:
    """All figures."""
    bursts = burst_runner()
    stopwatch = Stopwatch()
    fabric = Fabric(
        fabric_of_hosts(options.hosts),
        progress=stopwatch.progress,
        clock="virtual",
        seed=1,
        mtu_bytes=options.mtu,
        int_telemetry=options.congestion_control == NEEDS_INT,
        transport=TransportSection(
            congestion_control=options.congestion_control, ack_interval=1, **of_protocol(options)
        ),
    )
    began_s = time.process_time()
    rounds: list[Round] = []
    with fabric:
        built_s = time.process_time() - began_s
        for _ in range(options.rounds):
            take_turns([bursts], BURST_ROUNDS)
            rounds.append(run_permutation(fabric, stopwatch, options.bytes))
        take_turns([bursts], BURST_ROUNDS)
    best = max(rounds, key=lambda each: each.packet_hops_per_s)
    return [
        Figure(
            f"{options.hosts} hosts, {options.congestion_control}, "
            f"{options.path if options.protocol == 'rc' else options.protocol}",
            best.packet_hops_per_s,
            "packet-hops/s",
            "bursts",
            best.packet_hops_per_s / bursts.best_hops_per_s,
            GOAL_TIMES_BURSTS if options.hosts == HOSTS_WITH_GOAL else None,
        ),
        Figure("  bursts of 64 endpoints", bursts.best_hops_per_s, "packet-hops/s"),
        Figure("  packet-hops", best.packet_hops, ""),
        Figure("  processor time of the run", best.processor_s, "s"),
        Figure("  of connecting the queue pairs", best.connecting_s, "s"),
        Figure("  of building and programming", built_s, "s"),
        Figure("  in emulated time", best.flows.time_ps / 1e6, "us"),
        Figure("  packets sent again", best.flows.retransmissions, ""),
    ]


def main() -> None:
    """Print the figures."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("--hosts", type=int, choices=PORTS, default=HOSTS_WITH_GOAL, help="of the fat tree")
    parser.add_argument(
        "--congestion-control", choices=congestion_control_names(), default="swift", help="of all hosts"
    )
    parser.add_argument("--path", choices=["spray", "flow"], default="spray", help="of a queue pair's packets")
    parser.add_argument("--protocol", choices=TRANSPORT_KINDS, default="rc", help="of all hosts; others ignore --path")
    parser.add_argument("--bytes", type=int, default=2_000_000, help="of each flow")
    parser.add_argument("--mtu", type=int, choices=[1024, 2048, 4096], default=4096, help="payload of a packet")
    parser.add_argument("--rounds", type=int, default=2, help="of which the best counts")
    options = parser.parse_args()
    pin_this_process(1, realtime=options.realtime)
    report("a permutation in virtual time, one core", measure(options), as_json=options.json)


if __name__ == "__main__":
    main()
