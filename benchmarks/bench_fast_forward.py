"""Training steps with and without fast-forward: what it saves, and how far it is from packets.

    .venv/bin/python benchmarks/bench_fast_forward.py [--shapes NAME…] [--tolerance 1%] [--workers 1] [--json]

- tensor-pipeline: hosts of 8 ranks share tensors, 4 stages, 4 replicas, ZeRO 1.
- data: 32 replicas of a rank on 4 leaves; all-reduces of gradients across leaves.
- sharded: 32 ranks, ZeRO 3: weights are gathered before each layer's passes.
- pipeline: 8 stages, 4 replicas, interleaved; messages across leaves.
- experts: 16 ranks with experts, tokens to them and back by all-to-alls, 2 replicas.

A step runs with packets and then with fast-forward. *Step* is the error of its time. *Collectives* and *messages* are
the error of the time that is farthest off: a collective's from the last begin of a rank to the last end. Lengths in
place of data, 4,096 bytes a packet, fixed window. Only processor times depend on the machine.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from figures import Figure, argument_parser, report

from weft import Fabric, topologies
from weft.quantities.definitions import parse_share
from weft.results.fast_forward import FastForwardResult
from weft.run.task import Ended
from weft.run.traffic_kinds.model import TrainingJobTraffic
from weft.scenario import FidelitySection
from weft.topologies import FabricSpec
from weft.topologies.scale_up import with_scale_up
from weft.traffic.jobs import Job
from weft.traffic.jobs.operations import Kind

PATIENCE_S = 600.0
"""The longest that a step may take in emulated time."""
MODEL = {
    "family": "llama",
    "layers": 16,
    "hidden": 2048,
    "heads": 16,
    "kv_heads": 8,
    "feed_forward": 8192,
    "vocabulary": 8192,
    "sequence": 2048,
}
MOST_OF_STEP, MOST_OF_COLLECTIVE = 1.0, 3.0


@dataclass(frozen=True)
class Shape:
    """A step and its fabric."""

    leaves: int
    hosts_per_leaf: int
    parallel: Mapping[str, Any]
    micro_batches: int
    model: Mapping[str, Any]
    ranks_per_host: int = 1

    def fabric(self) -> FabricSpec:
        """Return leaves and 4 spines; with several ranks a host, rails."""
        clos = topologies.leaf_spine(
            planes=1,
            leaves=self.leaves,
            spines=4,
            hosts_per_leaf=self.hosts_per_leaf,
            host_rate_bps=400e9,
            oversubscription=1.0,
        )
        return clos if self.ranks_per_host == 1 else with_scale_up(clos, self.ranks_per_host, rail_optimised=True)

    @property
    def ranks(self) -> int:
        """Return how many ranks the fabric has."""
        return self.leaves * self.hosts_per_leaf

    def item(self) -> TrainingJobTraffic:
        """Return what a scenario would have."""
        return TrainingJobTraffic.model_validate(
            {"model": dict(self.model), "parallel": dict(self.parallel), "micro_batches": self.micro_batches}
        )


SHAPES = {
    "tensor-pipeline": Shape(
        8, 16, {"tensor": 8, "sequence": True, "pipeline": 4, "data": 4, "zero": 1}, 8, MODEL, ranks_per_host=8
    ),
    "data": Shape(4, 8, {"data": 32}, 2, MODEL | {"hidden": 1024, "feed_forward": 4096}),
    "sharded": Shape(2, 16, {"data": 32, "zero": 3}, 2, MODEL | {"layers": 8}),
    "pipeline": Shape(4, 8, {"pipeline": 8, "data": 4, "virtual_stages": 2, "schedule": "interleaved"}, 16, MODEL),
    "experts": Shape(
        2,
        16,
        {"data": 32, "expert": 16},
        4,
        MODEL | {"layers": 8, "experts": {"count": 16, "top_k": 2, "feed_forward": 2048}},
    ),
}


@dataclass(frozen=True)
class Step:
    """A step that was run."""

    job: Job
    ended: Ended
    step_ps: int
    seconds: float
    """Processor time, set-up included."""
    fast_forward: Sequence[FastForwardResult]


def run_step(shape: Shape, tolerance: float | None, workers: int) -> Step:
    """Run a step; with packets if there is no tolerance."""
    began_s = time.process_time()
    with Fabric(
        shape.fabric(),
        clock="virtual",
        mtu_bytes=4096,
        int_telemetry=False,
        workers=workers,
        fidelity=FidelitySection(fast_forward=tolerance),
    ) as fabric:
        task = shape.item().prepare_task(shape.ranks, 1)(fabric)
        assert task.job is not None
        ((result, ended),) = fabric.run_together([task.with_run()], PATIENCE_S)
        return Step(task.job, ended, result.step_ps, time.process_time() - began_s, list(fabric.summary().fast_forward))


Instance = tuple[int, int]
"""A collective of a job: its group, and its number there."""


def collective_times_ps(step: Step) -> dict[Instance, int]:
    """Return how long each collective took, from the last begin of a rank to the last end."""
    begun: dict[Instance, int] = defaultdict(int)
    ended: dict[Instance, int] = defaultdict(int)
    for part, times in zip(step.job.parts, step.ended.times, strict=True):
        operations = part.operations
        rows = operations.of_kind(Kind.COLLECTIVE)
        numbers = operations.collective_numbers().tolist()
        for row, number in zip(rows.tolist(), numbers, strict=True):
            group_slot, _ = operations.calls[operations.target[row]]
            instance = (part.groups[group_slot], number)
            begun[instance] = max(begun[instance], int(times.started_ps[row]))
            ended[instance] = max(ended[instance], int(times.finished_ps[row]))
    return {instance: ended[instance] - begun[instance] for instance in begun}


def worst_collective(packets: Step, repeated: Step) -> float:
    """Return by how much a collective's time is off at most, in percent; 0 without any."""
    with_packets, without = collective_times_ps(packets), collective_times_ps(repeated)
    return 100 * max((abs(without[each] / took_ps - 1) for each, took_ps in with_packets.items()), default=0.0)


def worst_message(packets: Step, repeated: Step) -> float:
    """Return by how much a message's time is off at most, from its begin to its acknowledgement, in percent."""
    worst = 0.0
    for part, with_packets, without in zip(packets.job.parts, packets.ended.times, repeated.ended.times, strict=True):
        rows = part.operations.of_kind(Kind.SEND)
        took_ps = (with_packets.finished_ps - with_packets.started_ps)[rows]
        off_ps = np.abs((without.finished_ps - without.started_ps)[rows] - took_ps)
        worst = max(worst, float(np.max(off_ps / np.maximum(took_ps, 1), initial=0.0)))
    return 100 * worst


def figures_of(name: str, shape: Shape, tolerance: float, workers: int) -> list[Figure]:
    """Run a shape both ways; its figures."""
    packets, repeated = run_step(shape, None, workers), run_step(shape, tolerance, workers)
    (counted,) = repeated.fast_forward
    return [
        Figure(f"{name}: {shape.ranks} ranks", packets.step_ps / 1e9, "emulated ms"),
        Figure("  with packets", packets.seconds, "s"),
        Figure(
            "  with fast-forward", repeated.seconds, "s", beside="packets", ratio=repeated.seconds / packets.seconds
        ),
        Figure("  operations repeated", 100 * counted.repeated / counted.operations, "%"),
        Figure("  bytes between hosts skipped", 100 * counted.skipped_bytes / max(1, counted.data_bytes), "%"),
        Figure("  error bound", 100 * (counted.largest_deviation or 0.0), "%"),
        Figure(
            "  step",
            100 * abs(repeated.step_ps / packets.step_ps - 1),
            "%",
            goal=MOST_OF_STEP,
            at_most=True,
        ),
        Figure(
            "  collectives",
            worst_collective(packets, repeated),
            "%",
            goal=MOST_OF_COLLECTIVE,
            at_most=True,
        ),
        Figure("  messages", worst_message(packets, repeated), "%"),
    ]


def main() -> None:
    """Measure, and print."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("--shapes", nargs="+", choices=tuple(SHAPES), default=list(SHAPES))
    parser.add_argument("--tolerance", type=parse_share, default=0.01)
    parser.add_argument("--workers", type=int, default=1, help="threads of the engine")
    arguments = parser.parse_args()
    figures = [
        figure
        for name in arguments.shapes
        for figure in figures_of(name, SHAPES[name], arguments.tolerance, arguments.workers)
    ]
    report("Fast-forward", figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
