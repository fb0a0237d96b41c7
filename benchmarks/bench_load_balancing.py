"""What load balancing is worth: a permutation on a non-blocking fat tree, one mode of the switches after the other.

    .venv/bin/python benchmarks/bench_load_balancing.py [--hosts N] [--bytes N] [--window BYTES]
        [--reordering-us N] [--retransmission NAME…] [--modes NAME…] [--json]

A fat tree of k-port switches (k³/4 hosts, 100 Gb/s links of 1 µs, fabric.p4 at every switch) whose hosts each write to
one other, drawn from the seed, and are written to by one: every link can be full, if the paths are shared evenly.
Packets carry 4,096 bytes; every fourth asks for an acknowledgement; each queue pair has a fixed window, so that no
congestion control hides what the paths do. With several queue pairs, each host's bytes are divided among so many
flows.

Throughput is the share of the line that a host's frames (payload and headers) took until its last acknowledgement,
over all hosts on average and of the slowest host. The 99th percentile is of hosts' completion times. With go-back-N,
`adaptive` goes by flowlets, as scenarios do by default. Times are emulated, so the machine does not matter.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from bench_permutation import PORTS, RATE_BPS, fabric_of_hosts
from figures import Figure, argument_parser, report

from weft import Fabric
from weft.controller.features.load_balancing import LoadBalancingMode
from weft.results.flow_tables import flow_table
from weft.scenario import RoutingSection, TransportSection
from weft.traffic.header_sizes import largest_frame_bytes
from weft.traffic.messages import AS_LENGTHS
from weft.traffic.patterns import Flow, permutation

GOAL_SHARE = 0.95
MTU_BYTES: Literal[4096] = 4096
PATIENCE_S = 10.0
"""Of emulated time."""
RETRANSMISSIONS: tuple[Literal["selective-repeat", "go-back-n"], ...] = ("selective-repeat", "go-back-n")


@dataclass(frozen=True)
class Case:
    """A mode, and among how many queue pairs each host divides what it sends."""

    mode: LoadBalancingMode
    queue_pairs: int = 1

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.mode}, {self.queue_pairs} queue pairs" if self.queue_pairs > 1 else self.mode


CASES = (
    Case("flow"),
    Case("flow_and_queue_pair", 4),
    Case("flow_and_queue_pair", 16),
    Case("flowlet"),
    Case("round_robin"),
    Case("random"),
    Case("adaptive"),
)
SPREADING = ("round_robin", "random", "adaptive")


@dataclass(frozen=True)
class Outcome:
    """Of one run: shares of the line, and the rest of its row."""

    mean_share: float
    slowest_share: float
    percentile_99_ps: float
    retransmissions: int


def flows_of(fabric: Fabric, size_bytes: int, queue_pairs: int) -> list[Flow]:
    """A permutation, each of its flows divided; workloads give each a queue pair of its own."""
    whole = permutation(len(fabric.topology.hosts), size_bytes, seed=1)
    return [
        Flow(each.source, each.destination, size_bytes // queue_pairs, plane=each.plane)
        for each in whole
        for _ in range(queue_pairs)
    ]


def run(
    case: Case, retransmission: Literal["selective-repeat", "go-back-n"], options: argparse.Namespace
) -> Outcome:
    """One permutation."""
    with Fabric(
        fabric_of_hosts(options.hosts),
        clock="virtual",
        seed=1,
        mtu_bytes=MTU_BYTES,
        int_telemetry=False,
        routing=RoutingSection(load_balancing=case.mode),
        transport=TransportSection(
            congestion_control="fixed-window",
            parameters={"window": f"{options.window // case.queue_pairs}B"},
            retransmission=retransmission,
            reordering_window=options.reordering_us * 10**6,
            ack_interval=4,
        ),
    ) as fabric:
        flows = flows_of(fabric, options.bytes, case.queue_pairs)
        prepared = fabric.hosts.prepare_workload(flows, telemetry=False, payload=AS_LENGTHS)
        _, ended = fabric.hosts.run_flows(prepared, PATIENCE_S)
    table = flow_table(flows, ended)
    completion_ps = table["completion_ps"].reshape(options.hosts, case.queue_pairs).max(axis=1)
    frames = -(-options.bytes // MTU_BYTES)
    wire_bits = 8 * (options.bytes + frames * (largest_frame_bytes(4, MTU_BYTES) - MTU_BYTES))
    shares = wire_bits / (completion_ps / 1e12) / RATE_BPS
    return Outcome(
        float(shares.mean()),
        float(shares.min()),
        float(np.percentile(completion_ps, 99)),
        int(table["retransmitted_packets"].sum()),
    )


def measure(options: argparse.Namespace) -> list[Figure]:
    """All rows."""
    cases = [case for case in CASES if case.mode in options.modes]
    return [
        figure for each in options.retransmission for case in cases for figure in rows(case, each, options)
    ]


def rows(
    case: Case, retransmission: Literal["selective-repeat", "go-back-n"], options: argparse.Namespace
) -> Sequence[Figure]:
    """What the table shows of a run."""
    outcome = run(case, retransmission, options)
    has_goal = retransmission == "selective-repeat" and case.mode in SPREADING
    return (
        Figure(
            f"{case.name}, {retransmission}",
            outcome.mean_share,
            "of the line",
            goal=GOAL_SHARE if has_goal else None,
        ),
        Figure("  the slowest host", outcome.slowest_share, "of the line"),
        Figure("  99th percentile", outcome.percentile_99_ps / 1e6, "us"),
        Figure("  packets sent again", outcome.retransmissions, ""),
    )


def main() -> None:
    """Print the figures."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("--hosts", type=int, choices=PORTS, default=16, help="of the fat tree")
    parser.add_argument("--bytes", type=int, default=10_000_000, help="that each host writes")
    parser.add_argument("--window", type=int, default=250_000, help="bytes of a host's queue pairs together")
    parser.add_argument("--reordering-us", type=int, default=50, help="reordering window of selective repeat")
    parser.add_argument(
        "--retransmission", nargs="+", choices=RETRANSMISSIONS, default=RETRANSMISSIONS, help="of all hosts"
    )
    modes = get_args(LoadBalancingMode)
    parser.add_argument("--modes", nargs="+", choices=modes, default=modes, help="of the switches")
    options = parser.parse_args()
    report(f"a permutation of {options.hosts} hosts", measure(options), as_json=options.json)


if __name__ == "__main__":
    main()
