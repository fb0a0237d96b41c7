"""The runs that the gate counts (bench_gate.py), one process each; prints a line of JSON for each.

    .venv/bin/python benchmarks/gate_workloads.py [--requests LIBRARY] [--calls JSON]

All modules and programs are loaded once, and each workload then runs in a child of this process, so that no workload
changes the memory or the cache of the next. Calls of the clock are counted that `--calls` lists by workload, and for
set-up the building of the fabric. Without `--calls` nothing is counted, and the lines say which calls have the work.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench_permutation import fabric_of_hosts, packet_hops
from engine_time import around_clock_calls

from weft import Fabric
from weft.engine import Partitions
from weft.run.collectives import CollectiveRequest
from weft.scenario import AggregationSection, TransportSection
from weft.topologies import FabricSpec, leaf_spine

SET_UP = "set-up of 256 hosts"
LEAST_SHARE = 0.01
"""Of a workload's events, in a call of the clock that is worth counting."""
RATE_BPS = 100e9


@dataclass(frozen=True)
class Workload:
    """A fabric with its options, and the traffic on it."""

    fabric: Callable[[], FabricSpec]
    options: dict[str, Any]
    drive: Callable[[Fabric], object]

    def started(self) -> Fabric:
        """A fabric that is not up yet."""
        return Fabric(self.fabric(), clock="virtual", seed=1, workers=1, **self.options)


def _leaves(leaves: int, spines: int, hosts_per_leaf: int) -> FabricSpec:
    return leaf_spine(
        planes=1,
        leaves=leaves,
        spines=spines,
        hosts_per_leaf=hosts_per_leaf,
        host_rate_bps=RATE_BPS,
        queue_capacity_bytes=4 << 20,
    )


WORKLOADS = {
    "permutation": Workload(
        lambda: fabric_of_hosts(128),
        {
            "mtu_bytes": 4096,
            "int_telemetry": False,
            "transport": TransportSection(
                congestion_control="swift", retransmission="selective-repeat", path="spray", ack_interval=1
            ),
        },
        lambda fabric: fabric.permutation(128_000, data="lengths"),
    ),
    "websearch": Workload(
        lambda: _leaves(4, 4, 8),
        {
            "int_telemetry": True,
            "transport": TransportSection(congestion_control="hpcc", ack_interval=1),
        },
        lambda fabric: fabric.workload("websearch", 0.3, 100_000_000),
    ),
    "in-network": Workload(
        lambda: _leaves(4, 2, 4),
        {"int_telemetry": False, "aggregation": AggregationSection(lanes=256)},
        lambda fabric: fabric.run(CollectiveRequest("allreduce", 1 << 20, "in-network", dtype="int32")),
    ),
}


@dataclass
class Counting:
    """Start and stop of valgrind's counting, and the calls to count by number."""

    library: ctypes.CDLL | None = None
    calls: dict[str, list[int]] = field(default_factory=dict)

    @contextmanager
    def on(self, wanted: bool = True) -> Iterator[None]:
        """Count what happens within it, if wanted."""
        if self.library is None or not wanted:
            yield
            return
        self.library.start_counting()
        try:
            yield
        finally:
            self.library.stop_counting()


@contextmanager
def clock_calls(counting: Counting, counted: Sequence[int]) -> Iterator[list[int]]:
    """Within it, calls of the clock with these numbers are counted; the list gets the events of every call."""
    events: list[int] = []

    @contextmanager
    def noted(clock: Partitions) -> Iterator[None]:
        before = clock.events_served
        try:
            with counting.on(len(events) in counted):
                yield
        finally:
            events.append(clock.events_served - before)

    with around_clock_calls(noted):
        yield events


class _Allocated(ctypes.Structure):
    """glibc's struct mallinfo2 (mallinfo(3))."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def allocated_bytes() -> int:
    """Memory in use. What the allocator holds free differs by a quarter between checkouts of the same sources."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Allocated
    found = mallinfo2()
    return int(found.uordblks + found.hblkhd)


def run(name: str, counting: Counting) -> dict[str, Any]:
    """Run a workload: its packet-hops, memory, and the calls of the clock that had the work."""
    before_bytes = allocated_bytes()
    workload = WORKLOADS[name]
    with workload.started() as fabric:
        # As in a run that is long enough to pay for compiling.
        fabric.lab.specialised_code.now()
        hops = packet_hops(fabric)
        with clock_calls(counting, counting.calls.get(name, ())) as events:
            workload.drive(fabric)
        return {
            "packet_hops": packet_hops(fabric) - hops,
            "memory_bytes": allocated_bytes() - before_bytes,
            "calls": [number for number, count in enumerate(events) if count >= LEAST_SHARE * sum(events)],
        }


def set_up(counting: Counting) -> dict[str, Any]:
    """Build and program a fabric of 256 hosts, with programs that are loaded."""
    with counting.on(bool(counting.calls)), Fabric(_leaves(8, 4, 32), clock="virtual", seed=1, workers=1):
        pass
    return {}


def in_child(name: str, work: Callable[[], dict[str, Any]]) -> None:
    """Do it in a child, which prints the result. RuntimeError if it fails."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        status = 1
        try:
            print(json.dumps({"name": name, "process": os.getpid(), **work()}), flush=True)
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError(f"{name} failed")


def main() -> None:
    """Run them all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", help="gate_requests.c as a library")
    parser.add_argument("--calls", type=json.loads, default={}, help="calls of the clock to count, by workload")
    options = parser.parse_args()
    library = None if options.requests is None else ctypes.CDLL(options.requests)
    counting = Counting(library, options.calls)
    # One fabric of each kind, so that all modules and programs are loaded before the children begin.
    for workload in WORKLOADS.values():
        with Fabric(_leaves(2, 1, 2), clock="virtual", seed=1, **workload.options):
            pass
    gc.collect()
    for name in WORKLOADS:
        in_child(name, lambda name=name: run(name, counting))  # type: ignore[misc]
    in_child(SET_UP, lambda: set_up(counting))


if __name__ == "__main__":
    main()
