"""Published shapes of training: what papers found when they changed one thing, beside steps run packet by packet.

    .venv/bin/python benchmarks/bench_training_shapes.py [--shapes NAME…] [--pictures FOLDER] [--json]

- data: exposed communication against the data-parallel degree (Narayanan et al. 2021, section 3.3.1).
- sharded: fully sharded, up to 128 ranks (Zhao et al. 2023, section 5.4).
- interleaved: interleaved against 1F1B, 175B on 96 ranks (Narayanan et al. 2021, figure 12).
- tensor: tensor parallelism within and across hosts, 162B on 64 ranks (Narayanan et al. 2021, figure 13).
- experts: DeepSeek-V3's all-to-all with and without a limit of hosts (DeepSeek-V3, section 3.2.2).

Hosts of eight on rails, lengths in place of data, 4,096 bytes a packet, Swift, selective repeat, packets sprayed over
the spines. `interleaved` and `tensor` run sequences of a 64th with a vocabulary of a 64th; the optimizer is 64 times
as fast and latency inside hosts a 64th, so that all parts of a step shrink alike. Times are emulated: the machine does
not matter.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from curves import Panel, svg_of
from rich.console import Console
from rich.table import Table
from training_panels import (
    DataPoint,
    ExpertsPoint,
    InterleavedPoint,
    ShardedPoint,
    TensorPoint,
    data_panel,
    experts_panel,
    interleaved_panel,
    sharded_panel,
    tensor_panel,
)
from training_steps import DGX_A100, H800_HOSTS, Cluster, Step, run_step

from weft.jobs.models import MODELS, Transformer
from weft.papers.studies.narayanan_2021 import GPT_162B
from weft.papers.training import shorter
from weft.recording.tables import integers_of

SCALE = 64
REPLICA = Transformer(layers=4, hidden=2048, heads=16, feed_forward=8192, vocabulary=2048, sequence=2048, family="gpt")
SHARDED = Transformer(layers=24, hidden=1024, heads=16, feed_forward=4096, vocabulary=1024, sequence=512, family="gpt")
FSDP_HOSTS = Cluster("A100", 250e9, 2.4e12)
"""Zhao et al. 2023, section 5.1: 2 Tb/s of RoCE a host."""


def data_points(degrees: Sequence[int] = (2, 4, 8, 16), model: Transformer = REPLICA) -> Iterator[DataPoint]:
    """Replicas of eight ranks that share tensors; gradients are all-reduced along rails."""
    for data in degrees:
        parallel = {"tensor": 8, "sequence": True, "data": data}
        step = run_step(DGX_A100, model, parallel, micro_batch=4)
        exposed = step.exposed_ms("data")
        yield DataPoint(data, step.ms, exposed, exposed / (1 - 1 / data))


def sharded_points(ranks: Sequence[int] = (8, 16, 32, 64, 128), model: Transformer = SHARDED) -> Iterator[ShardedPoint]:
    """4,096 tokens a rank, all of a layer computed again, gradients of BF16."""
    for count in ranks:
        step = run_step(
            FSDP_HOSTS,
            model,
            {"data": count, "zero": 3},
            micro_batch=8,
            recomputation="full",
            precisions={"gradients": "bf16"},
        )
        yield ShardedPoint(count, step.ms, step.exposed_ms("data"), step.tflops)


def interleaved_points(
    batches: Sequence[int] = (12, 24, 36, 48, 60), pipeline: int = 12, layers: int = 96
) -> Iterator[InterleavedPoint]:
    """GPT-3 on twelve hosts, micro-batches of one sequence, two parts of the model a stage."""
    model = shorter(MODELS["GPT-3"].model_copy(update={"layers": layers}), SCALE)
    for batch in batches:
        plain, interleaved = (
            run_step(
                DGX_A100,
                model,
                {
                    "tensor": 8,
                    "sequence": True,
                    "pipeline": pipeline,
                    "schedule": schedule,
                    "virtual_stages": parts,
                },
                SCALE,
                micro_batches=batch,
                recomputation="full",
            ).tflops
            for schedule, parts in (("1f1b", 1), ("interleaved", 2))
        )
        bound = (batch + pipeline - 1) / (batch + (pipeline - 1) / 2)
        yield InterleavedPoint(batch, plain, interleaved, interleaved / plain, bound)


def tensor_points(
    degrees: Sequence[int] = (2, 4, 8, 16, 32), ranks: int = 64, batch: int = 32, layers: int = 32
) -> Iterator[TensorPoint]:
    """All ranks are stages of as many ranks as share tensors; one sequence a micro-batch."""
    model = shorter(GPT_162B.model_copy(update={"layers": layers}), SCALE)
    for tensor in degrees:
        parallel = {"tensor": tensor, "sequence": True, "pipeline": ranks // tensor}
        step = run_step(DGX_A100, model, parallel, SCALE, micro_batches=batch, recomputation="full")
        yield TensorPoint(tensor, ranks // tensor, step.tflops, step.exposed_ms("tensor"), step.result.bubble_ps / 1e9)


def experts_points(
    limits: Sequence[int] = (0, 8, 4, 2), ranks: int = 64, tokens: int = 512, hidden: int = 7168
) -> Iterator[ExpertsPoint]:
    """One layer of DeepSeek-V3 with its experts on all ranks, tokens in FP8, results in BF16."""
    model, hosts = MODELS["DeepSeek-V3"], ranks // 8
    assert model.experts is not None
    experts = model.experts.model_copy(update={"dense_layers": 0})
    layer = model.model_copy(
        update={
            "layers": 1,
            "hidden": hidden,
            "sequence": tokens,
            "vocabulary": 1024,
            "experts": experts,
        }
    )

    def step_of(limit: int, micro_batches: int) -> Step:
        return run_step(
            H800_HOSTS,
            layer,
            {"data": ranks, "expert": ranks},
            micro_batches=micro_batches,
            routing={"hosts_per_token": limit} if limit else {},
            precisions={"dispatch": "fp8", "gradients": "bf16"},
        )

    gradient_bytes: int | None = None
    for limit in limits:
        step = step_of(limit, 2)
        if gradient_bytes is None:
            # Gradients are reduced once a step, whatever the micro-batches and their routing.
            gradient_bytes = 2 * step_of(limit, 1).host_bytes - step.host_bytes
        there, inside, back = _forward_exchange_us(step, crosses_twice=limit > 0)
        logical_bytes = tokens * (min(limit, hosts) or experts.top_k) * hidden
        yield ExpertsPoint(
            limit,
            (step.host_bytes - gradient_bytes) / 2 / 1e9,
            there + back,
            inside,
            logical_bytes / there / 1e3,
        )


def _forward_exchange_us(step: Step, *, crosses_twice: bool) -> tuple[float, float, float]:
    """Return what the first micro-batch's tokens take between hosts there, within hosts, and between hosts back."""
    records = step.result.records
    rows = [row for row, category in enumerate(records["category"].texts()) if category == "expert"]
    start_ps, end_ps, ranks = (integers_of(records, name)[rows] for name in ("start_ps", "end_ps", "rank"))
    # In the order of operations: dispatch and combine, each of a hop between hosts and one inside them, if it has both.
    count = 4 if crosses_twice else 2
    hops = np.mean([(end_ps - start_ps)[ranks == rank][:count] for rank in np.unique(ranks)], axis=0) / 1e6
    return float(hops[0]), float(hops[1:-1].sum()), float(hops[-1])


SHAPES: dict[str, tuple[Callable[[], Iterator[Any]], Callable[..., Panel]]] = {
    "data": (data_points, data_panel),
    "sharded": (sharded_points, sharded_panel),
    "interleaved": (interleaved_points, interleaved_panel),
    "tensor": (tensor_points, tensor_panel),
    "experts": (experts_points, experts_panel),
}


def show(name: str, points: Sequence[Any]) -> None:
    """Print a shape's table."""
    table = Table(title=name, title_justify="left")
    rows = [asdict(point) for point in points]
    for heading in rows[0]:
        table.add_column(heading.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" for value in row.values()))
    Console(width=120).print(table)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--pictures", type=Path, help="draw each shape into an SVG file of this folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    found = {}
    for name in options.shapes:
        points, panel = SHAPES[name]
        found[name] = []
        for point in points():
            found[name].append(point)
            print(point, file=sys.stderr, flush=True)
        if options.pictures is not None:
            (options.pictures / f"training-{name}.svg").write_text(svg_of([panel(found[name])]))
    if options.json:
        print(json.dumps({name: [asdict(each) for each in points] for name, points in found.items()}, indent=1))
        return
    for name, points in found.items():
        show(name, points)


if __name__ == "__main__":
    main()
