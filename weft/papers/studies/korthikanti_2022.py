"""Sequence parallelism and selective recomputation, compared with computing all activations again."""

from __future__ import annotations

from typing import Any

from weft.jobs.models import Transformer
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.papers.training import DGX_A100, step_of, step_tree
from weft.results.report_parts import Axis, BarFigure
from weft.trials import Procedure, Trial

# The paper's model of 530B: GPT-3's style with these sizes; fewer layers, all of which are alike.
_LAYERS = {Scale.FULL: 4, Scale.REDUCED: 2}
_FULL, _SELECTIVE, _NONE = "full", "selective", "none"
_CASES: dict[str, dict[str, Any]] = {
    "all again": {"sequence": False, "recomputation": _FULL},
    "nothing again": {"sequence": False, "recomputation": _NONE},
    "selective, sequence parallel": {"sequence": True, "recomputation": _SELECTIVE},
}


def _model(scale: Scale) -> Transformer:
    return Transformer(
        layers=_LAYERS[scale],
        hidden=20480,
        heads=128,
        feed_forward=81920,
        vocabulary=51200,
        sequence=2048,
        family="gpt",
    )


def _procedure(setting: Setting) -> Procedure[Findings]:
    runs = yield [
        Trial(
            name,
            step_tree(
                "korthikanti-2022",
                DGX_A100,
                _model(setting.scale),
                {"tensor": 8, "sequence": case["sequence"]},
                micro_batches=4,
                recomputation=case["recomputation"],
            ),
        )
        for name, case in _CASES.items()
    ]
    steps = {name: step_of(run) for name, run in zip(_CASES, runs, strict=True)}
    ms = {name: step.step_ps / 1e9 for name, step in steps.items()}
    overhead = {name: each / ms["nothing again"] - 1 for name, each in ms.items()}
    measured = {
        "speed-up": ms["all again"] / ms["selective, sequence parallel"],
        "overhead removed": 1 - max(0.0, overhead["selective, sequence parallel"]) / overhead["all again"],
        "step, all again": ms["all again"],
        "step, selective": ms["selective, sequence parallel"],
    }
    figure = BarFigure(
        "A step of eight ranks that share tensors",
        Axis("time (ms)", "ms"),
        list(ms),
        {
            "computation": [round(sum(steps[name].compute_ps.values()) / 1e9, 3) for name in ms],
            "rest": [round(ms[name] - sum(steps[name].compute_ps.values()) / 1e9, 3) for name in ms],
        },
    )
    return Findings(measured, figures=[figure])


KIND = Study(
    name="korthikanti-2022",
    title="Reducing Activation Recomputation in Large Transformer Models",
    authors="Korthikanti et al.",
    venue="arXiv 2205.05198,",
    year=2022,
    measured=(
        "On 2,240 A100s, a model of 530B: sequence parallelism with selective recomputation is 29 % faster than "
        "computing all activations again (MFU 54.2 % against 42.1 %). The overhead of recomputation shrinks by more "
        "than 90 %."
    ),
    run=(
        "Four layers of the 530B model (hidden 20,480, 128 heads, sequences of 2,048) on the eight A100s of a host, "
        "four micro-batches: everything computed again, nothing, and selectively with sequence parallelism. One stage, "
        "without a pipeline."
    ),
    reduced="two layers.",
    procedure=_procedure,
    values=[
        Value(
            "speed-up",
            "selective recomputation with sequence parallelism over computing all again",
            54.2 / 42.1,
            "",
            "abstract",
            0.1,
            when=(Scale.FULL, Scale.REDUCED),
            explanation="a single stage has no bubble, which a pipeline of 35 stages has in both cases.",
        ),
        Value(
            "overhead removed",
            "share of the overhead of recomputation that is removed, at least",
            0.9,
            "",
            "abstract: over 90 %",
            0.05,
            bound="least",
            explanation=(
                "Weft takes the same efficiency for every operation, so attention's scores, computed again, cost what "
                "their operations do, as does the rest."
            ),
        ),
    ],
    shapes=[
        Shape(
            "selective recomputation is faster than computing all again",
            "abstract",
            lambda measured: measured["step, selective"] < measured["step, all again"],
        ),
    ],
)
