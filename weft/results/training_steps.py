"""Results of a training step: its time, and how much communication was exposed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.console import Console

from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_US
from weft.results.clearances import ClearedResult, clearance_columns
from weft.results.columns import Column, Look, ResultTable
from weft.results.figure_tables import Layout
from weft.results.kinds import ResultKind
from weft.results.report_parts import Axis, BarFigure, ReportPart
from weft.results.step_parts import StepParts
from weft.results.verification import Verdict, verify
from weft.results.work import Work, training_products
from weft.topologies import FabricSpec
from weft.traffic.collectives import COLLECTIVE_KINDS, Array
from weft.traffic.schedules import CollectiveSpec
from weft.traffic.training import GRADIENT_COLLECTIVE, TrainingStep


@dataclass(frozen=True)
class TrainingStepResult(ClearedResult):
    """A data-parallel step: from the common start to the last rank's end.

    `verified`, `wrong` and `identical` are as in `collectives`.
    """

    derived: ClassVar[Mapping[str, str]] = {"exposed_ps": "exposed_ps"}

    algorithm: str
    """Algorithm of the all-reduces."""
    ranks: int
    """How many took part."""
    layers: int
    """Layers of the model."""
    buckets: int
    """Into which the gradients were cut."""
    gradient_bytes: int
    """Gradient bytes of one rank."""
    dtype: str
    """Type of the gradients."""
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
    def cleared_ps(self) -> int:
        """`step_ps`."""
        return self.step_ps

    @property
    def exposed_ps(self) -> int:
        """Return the time of the step during which a rank only waits for gradients: step without compute."""
        return self.step_ps - self.compute_ps

    @property
    def step_parts(self) -> StepParts:
        """Return computation and exposed communication."""
        return StepParts(self.compute_ps, self.exposed_ps)

    @property
    def work(self) -> Work:
        """Return the step."""
        name, share = f"training step, {self.algorithm}", self.step_parts.computing_share
        return Work(name, self.ranks, self.step_ps, training_products(self.ranks), share)

    @property
    def ok(self) -> bool:
        """Return whether nothing is known to be wrong on any rank."""
        return self.wrong == 0 and self.identical


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
            all_reduce.algorithm(algorithm).on(spec),
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


def _in_us(title: str, value: str, sweep: Look | None = None) -> Column[TrainingStepResult]:
    return Column(f"{title}\n", value, unit="µs", scale=PS_PER_US, digits=1, page={"digits": 3}, sweep=sweep)


def _exposed(step: TrainingStepResult) -> float:
    return 100 * step.exposed_ps / step.step_ps if step.step_ps else 0.0


def _wrong(step: TrainingStepResult) -> str:
    wrong = str(step.wrong) if step.identical else f"{step.wrong}, ranks differ"
    return wrong if step.verified else "N/A, not verified"


_TABLE = ResultTable[TrainingStepResult](
    "Training steps",
    (
        Column("algorithm", "algorithm"),
        Column("layers", "layers"),
        Column("gradients\n", "gradient_bytes", unit="B"),
        Column("type", "dtype"),
        Column("buckets", "buckets"),
        _in_us("compute", "compute_ps"),
        _in_us("step", "step_ps", sweep={}),
        _in_us("exposed", "exposed_ps", sweep={}),
        Column("exposed\n", _exposed, unit="%", digits=1, page={"unit": "", "form": "{:.1f} %".format}),
        Column(
            "#wrong", _wrong,
            page={"title": "wrong", "value": lambda each: each.wrong if each.verified else "lengths only"},
        ),
        *clearance_columns(TrainingStepResult),
        Column("retransmitted packets", "retransmissions", terminal=None),
    ),
    note="exposed: the part of the step in which ranks only wait for gradients",
    layout=Layout(is_narrow=True, headings="bottom"),
)  # fmt: skip


def print_training_steps(console: Console, results: Sequence[TrainingStepResult]) -> None:
    """Print a row per step."""
    ranks = counted(results[0].ranks, "rank")
    heading = f"[bold]data-parallel training steps over {ranks}[/bold] (time is emulated)"
    _TABLE.print(console, results, heading)


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
            "compute": [step.compute_ps / PS_PER_US for step in results],
            "exposed communication": [step.exposed_ps / PS_PER_US for step in results],
        },
        text="Time of a step: computing, and exposed communication.",
    )
    yield _TABLE.part(results)


TRAINING_STEPS = ResultKind(
    key="training_steps",
    meaning="One for each training step.",
    is_always_written=True,
    model=TrainingStepResult,
    is_checked=lambda each: each.verified,
    show=print_training_steps,
    order=4,
    report=report_training_steps,
    labels=("algorithm", "buckets", "layers", "gradient_bytes"),
    tables=(_TABLE,),
)
