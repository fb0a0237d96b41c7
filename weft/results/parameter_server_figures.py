"""Figures on report pages of training with a parameter server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.quantities.units import PS_PER_US
from weft.results.critical_paths import critical_path_tables
from weft.results.operation_files import timelines
from weft.results.parameter_server_model import ParameterServerResult, part_names
from weft.results.report_parts import (
    Axis,
    BarFigure,
    Curve,
    CurveFigure,
    ReportPart,
    shown_of,
)

_MOST_BARS = 64
_MOST_VALUES = 200


def figures_of(results: Sequence[ParameterServerResult]) -> Iterator[ReportPart]:
    """Curves of the loss, bars of steps and of each run's workers, and histograms."""
    labels = [f"{number} {each.mode}" for number, each in enumerate(results, 1)]
    yield from _loss_figures(labels, results)
    parts = part_names(results)
    yield BarFigure(
        "Steps with a parameter server",
        Axis("time (µs)", "µs"),
        rows=labels,
        parts={name: [each.part_us(name) for each in results] for name in parts},
        text="Parts of a step, on average over workers and steps.",
    )
    yield from _histograms(labels, results)
    for label, result in zip(labels, results, strict=True):
        shown = min(result.workers, _MOST_BARS)
        yield BarFigure(
            f"Workers of {label}",
            Axis("time (µs)", "µs"),
            rows=[f"worker {worker}" for worker in range(shown)],
            parts={
                name: [each / result.steps / PS_PER_US for each in values[:shown]]
                for name, values in result.parts_ps.items()
            },
            text="Parts of each worker's steps, on average.",
            note=shown_of(shown, result.workers, "the first workers"),
        )
        yield from timelines(label, result.records)
        yield from critical_path_tables(label, result.critical_path)


def _loss_figures(labels: Sequence[str], results: Sequence[ParameterServerResult]) -> Iterator[CurveFigure]:
    trained = [
        (label, each.convergence) for label, each in zip(labels, results, strict=True) if each.convergence is not None
    ]
    loss = Axis("loss")
    yield CurveFigure(
        "Loss against time",
        Axis("emulated time (µs)", "µs"),
        loss,
        [Curve(label, [each / PS_PER_US for each in found.times_ps], found.losses) for label, found in trained],
        text="Mean loss of all images with the servers' weights; updates in the order in which the fabric delivered "
        "gradients.",
    )
    yield CurveFigure(
        "Loss against steps",
        Axis("steps of all workers"),
        loss,
        [Curve(label, found.steps, found.losses) for label, found in trained],
        text="The same by how many gradients had been applied, over the number of workers.",
    )


def _histograms(labels: Sequence[str], results: Sequence[ParameterServerResult]) -> Iterator[CurveFigure]:
    for title, axis, text, name in (
        (
            "Clock lag of weights",
            "steps",
            "How many steps of the slowest worker weights lacked when a server sent them.",
            "clock_lags",
        ),
        (
            "Staleness of updates",
            "updates",
            "How many other updates came between the sending of weights and the use of their gradient.",
            "update_staleness",
        ),
    ):
        counts = {
            label: dict(zip(histogram.values, histogram.counts, strict=True))
            for label, result in zip(labels, results, strict=True)
            if (histogram := getattr(result, name)) is not None
        }
        found = sorted({value for each in counts.values() for value in each})
        values = found[:_MOST_VALUES]
        curves = [
            Curve(
                label,
                [str(value) for value in values],
                [100 * each.get(value, 0) / sum(each.values()) for value in values],
            )
            for label, each in counts.items()
        ]
        yield CurveFigure(
            title,
            Axis(axis, scale="category"),
            Axis("share (%)", "%"),
            curves,
            text=text,
            note=shown_of(len(values), len(found), "the least"),
        )
