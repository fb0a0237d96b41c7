"""One step of training a 70B model on 1,024 ranks, every byte of it, in virtual time.

    .venv/bin/python benchmarks/bench_training_job.py [--pipeline 8] [--data 16] [--layers 80] [--micro-batches 16]
        [--zero 1] [--shrink 16] [--workers 2] [--fidelity 32KiB] [--fast-forward 1%] [--json]

Hosts of 8 ranks with scale-up links of 3.6 Tb/s share tensors; pipeline stages and data-parallel replicas meet over
rails of 400 Gb/s (leaves of 32 ranks, spines without oversubscription, links of 1 µs), fabric.p4 at every switch,
packets of 4,096 B with lengths in place of data; with `--fidelity`, segments of so many bytes; with `--fast-forward`,
operations that take as long each time are repeated without packets. Fewer stages, replicas,
layers or micro-batches make a slice. So does `--shrink N`, for many ranks: hidden size, feed-forward part, vocabulary
and sequence are divided, and messages by N².

*Outside* is all between the call and its result but for the engine's events: the job, its schedules, connections,
commands, results. The engine's rate is in packet-hops (a packet that a NIC or a switch port has sent) for each second
of its processor time. Of a slice two lines say what the whole step would take if processor time grows as the bytes
that leave hosts, and as those that do not; it lies between them. The whole step of more ranks has their stages and
replicas.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass

from engine_time import engine_time
from figures import Figure, argument_parser, report
from scheduling import measured_apart

from weft import Fabric, topologies
from weft.jobs.models import MODELS
from weft.quantities.definitions import parse_share
from weft.quantities.units import parse_size_bytes
from weft.recording.observations import ports_table
from weft.recording.tables import integers_of
from weft.results.fast_forward import FastForwardResult
from weft.run.traffic_kinds.model import TrainingJobTraffic
from weft.scenario import FidelitySection
from weft.topologies import FabricSpec
from weft.topologies.scale_up import with_scale_up

TENSOR = 8
RANKS_PER_LEAF = 32
MOST_LEAVES = 256
"""Of more ranks leaves have more, and there are more spines."""
RATE_BPS = 400e9
MTU_BYTES = 4096
GIB = 1 << 30
WHOLE = {"pipeline": 8, "data": 16, "layers": 80, "micro_batches": 16}
GOAL_S, GOAL_GIB, GOAL_OUTSIDE = 900.0, 8.0, 0.2
PATIENCE_S = 3600.0
"""Of emulated time."""


@dataclass(frozen=True)
class Shape:
    """How much of the step is run."""

    pipeline: int
    data: int
    layers: int
    micro_batches: int
    zero: int
    shrink: int = 1

    @property
    def ranks(self) -> int:
        """Of all hosts."""
        return TENSOR * self.pipeline * self.data

    @property
    def is_whole(self) -> bool:
        """Whether it is the step that the goals are for."""
        return self == Shape(**WHOLE, zero=self.zero)

    @property
    def whole(self) -> Shape:
        """The whole step that it is a slice of."""
        if self.ranks > TENSOR * WHOLE["pipeline"] * WHOLE["data"]:
            return Shape(self.pipeline, self.data, WHOLE["layers"], WHOLE["micro_batches"], self.zero)
        return Shape(**WHOLE, zero=self.zero)

    def item(self) -> TrainingJobTraffic:
        """Return what a scenario would have."""
        sizes = {
            name: getattr(MODELS["70B"], name) // self.shrink
            for name in ("hidden", "feed_forward", "vocabulary", "sequence")
        }
        return TrainingJobTraffic.model_validate(
            {
                "model": {"preset": "70B", "layers": self.layers, **sizes},
                "parallel": {
                    "tensor": TENSOR,
                    "sequence": True,
                    "pipeline": self.pipeline,
                    "data": self.data,
                    "zero": self.zero,
                },
                "micro_batches": self.micro_batches,
            }
        )

    def sent_bytes(self) -> tuple[int, int]:
        """Return what all ranks send to other hosts, and what ranks of a host send to each other: tensors."""
        _, plan = self.item().job(self.fabric(), 1)
        within = plan.sent_bytes.get("tensor", 0)
        return self.ranks * (sum(plan.sent_bytes.values()) - within), self.ranks * within

    def fabric(self) -> FabricSpec:
        """Return rails for so many ranks."""
        leaves = min(max(TENSOR, -(-self.ranks // RANKS_PER_LEAF)), MOST_LEAVES)
        clos = topologies.leaf_spine(
            planes=1,
            leaves=leaves,
            spines=max(8, leaves // 16),
            hosts_per_leaf=self.ranks // leaves,
            host_rate_bps=RATE_BPS,
            oversubscription=1.0,
        )
        return with_scale_up(clos, TENSOR, rail_optimised=True)


def measure(shape: Shape, workers: int, segment_bytes: int | None, fast_forward: float | None) -> dict[str, float]:
    """Run the step; seconds, bytes at most resident, packet-hops, and what the step took."""
    began_wall_s, began_s = time.monotonic(), time.process_time()
    with Fabric(
        shape.fabric(),
        clock="virtual",
        mtu_bytes=MTU_BYTES,
        int_telemetry=False,
        workers=workers,
        fidelity=FidelitySection(segment=segment_bytes, fast_forward=fast_forward),
    ) as fabric:
        up_s, item = time.process_time(), shape.item()
        with engine_time() as spent:
            (result,) = fabric.run_together([item.prepare_task(shape.ranks, 1)(fabric)], PATIENCE_S)
        whole_s = time.process_time() - up_s
        ports = ports_table(fabric.topology, fabric.lab.switch_stats(), fabric.hosts.stats())
        repeated = fabric.summary().fast_forward if fast_forward else []
        hops = int(integers_of(ports, "transmitted_packets").sum())
    between_hosts, within_hosts = shape.sent_bytes()
    return {
        "set_up": up_s - began_s,
        "inside": spent[0],
        "outside": whole_s - spent[0],
        "wall": time.monotonic() - began_wall_s,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB,
        "hops": hops,
        "step_ms": result.step_ps / 1e9,
        "mfu": 100 * result.mfu,
        "between_hosts": between_hosts,
        "within_hosts": within_hosts,
        **_of_repeated(repeated),
    }


def _of_repeated(found: Sequence[FastForwardResult]) -> dict[str, float]:
    """What was repeated, in percent, and the error bound; nothing without fast-forward."""
    return {
        name: value
        for each in found
        for name, value in (
            ("repeated", 100 * each.repeated / each.operations),
            ("skipped_between", 100 * each.skipped_bytes / each.data_bytes),
            ("bound", 100 * (each.largest_deviation or 0.0)),
        )
    }


def figures_of(shape: Shape, found: dict[str, float]) -> list[Figure]:
    """The figures of a run; the goals are those of the whole step."""
    whole = shape.is_whole
    figures = [
        Figure(f"{shape.ranks} ranks, {shape.layers} layers", found["step_ms"], "emulated ms"),
        Figure("  model FLOPs utilisation", found["mfu"], "%"),
        Figure("  bytes between hosts", found["between_hosts"] / 1e9, "GB"),
        Figure("  bytes within hosts", found["within_hosts"] / 1e9, "GB"),
        *(
            Figure(f"  {title}", found[name], "%")
            for name, title in (
                ("repeated", "operations repeated"),
                ("skipped_between", "bytes between hosts skipped"),
                ("bound", "error bound of an operation"),
            )
            if name in found
        ),
        Figure("  packet-hops", found["hops"] / 1e6, "M"),
        Figure("  set-up", found["set_up"], "s"),
        Figure("  inside the engine", found["inside"], "s"),
        Figure(
            "  outside",
            found["outside"],
            "s",
            beside="all",
            ratio=found["outside"] / (found["outside"] + found["inside"]),
            goal=GOAL_OUTSIDE,
            at_most=True,
        ),
        Figure("  rate", found["hops"] / found["inside"] / 1e6, "M packet-hops/s"),
        Figure("  wall clock", found["wall"], "s", goal=GOAL_S if whole else None, at_most=True),
        Figure("  peak memory", found["peak"], "GiB", goal=GOAL_GIB if whole else None, at_most=True),
    ]
    if not whole:
        between_hosts, within_hosts = shape.whole.sent_bytes()
        for name, larger in (
            ("between", between_hosts / found["between_hosts"]),
            ("within", within_hosts / found["within_hosts"]),
        ):
            title = f"whole step, by bytes {name} hosts"
            figures.append(Figure(title, larger * found["inside"], "s of the engine"))
    return figures


def main() -> None:
    """Measure one step, and print."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    for name, value in WHOLE.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    parser.add_argument("--zero", type=int, choices=(0, 1), default=1)
    parser.add_argument("--shrink", type=int, choices=(1, 2, 4, 8, 16), default=1)
    parser.add_argument("--workers", type=int, default=1, help="threads of the engine")
    parser.add_argument("--fidelity", type=parse_size_bytes, metavar="SIZE", help="of segments; packets by default")
    parser.add_argument("--fast-forward", type=parse_share, metavar="SHARE", help="tolerance; off by default")
    arguments = parser.parse_args()
    shape = Shape(
        arguments.pipeline,
        arguments.data,
        arguments.layers,
        arguments.micro_batches,
        arguments.zero,
        arguments.shrink,
    )
    found = measured_apart(
        measure,
        shape,
        arguments.workers,
        arguments.fidelity,
        arguments.fast_forward,
        realtime=arguments.realtime,
    )
    report("A step of training 70B", figures_of(shape, found), as_json=arguments.json)


if __name__ == "__main__":
    main()
