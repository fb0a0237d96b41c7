"""What load balancing is worth: a permutation on a non-blocking fat tree, one mode of the switches after the other.

    .venv/bin/python benchmarks/bench_load_balancing.py [--hosts N] [--bytes N…] [--window BYTES…]
        [--congestion-control NAME] [--parameters NAME=VALUE…] [--hysteresis BYTES…] [--reordering-us N]
        [--retransmission NAME…] [--modes NAME…] [--queue-pairs N…] [--json]

A fat tree of k-port switches (k³/4 hosts, 100 Gb/s links of 1 µs, fabric.p4 at every switch) whose hosts each write to
one other, drawn from the seed, and are written to by one: every link can be full, if the paths are shared evenly.
Packets carry 4,096 bytes; every fourth asks for an acknowledgement; each host has a fixed window, so that no congestion
control hides what the paths do. Where each flow has several queue pairs, they share it.

Throughput is the share of the line that a host's frames (payload and headers) took until its last acknowledgement, over
all hosts on average, beside that of a lone flow, and of the slowest host. A lone flow has less than the line, too: it
waits for its last packet to arrive and to be acknowledged. What flows of two sizes do not have in common is the steady
state: by how much the longer ones are longer, in bytes and in time. The 99th percentile is of hosts' completion times.
Times are emulated, so the machine does not matter.

With go-back-N, `adaptive` goes by flowlets, as scenarios do by default. What adaptive choices relied on has rows of its
own: how many found a queue, and how old its depth was at most in 99 % of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from bench_permutation import PORTS, RATE_BPS, fabric_of_hosts
from figures import Figure, argument_parser, report

from weft import Fabric
from weft.controller.features.depth_ages import DepthAges
from weft.controller.features.load_balancing import DEFAULT_HYSTERESIS_BYTES, LoadBalancingMode
from weft.engine import congestion_control_names
from weft.recording.ideal_times import IdealTimes
from weft.scenario import RoutingSection, TransportSection
from weft.traffic.header_sizes import IMMEDIATE, PAD, RETH, overhead_bytes
from weft.traffic.patterns import permutation

Retransmission = Literal["selective-repeat", "go-back-n"]

GOAL_SHARE = 0.95
MTU_BYTES: Literal[4096] = 4096
PATIENCE_S = 10.0
"""Of emulated time."""
RETRANSMISSIONS: tuple[Retransmission, ...] = ("selective-repeat", "go-back-n")
SPREADING = ("round_robin", "random", "adaptive")
FIXED_WINDOW = "fixed-window"
DEFAULT_WINDOW_BYTES = 400_000
"""Twice what the longest path holds."""


@dataclass(frozen=True)
class Case:
    """A mode of the switches, and what the hosts do."""

    mode: LoadBalancingMode
    retransmission: Retransmission
    window_bytes: int
    queue_pairs: int = 1
    hysteresis_bytes: int = DEFAULT_HYSTERESIS_BYTES

    @property
    def name(self) -> str:
        """For the table."""
        more = f", {self.queue_pairs} queue pairs" if self.queue_pairs > 1 else ""
        if self.hysteresis_bytes != DEFAULT_HYSTERESIS_BYTES:
            more += f", hysteresis {self.hysteresis_bytes:,} B"
        if self.window_bytes != DEFAULT_WINDOW_BYTES:
            more += f", window {self.window_bytes:,} B"
        return f"{self.mode}{more}, {self.retransmission}"

    @property
    def has_goal(self) -> bool:
        """Whether packets are spread over all paths, and taken in any order."""
        return self.retransmission == "selective-repeat" and self.mode in SPREADING


@dataclass(frozen=True)
class Outcome:
    """Of one permutation: completion times by host and those of lone flows, what each sent, packets sent again."""

    completion_ps: npt.NDArray[np.int64]
    lone_ps: npt.NDArray[np.int64]
    wire_bits: int
    retransmissions: int

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """Of the line, by host."""
        return self.wire_bits / (self.completion_ps / 1e12) / RATE_BPS

    @property
    def to_lone_flows(self) -> float:
        """The mean share to the one that hosts would have alone."""
        return float(self.shares.mean() / (self.wire_bits / (self.lone_ps / 1e12) / RATE_BPS).mean())


def steady_share(shorter: Outcome, longer: Outcome) -> float:
    """Of the line: what all hosts sent more, in the time that they took more on average."""
    more_ps = float((longer.completion_ps - shorter.completion_ps).mean())
    return (longer.wire_bits - shorter.wire_bits) / (more_ps / 1e12) / RATE_BPS


def run(case: Case, options: argparse.Namespace) -> tuple[list[Outcome], DepthAges]:
    """A permutation of each size, on one fabric; and the ages of the depths that choices relied on."""
    parameters = (
        {"window": f"{case.window_bytes // case.queue_pairs}B"}
        if options.congestion_control == FIXED_WINDOW
        else dict(each.split("=", 1) for each in options.parameters)
    )
    adaptive = {"hysteresis": case.hysteresis_bytes} if case.mode == "adaptive" else {}
    with Fabric(
        fabric_of_hosts(options.hosts),
        clock="virtual",
        seed=1,
        mtu_bytes=MTU_BYTES,
        int_telemetry=False,
        routing=RoutingSection(load_balancing=case.mode, **adaptive),
        transport=TransportSection(
            congestion_control=options.congestion_control,
            parameters=parameters,
            retransmission=case.retransmission,
            reordering_window=options.reordering_us * 10**6,
            ack_interval=4,
        ),
    ) as fabric:
        outcomes = [run_size(fabric, size_bytes, case.queue_pairs) for size_bytes in options.bytes]
        ages = fabric.lab.controller.read_depth_ages() if case.mode == "adaptive" else {}
    return outcomes, sum(ages.values(), DepthAges())


def run_size(fabric: Fabric, size_bytes: int, queue_pairs: int) -> Outcome:
    """One permutation."""
    flows = permutation(len(fabric.topology.hosts), size_bytes, seed=1, queue_pairs=queue_pairs)
    result = fabric.run_flows("permutation", flows, PATIENCE_S, data="lengths")
    wire_bytes = sum(write_bytes(span.length_bytes) for span, _ in flows[0].parts())
    ends = (result.records[name] for name in ("source", "destination", "plane", "size_bytes"))
    lone_ps = IdealTimes.of_fabric(fabric.topology, fabric.options).of(*ends)
    return Outcome(result.records["completion_ps"], lone_ps, 8 * wire_bytes, result.retransmissions)


def write_bytes(size_bytes: int) -> int:
    """Return what the frames of a WRITE with immediate have in all."""
    frames = -(-size_bytes // MTU_BYTES)
    padding = -size_bytes % PAD
    return size_bytes + padding + frames * overhead_bytes(4, int_telemetry=False) + RETH + IMMEDIATE


def cases_of(options: argparse.Namespace) -> Iterator[Case]:
    """All that are asked for."""
    for retransmission in options.retransmission:
        for mode in options.modes:
            counts = options.queue_pairs if mode == "flow_and_queue_pair" else [1]
            depths = options.hysteresis if mode == "adaptive" else [DEFAULT_HYSTERESIS_BYTES]
            for window_bytes in options.window:
                for count in counts:
                    yield from (Case(mode, retransmission, window_bytes, count, depth) for depth in depths)


def rows(case: Case, sizes_bytes: Sequence[int], outcomes: Sequence[Outcome], ages: DepthAges) -> list[Figure]:
    """What the table shows of a case."""
    goal = GOAL_SHARE if case.has_goal else None
    found = [Figure(case.name, case.window_bytes, "B window")]
    for size_bytes, outcome in zip(sizes_bytes, outcomes, strict=True):
        what = f"  {size_bytes:,} B"
        found += [
            Figure(what, float(outcome.shares.mean()), "of the line", "a lone flow", outcome.to_lone_flows),
            Figure(f"{what}, the slowest host", float(outcome.shares.min()), "of the line"),
            Figure(f"{what}, 99th percentile", float(np.percentile(outcome.completion_ps, 99)) / 1e6, "us"),
            Figure(f"{what}, packets sent again", outcome.retransmissions, ""),
        ]
    if len(outcomes) == 2:
        found.append(Figure("  steady state", steady_share(*outcomes), "of the line", goal=goal))
    if ages.choices:
        found += [
            Figure("  choices that found a queue", ages.queued.count / ages.choices, "of all"),
            Figure("  age of its depth, median", (ages.queued.at_most_ns(0.5) or 0) / 1e3, "us at most"),
            Figure("  age of its depth, 99 %", (ages.queued.at_most_ns(0.99) or 0) / 1e3, "us at most"),
        ]
    return found


def measure(options: argparse.Namespace) -> list[Figure]:
    """All rows."""
    return [figure for case in cases_of(options) for figure in rows(case, options.bytes, *run(case, options))]


def parser() -> argparse.ArgumentParser:
    """Its options."""
    made: argparse.ArgumentParser = argument_parser(__doc__)
    made.add_argument("--hosts", type=int, choices=PORTS, default=16, help="of the fat tree")
    made.add_argument("--bytes", type=int, nargs="+", default=[2_000_000, 16_000_000], help="that each host writes")
    made.add_argument(
        "--window",
        type=int,
        nargs="+",
        default=[DEFAULT_WINDOW_BYTES],
        help="bytes of a host's queue pairs together",
    )
    made.add_argument(
        "--congestion-control", choices=congestion_control_names(), default=FIXED_WINDOW, help="of all hosts"
    )
    made.add_argument("--parameters", nargs="+", default=[], help="of that, as scenarios write them")
    made.add_argument(
        "--hysteresis", type=int, nargs="+", default=[DEFAULT_HYSTERESIS_BYTES], help="bytes, of adaptive"
    )
    made.add_argument("--reordering-us", type=int, default=100, help="reordering window of selective repeat")
    made.add_argument(
        "--retransmission", nargs="+", choices=RETRANSMISSIONS, default=RETRANSMISSIONS, help="of all hosts"
    )
    modes = get_args(LoadBalancingMode)
    made.add_argument("--modes", nargs="+", choices=modes, default=modes, help="of the switches")
    made.add_argument("--queue-pairs", type=int, nargs="+", default=[4, 16], help="of a flow, with flow_and_queue_pair")
    return made


def main() -> None:
    """Print the figures."""
    options = parser().parse_args()
    report(f"a permutation of {options.hosts} hosts", measure(options), as_json=options.json)


if __name__ == "__main__":
    main()
