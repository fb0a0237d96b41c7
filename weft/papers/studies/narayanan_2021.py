"""Megatron-LM: interleaved pipelines, and tensor parallelism within and across hosts."""

from __future__ import annotations

from collections.abc import Sequence

from weft.jobs.models import MODELS, Transformer
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.papers.training import DGX_A100, shorter, step_of, step_tree, tflops
from weft.results.report_parts import Axis, Curve, CurveFigure
from weft.trials import Procedure, Trial

_SCALE = 64
GPT_162B = Transformer(
    layers=32, hidden=20480, heads=128, feed_forward=81920, vocabulary=51200, sequence=2048, family="gpt"
)
_SCHEDULES = (("1f1b", 1), ("interleaved", 2))


def _interleaved_trials(batches: Sequence[int], pipeline: int, layers: int) -> list[Trial]:
    model = shorter(MODELS["GPT-3"].model_copy(update={"layers": layers}), _SCALE)
    return [
        Trial(
            f"batch {batch}, {schedule}",
            step_tree(
                "narayanan-2021",
                DGX_A100,
                model,
                {
                    "tensor": 8,
                    "sequence": True,
                    "pipeline": pipeline,
                    "schedule": schedule,
                    "virtual_stages": parts,
                },
                _SCALE,
                micro_batches=batch,
                recomputation="full",
            ),
        )
        for batch in batches
        for schedule, parts in _SCHEDULES
    ]


def _tensor_trials(degrees: Sequence[int], ranks: int, batch: int, layers: int) -> list[Trial]:
    model = shorter(GPT_162B.model_copy(update={"layers": layers}), _SCALE)
    return [
        Trial(
            f"{tensor} ranks share tensors",
            step_tree(
                "narayanan-2021",
                DGX_A100,
                model,
                {"tensor": tensor, "sequence": True, "pipeline": ranks // tensor},
                _SCALE,
                micro_batches=batch,
                recomputation="full",
            ),
        )
        for tensor in degrees
    ]


def _procedure(setting: Setting) -> Procedure[Findings]:
    batches: Sequence[int]
    degrees: Sequence[int]
    if setting.is_full:
        batches, pipeline, layers = (12, 36, 60), 12, 96
        degrees, ranks, batch, tensor_layers = (2, 4, 8, 16, 32), 64, 32, 32
    else:
        batches, pipeline, layers = (4, 8, 12), 4, 8
        degrees, ranks, batch, tensor_layers = (4, 8, 16), 16, 16, 4
    pipelines = _interleaved_trials(batches, pipeline, layers)
    runs = yield [*pipelines, *_tensor_trials(degrees, ranks, batch, tensor_layers)]
    rates = [tflops(step_of(run)) for run in runs]
    plain, interleaved = rates[: len(pipelines) : 2], rates[1 : len(pipelines) : 2]
    by_degree = dict(zip(degrees, rates[len(pipelines) :], strict=True))
    gains = [late / early for early, late in zip(plain, interleaved, strict=True)]
    measured = {
        "gain, smallest batch": gains[0],
        "gain, middle batch": gains[1],
        "gain, largest batch": gains[-1],
        **{f"tensor {degree}": rate for degree, rate in by_degree.items()},
        "best tensor degree": float(max(by_degree, key=lambda degree: by_degree[degree])),
    }
    figures = [
        CurveFigure(
            f"Pipelines of {pipeline} stages",
            Axis("batch (sequences)"),
            Axis("TFLOP/s of a rank"),
            [
                Curve("1F1B", batches, [round(each, 2) for each in plain]),
                Curve("interleaved", batches, [round(each, 2) for each in interleaved]),
            ],
        ),
        CurveFigure(
            f"{ranks} ranks: tensor parallelism against pipelines",
            Axis("ranks that share tensors", "", "log"),
            Axis("TFLOP/s of a rank"),
            [Curve("a rank", degrees, [round(each, 2) for each in by_degree.values()])],
        ),
    ]
    return Findings(measured, figures=figures)


KIND = Study(
    name="narayanan-2021",
    title="Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
    authors="Narayanan et al.",
    venue="SC",
    year=2021,
    measured=(
        "On DGX A100s: interleaving improves a pipeline's throughput by 10 % and more, less as the batch grows "
        "(section 5.3.2, figure 12); throughput peaks where the eight ranks of a host share tensors (5.4.1, figure 13)."
    ),
    run=(
        "GPT-3 on 96 A100s in twelve stages, interleaved with two parts a stage and not, at batches of 12, 36 and 60; "
        "and a model of 162B on 64 A100s, batch 32, shared by 2 to 32. Sequences have 32 tokens in place of 2,048, "
        "with all other work shrunk alike (docs/training-shapes.md)."
    ),
    reduced="8 layers on 32 A100s at batches of 4 to 12; 4 layers on 16 A100s.",
    procedure=_procedure,
    values=[
        Value(
            "gain, middle batch",
            "gain by interleaving, at least (here: batch 36)",
            1.10,
            "",
            "abstract; section 5.3.2",
            0.0,
            bound="least",
        ),
        Value(
            "best tensor degree",
            "tensor-parallel degree with the highest throughput",
            8,
            "",
            "section 5.4.1, figure 13",
            0.0,
            when=(Scale.FULL, Scale.REDUCED),
        ),
    ],
    shapes=[
        Shape(
            "interleaving gains less as the batch grows, and always something",
            "section 5.3.2, figure 12",
            lambda measured: (
                measured["gain, smallest batch"] > measured["gain, middle batch"] > measured["gain, largest batch"] > 1
            ),
        ),
    ],
)
