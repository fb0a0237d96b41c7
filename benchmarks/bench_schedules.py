"""Ring all-reduces in virtual time: processor time inside the engine and outside of it, and memory.

    .venv/bin/python benchmarks/bench_schedules.py [--ranks N…] [--bytes N] [--data KIND…] [--json] [--realtime]

Each run is a process of its own, so that its peak of memory is its own. A leaf/spine plane at 400 Gb/s is built and
programmed, then as many ranks all-reduce by a ring (4 MiB each, MTU 4,096 B), with lengths or with data, verified.
*Outside* is all between the call and its result but for the engine's events: schedules, connections, commands, buffers,
results, verification.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from engine_time import engine_time
from figures import Figure, argument_parser, report
from scheduling import measured_apart

from weft import Fabric, topologies
from weft.run.collectives import CollectiveRequest

RATE_BPS = 400e9
DELAY_PS = 500_000
MTU_BYTES = 4096
QUEUE_CAPACITY_BYTES = 4 << 20
GIB = 1 << 30
HOSTS_PER_LEAF = {64: 8, 256: 16, 1024: 32, 4096: 64}
LENGTHS, RANDOM = KINDS = ("lengths", "random")


def measure(ranks: int, size_bytes: int, kind: str) -> dict[str, float]:
    """Seconds of processor time inside and outside, bytes at most resident."""
    per_leaf = HOSTS_PER_LEAF[ranks]
    topology = topologies.leaf_spine(
        planes=1,
        leaves=ranks // per_leaf,
        spines=per_leaf,
        hosts_per_leaf=per_leaf,
        host_rate_bps=RATE_BPS,
        delay_ps=DELAY_PS,
        queue_capacity_bytes=QUEUE_CAPACITY_BYTES,
    )
    random = np.random.default_rng(1)
    buffers = [random.integers(-1000, 1000, size_bytes // 4, np.int32) for _ in range(ranks if kind == RANDOM else 0)]
    with Fabric(topology, clock="virtual", mtu_bytes=MTU_BYTES) as fabric:
        began = time.process_time()
        with engine_time() as spent:
            if kind == RANDOM:
                result = fabric.run(CollectiveRequest("allreduce", buffers, "ring")).result
            else:
                result = fabric.run(CollectiveRequest("allreduce", size_bytes, "ring")).result
        whole = time.process_time() - began
    if not result.ok:
        raise RuntimeError(f"{result.wrong} wrong elements")
    return {
        "inside": spent[0],
        "outside": whole - spent[0],
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB,
        "emulated_us": result.time_ps / 1e6,
    }


def figures_of(ranks: int, kind: str, found: dict[str, float]) -> list[Figure]:
    """The figures of one run."""
    return [
        Figure(f"{ranks} ranks, {kind}", found["emulated_us"], "emulated us"),
        Figure("  inside the engine", found["inside"], "s"),
        Figure(
            "  outside",
            found["outside"],
            "s",
            beside="inside",
            ratio=found["outside"] / found["inside"],
            goal=1.0 if ranks >= 256 else None,
            at_most=True,
        ),
        Figure("  peak memory", found["peak"], "GiB"),
    ]


def main() -> None:
    """Measure each number of ranks with each kind of data, and print."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("--ranks", nargs="*", type=int, choices=sorted(HOSTS_PER_LEAF), default=[64, 256, 1024])
    parser.add_argument("--bytes", type=int, default=4 << 20, help="of each rank")
    parser.add_argument("--data", nargs="*", choices=KINDS, default=[LENGTHS, RANDOM])
    arguments = parser.parse_args()
    figures = []
    for kind in arguments.data:
        for ranks in arguments.ranks:
            found = measured_apart(measure, ranks, arguments.bytes, kind, realtime=arguments.realtime)
            figures += figures_of(ranks, kind, found)
    report("Ring all-reduces in virtual time", figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
