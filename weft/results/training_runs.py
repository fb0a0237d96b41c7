"""Results of training over a fabric: its loss compared with one process's, and times of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar

from rich.console import Console

from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_US
from weft.results.clearances import ClearedResult, clearance_columns, print_clearances
from weft.results.columns import Column, Look, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import Axis, BarFigure, Curve, CurveFigure, ReportPart
from weft.results.step_parts import StepParts
from weft.results.work import Work, training_products
from weft.topologies import FabricSpec


@dataclass(frozen=True)
class TrainingRunResult(ClearedResult):
    """Data-parallel training of a model with gradients that the fabric added up.

    `single_losses` and `single_accuracy` belong to one process that computes the gradient of all batches at once, in
    float32, from the same weights on.
    """

    derived: ClassVar[Mapping[str, str]] = {
        "mean_step_ps": "mean_step_ps",
        "exposed_ps": "exposed_ps",
        "loss_difference": "loss_difference",
        "target_steps": "target_steps",
        "target_ps": "target_ps",
    }

    algorithm: str
    """Algorithm of the all-reduces."""
    ranks: int
    """How many took part."""
    parameters: int
    """Parameters of the model, and so gradients of a rank."""
    buckets: int
    """Into which the gradients were cut."""
    compute_ps: int
    """A step's time without any communication."""
    steps_ps: list[int]
    """Times of steps, from the common start to the last rank's end, including attempts in which links failed."""
    repeated: int
    """Attempts at a step that ended with an error because links failed, and were made again from the same weights."""
    losses: list[float]
    """Mean loss of all images: before the first step and after each."""
    single_losses: list[float]
    """The same of one process."""
    loss_bound: float
    """By how much the two may differ."""
    accuracy: float
    """Share of all images that are recognised in the end."""
    single_accuracy: float
    """The same of one process."""
    accuracy_bound: float
    """By how much the two may differ."""
    target_loss: float
    """The loss to reach."""
    wrong: int
    """As of a collective, of the summed gradients of all steps."""
    identical: bool
    """As of a collective, of the summed gradients of all steps."""
    retransmissions: int
    """Packets sent again."""

    @property
    def cleared_ps(self) -> int:
        """Sum of `steps_ps`."""
        return sum(self.steps_ps)

    @property
    def mean_step_ps(self) -> float:
        """Return a step's time, on average."""
        return sum(self.steps_ps) / len(self.steps_ps)

    @property
    def exposed_ps(self) -> float:
        """Return the time of a step in which ranks only wait, on average: step without compute."""
        return self.mean_step_ps - self.compute_ps

    @property
    def step_parts(self) -> StepParts:
        """Return computation and exposed communication of all steps."""
        count = len(self.steps_ps)
        return StepParts(self.compute_ps * count, self.exposed_ps * count)

    @property
    def work(self) -> Work:
        """Return all steps."""
        name, share = f"training run, {self.algorithm}", self.step_parts.computing_share
        return Work(name, self.ranks, sum(self.steps_ps), training_products(self.ranks, len(self.steps_ps)), share)

    @property
    def loss_difference(self) -> float:
        """Return the largest difference of a loss from one process's."""
        return max(abs(one - other) for one, other in zip(self.losses, self.single_losses, strict=True))

    @property
    def target_steps(self) -> int | None:
        """Return after how many steps the loss was no larger than the target; None if it never was."""
        return next((step for step, loss in enumerate(self.losses) if loss <= self.target_loss), None)

    @property
    def target_ps(self) -> int | None:
        """Return the time of the steps until then."""
        return None if self.target_steps is None else sum(self.steps_ps[: self.target_steps])

    @property
    def ok(self) -> bool:
        """Return whether all sums were right, and the training within its bounds from one process's."""
        return (
            self.wrong == 0
            and self.identical
            and self.loss_difference <= self.loss_bound
            and abs(self.accuracy - self.single_accuracy) <= self.accuracy_bound
        )


def problems_of(result: TrainingRunResult) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the lengths of lists that were read back."""
    if not result.steps_ps:
        yield "steps_ps", "is empty; there is one step or more"
    for key in ("losses", "single_losses"):
        length = len(getattr(result, key))
        if length != len(result.steps_ps) + 1:
            yield key, f"has {length} values; there are {len(result.steps_ps)} steps"


def print_training_runs(console: Console, results: Sequence[TrainingRunResult]) -> None:
    """Print what steps took, and how the loss fell."""
    first = results[0]
    console.print(
        f"\n[bold]training over {counted(first.ranks, 'rank')}[/bold], {first.parameters} parameters "
        "(time is emulated; mean of the steps)"
    )
    for table in _PRINTED:
        table.print(console, results)
    for each in results:
        print_clearances(console, each)


def _within(difference: float, bound: float) -> str:
    """Return the bound where it holds: how far below it a difference is depends on the machine's products."""
    return f"± {bound:g}" if difference <= bound else f"no: {difference:.1e}"


def _in_us(title: str, value: str) -> Column[TrainingRunResult]:
    return Column(
        title,
        value,
        scale=PS_PER_US,
        digits=1,
        page={"unit": "µs", "form": "{:.1f}".format},
        sweep={"unit": "µs"},
    )


def _in_percent(title: str, value: str, page_title: str = "") -> Column[TrainingRunResult]:
    share = attrgetter(value)
    page: Look = {"title": page_title or title, "form": "{:.1f} %".format}
    return Column(title, lambda each: 100 * share(each), digits=1, page=page)


def _loss(title: str, value: Callable[[TrainingRunResult], float], page: Look | None) -> Column[TrainingRunResult]:
    return Column(title, value, digits=3, page=page)


_ALGORITHM = Column[TrainingRunResult]("algorithm", "algorithm", is_name=True)
_WRONG = Column[TrainingRunResult](
    "#wrong",
    lambda each: each.wrong if each.identical else f"{each.wrong}, ranks differ",
    page={"title": "wrong", "value": "wrong"},
)
_OF_STEPS = (
    _ALGORITHM,
    Column[TrainingRunResult]("steps", lambda each: len(each.steps_ps)),
    Column[TrainingRunResult]("repeated", "repeated"),
    Column[TrainingRunResult]("buckets", "buckets", page=None),
    Column[TrainingRunResult]("compute", "compute_ps", scale=PS_PER_US, digits=1, page=None),
    _in_us("step", "mean_step_ps"),
    _in_us("exposed", "exposed_ps"),
    Column[TrainingRunResult](
        "exposed", lambda each: 100 * each.exposed_ps / each.mean_step_ps, unit="%", digits=1, page=None
    ),
)
_OF_LOSSES = (
    _loss("at first", lambda each: each.losses[0], None),
    _loss("in the end", lambda each: each.losses[-1], {"title": "loss in the end", "form": "{:.4f}".format}),
    _loss("one process", lambda each: each.single_losses[-1], {"form": "{:.4f}".format}),
    Column[TrainingRunResult]("within", lambda each: _within(each.loss_difference, each.loss_bound), page=None),
    Column[TrainingRunResult]("target", "target_loss", form="{:g}".format, page=None),
    Column[TrainingRunResult]("at step", "target_steps", missing="never", page=None),
    Column[TrainingRunResult](
        "at", "target_ps", unit="µs", scale=PS_PER_US, digits=1, page=None, sweep={"title": "target loss"}
    ),
)
_OF_ACCURACY = (
    _in_percent("ranks", "accuracy", "recognised"),
    _in_percent("one process", "single_accuracy"),
    Column[TrainingRunResult](
        "within",
        lambda each: _within(100 * abs(each.accuracy - each.single_accuracy), 100 * each.accuracy_bound),
        page=None,
    ),
)
_PRINTED = (
    ResultTable("", (*_OF_STEPS, _WRONG), "what a step takes, in µs"),
    ResultTable("", (_ALGORITHM, *_OF_LOSSES), "loss, compared with one process's"),
    ResultTable("", (_ALGORITHM, *_OF_ACCURACY), "recognised, in % of all images"),
)
_TABLE = ResultTable[TrainingRunResult](
    "Training",
    (
        *_OF_STEPS,
        *_OF_LOSSES,
        *_OF_ACCURACY,
        _WRONG,
        *clearance_columns(TrainingRunResult),
        Column("retransmitted packets", "retransmissions"),
    ),
    note="repeated: attempts at a step that links failed in",
)


def report_training_runs(results: Sequence[TrainingRunResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Curves of the loss, bars of the steps' parts, and a table."""
    labels = [f"{number} {each.algorithm}" for number, each in enumerate(results, 1)]
    loss = Axis("loss")
    curves = [Curve(label, list(_times_us(each)), each.losses) for label, each in zip(labels, results, strict=True)]
    yield CurveFigure(
        "Loss against time",
        Axis("emulated time (µs)", "µs"),
        loss,
        curves,
        text="Mean loss of all images. Times are the steps' times, one after the other.",
    )
    steps = range(len(results[0].losses))
    yield CurveFigure(
        "Loss against steps",
        Axis("steps"),
        loss,
        [
            *(Curve(label, range(len(each.losses)), each.losses) for label, each in zip(labels, results, strict=True)),
            Curve("one process", steps, results[0].single_losses),
        ],
        text="Compared with one process, which computes the gradient of all ranks' images at once.",
    )
    yield BarFigure(
        "Steps of training",
        Axis("time (µs)", "µs"),
        rows=labels,
        parts={
            "compute": [each.compute_ps / PS_PER_US for each in results],
            "exposed communication": [each.exposed_ps / PS_PER_US for each in results],
        },
        text="Mean time of a step: computing, and exposed communication.",
    )
    yield _TABLE.part(results)


def _times_us(result: TrainingRunResult) -> Iterator[float]:
    time_ps = 0
    yield 0.0
    for step_ps in result.steps_ps:
        time_ps += step_ps
        yield time_ps / PS_PER_US


TRAINING_RUNS = ResultKind(
    key="training_runs",
    meaning="One for each item of training, by each algorithm.",
    model=TrainingRunResult,
    is_checked=lambda _: True,
    show=print_training_runs,
    order=5,
    report=report_training_runs,
    problems=problems_of,
    name="algorithm",
    labels=("algorithm", "buckets"),
    tables=(_TABLE,),
)
