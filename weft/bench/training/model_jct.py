"""10.2 MLPerf-Aligned JCT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.bench.collectives import require_two_hosts
from weft.bench.measures import health_of, repeatability
from weft.bench.model import KpiValue, Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import NotApplicableError, Setup
from weft.quantities.units import PS_PER_MS
from weft.results.report_parts import Axis, BarFigure, Cell, ReportTable
from weft.trials import InvalidTrialError, Procedure, Trial, TrialRun

_ACCELERATOR = "H100"
_MOST_TENSOR = 8
MODELS: Mapping[str, Mapping[str, Any]] = {
    "BERT-large": {
        "layers": 24,
        "hidden": 1024,
        "heads": 16,
        "feed_forward": 4096,
        "vocabulary": 30522,
        "sequence": 512,
        "family": "gpt",
    },
    "Llama 2 7B": {"preset": "7B"},
    "GPT-3 175B": {"preset": "GPT-3"},
}
"""Shapes of workloads of MLPerf Training; BERT: Devlin et al. 2019, table 1."""
_MICRO_BATCH = {"BERT-large": 64}
"""Sequences of a micro-batch, 1 of the larger models."""


class ModelJct(BenchTest):
    """Training steps of models' shapes."""

    section = "10.2"
    name = "model-jct"
    title = "MLPerf-Aligned JCT"
    objective = "Time of a training step of models' shapes, over the time without communication."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        require_two_hosts(setup)
        layers = setup.choose(smoke=2, standard=4, full=0)
        names = setup.choose(smoke=("BERT-large",), standard=("BERT-large", "Llama 2 7B"), full=tuple(MODELS))
        iterations = setup.choose(smoke=1, standard=2, full=10)
        runs: dict[str, list[TrialRun]] = {}
        refused: list[str] = []
        for name in names:
            try:
                runs[name] = list((yield [_trial(setup, name, layers, number) for number in range(iterations)]))
            except InvalidTrialError as error:
                refused.append(f"{name}: not applicable: {error}")
        if not runs:
            raise NotApplicableError("; ".join(refused))
        steps = {name: [run.results_of("training_jobs")[0] for run in found] for name, found in runs.items()}
        ratios = {name: [step.step_ps / step.plan.ideal_ps for step in found] for name, found in steps.items()}
        return Measured(
            tables=[
                ReportTable(
                    f"Training steps, {setup.subject.ranks} accelerators ({_ACCELERATOR})",
                    [
                        "model",
                        "layers",
                        "tensor × pipeline × data",
                        "step (ms)",
                        "roofline (ms)",
                        "JCT ratio",
                        "tokens/s",
                        "MFU (%)",
                        "marked (%)",
                        "pauses",
                    ],
                    [_row(setup, name, layers, steps[name][0], ratios[name], runs[name][0]) for name in runs],
                    "roofline: the step if communication took no time",
                )
            ],
            bars=[
                BarFigure(
                    "Parts of a step",
                    Axis("ms"),
                    list(steps),
                    {
                        "computation": [sum(each[0].compute_ps.values()) / PS_PER_MS for each in steps.values()],
                        "exposed communication": [
                            sum(each[0].exposed_ps.values()) / PS_PER_MS for each in steps.values()
                        ],
                        "bubble": [each[0].bubble_ps / PS_PER_MS for each in steps.values()],
                        "waiting for other ranks": [each[0].stall_ps / PS_PER_MS for each in steps.values()],
                    },
                )
            ],
            kpis=[KpiValue("MLPerf JCT", found[0].tokens_per_s, name) for name, found in steps.items()],
            repeatability=[repeatability(f"JCT ratio, {name}", "ratio", each) for name, each in ratios.items()],
            scaled=[
                "steps of models with the shapes of MLPerf's workloads, not submissions: nothing is trained",
                *([f"{layers} layers of each model"] if layers else []),
                "ResNet is left out: its gradients are a twentieth of BERT's, and no fabric of this kind notices",
            ],
            anomalies=refused,
        )


def _parallel(setup: Setup) -> dict[str, Any]:
    """Return degrees of parallelism: tensor within a host, then two pipeline stages if there are hosts for them."""
    ranks = setup.subject.ranks
    tensor = min(setup.subject.ranks_per_host, _MOST_TENSOR)
    groups = ranks // tensor
    pipeline = 2 if groups % 2 == 0 and groups >= 4 else 1
    return {"tensor": tensor, "sequence": tensor > 1, "pipeline": pipeline, "data": groups // pipeline, "zero": 1}


def _trial(setup: Setup, name: str, layers: int, number: int) -> Trial:
    model = dict(MODELS[name])
    if layers:
        model["layers"] = layers
    item = {
        "model": model,
        "parallel": _parallel(setup),
        "micro_batches": 4,
        "micro_batch": _MICRO_BATCH.get(name, 1),
        "accelerator": _ACCELERATOR,
    }
    return setup.trial(f"{name}, step {number + 1}", [item], iteration=number)


def _row(setup: Setup, name: str, layers: int, step: Any, ratios: list[float], run: TrialRun) -> list[Cell]:
    parallel = _parallel(setup)
    health = health_of([run])
    return [
        name,
        layers or MODELS[name].get("layers", "all"),
        " × ".join(str(parallel[key]) for key in ("tensor", "pipeline", "data")),
        round(step.step_ps / PS_PER_MS, 3),
        round(step.plan.ideal_ps / PS_PER_MS, 3),
        round(sum(ratios) / len(ratios), 4),
        round(step.tokens_per_s),
        round(100 * step.mfu, 1),
        round(100 * health.ecn_marked_packets / max(1, health.packets), 3),
        health.pfc_pauses,
    ]
