"""What a training step found: its time, and how much of its communication nothing hid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rich.console import Console
from rich.table import Table

from weft.quantities.readable import counted
from weft.results.kinds import MeasuredColumn, ResultKind
from weft.results.report_parts import Axis, BarFigure, Cell, ReportPart, ReportTable, microseconds
from weft.results.verification import Verdict, verify
from weft.topologies import FabricSpec
from weft.traffic.collectives import COLLECTIVE_KINDS, Array
from weft.traffic.schedules import CollectiveSpec
from weft.traffic.training import GRADIENT_COLLECTIVE, TrainingStep


@dataclass(frozen=True)
class TrainingStepResult:
    """A data-parallel step: from the common start to the last rank's end.

    `verified`, `wrong` and `identical` are those of `collectives`.
    """

    derived: ClassVar[Mapping[str, str]] = {"exposed_ps": "exposed_ps"}

    algorithm: str
    """Of the all-reduces."""
    ranks: int
    """How many took part."""
    layers: int
    """Of the model."""
    buckets: int
    """Into which the gradients were cut."""
    gradient_bytes: int
    """Of one rank."""
    dtype: str
    """Of the gradients."""
    step_ps: int
    """From the common start to the last rank's end."""
    compute_ps: int
    """A step's time without any communication."""
    verified: bool
    """As of a collective, of the summed gradients."""
    wrong: int
    """As of a collective, of the summed gradients."""
    identical: bool
    """As of a collective, of the summed gradients."""
    retransmissions: int
    """Packets sent again."""

    @property
    def exposed_ps(self) -> int:
        """Return the time of the step during which a rank only waits for gradients: step without compute."""
        return self.step_ps - self.compute_ps

    @property
    def ok(self) -> bool:
        """Return whether nothing is known to be wrong on any rank."""
        return self.wrong == 0 and self.identical

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with the derived figure."""
        return {**vars(self), **{key: getattr(self, name) for key, name in self.derived.items()}}


def verify_gradients(
    step: TrainingStep,
    algorithm: str,
    spec: CollectiveSpec,
    inputs: Sequence[Array],
    results: Sequence[Array],
) -> Verdict:
    """Compare summed gradients with NumPy's, bucket by bucket, since each is a collective of its own."""
    all_reduce = COLLECTIVE_KINDS[GRADIENT_COLLECTIVE]
    verdicts = [
        verify(
            all_reduce,
            all_reduce.algorithm(algorithm),
            replace(spec, element_count=len(bucket)),
            [each[bucket.start : bucket.stop] for each in inputs],
            [each[bucket.start : bucket.stop] for each in results],
        )
        for bucket, _ in step.buckets(spec.element_bytes)
    ]
    worst = max(verdicts, key=lambda verdict: verdict.largest_error)
    return replace(
        worst,
        wrong=sum(verdict.wrong for verdict in verdicts),
        identical=all(verdict.identical for verdict in verdicts),
    )


def print_training_steps(console: Console, results: Sequence[TrainingStepResult]) -> None:
    """Print a row per step."""
    console.print(
        f"\n[bold]data-parallel training steps over {counted(results[0].ranks, 'rank')}[/bold] (time is emulated)"
    )
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for column in (
        "algorithm", "layers", "gradients\n(B)", "type", "buckets", "compute\n(µs)", "step\n(µs)", "exposed\n(µs)",
        "exposed\n(%)", "#wrong",
    ):  # fmt: skip
        table.add_column(column, justify="right", vertical="bottom")
    for result in results:
        wrong = str(result.wrong) if result.identical else f"{result.wrong}, ranks differ"
        table.add_row(
            result.algorithm,
            str(result.layers),
            str(result.gradient_bytes),
            result.dtype,
            str(result.buckets),
            f"{result.compute_ps / 1e6:.1f}",
            f"{result.step_ps / 1e6:.1f}",
            f"{result.exposed_ps / 1e6:.1f}",
            f"{100 * result.exposed_ps / result.step_ps:.1f}" if result.step_ps else "0.0",
            wrong if result.verified else "N/A, not verified",
        )
    console.print(table)


def report_training_steps(results: Sequence[TrainingStepResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Bars of the steps, and a table with a row for each."""
    yield BarFigure(
        "Training steps",
        Axis("time (µs)", "µs"),
        rows=[
            f"{number} {step.algorithm}, {step.buckets} bucket{'s' if step.buckets != 1 else ''}"
            for number, step in enumerate(results, 1)
        ],
        parts={
            "compute": [step.compute_ps / 1e6 for step in results],
            "exposed communication": [step.exposed_ps / 1e6 for step in results],
        },
        text="What a step took: computing, and the communication that nothing hid.",
    )
    rows: list[list[Cell]] = [
        [
            each.algorithm,
            each.layers,
            each.gradient_bytes,
            each.dtype,
            each.buckets,
            microseconds(each.compute_ps),
            microseconds(each.step_ps),
            microseconds(each.exposed_ps),
            f"{100 * each.exposed_ps / each.step_ps:.1f} %" if each.step_ps else "0.0 %",
            each.wrong if each.verified else "lengths only",
            each.retransmissions,
        ]
        for each in results
    ]
    columns = [
        "algorithm", "layers", "gradients (B)", "type", "buckets", "compute (µs)", "step (µs)", "exposed (µs)",
        "exposed", "wrong", "retransmitted packets",
    ]  # fmt: skip
    note = "exposed: the part of the step in which ranks only wait for gradients"
    yield ReportTable("Training steps", columns, rows, note)


TRAINING_STEPS = ResultKind(
    key="training_steps",
    meaning="Of each training step.",
    is_always_written=True,
    model=TrainingStepResult,
    is_checked=lambda each: each.verified,
    show=print_training_steps,
    order=4,
    report=report_training_steps,
    labels=("algorithm", "buckets", "layers", "gradient_bytes"),
    measured=(
        MeasuredColumn("step", "µs", 1, "step_ps", 1e6),
        MeasuredColumn("exposed", "µs", 1, "exposed_ps", 1e6),
    ),
)
