"""What training over a fabric found: how the loss fell beside that of one process, and what its steps took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.console import Console

from weft.quantities.readable import counted
from weft.results.figure_tables import print_figures
from weft.results.kinds import MeasuredColumn, ResultKind
from weft.results.report_parts import Axis, BarFigure, Curve, CurveFigure, ReportPart, ReportTable
from weft.topologies import FabricSpec

_PS_PER_US = 1e6


@dataclass(frozen=True)
class TrainingRunResult:
    """Data-parallel training of a model whose gradients the fabric added up.

    `single_losses` and `single_accuracy` are those of one process that computes the gradient of all batches at once, in
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
    """Of the all-reduces."""
    ranks: int
    """How many took part."""
    parameters: int
    """Of the model, and so how many gradients a rank has."""
    buckets: int
    """Into which the gradients were cut."""
    compute_ps: int
    """A step's time without any communication."""
    steps_ps: list[int]
    """Of each step, from the common start to the last rank's end; with what attempts took that links had failed in."""
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
    def mean_step_ps(self) -> float:
        """Return a step's time, on average."""
        return sum(self.steps_ps) / len(self.steps_ps)

    @property
    def exposed_ps(self) -> float:
        """Return the time of a step in which ranks only wait, on average: step without compute."""
        return self.mean_step_ps - self.compute_ps

    @property
    def loss_difference(self) -> float:
        """Return by how much a loss differs from that of one process at most."""
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
        """Return whether all sums were right, and the training that of one process within the bounds."""
        return (
            self.wrong == 0
            and self.identical
            and self.loss_difference <= self.loss_bound
            and abs(self.accuracy - self.single_accuracy) <= self.accuracy_bound
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with the derived figures."""
        return {**vars(self), **{key: getattr(self, name) for key, name in self.derived.items()}}


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
    print_figures(
        console,
        "what a step takes, in µs",
        ["algorithm", "steps", "repeated", "buckets", "compute", "step", "exposed", "exposed (%)", "#wrong"],
        [
            [
                each.algorithm,
                str(len(each.steps_ps)),
                str(each.repeated),
                str(each.buckets),
                f"{each.compute_ps / _PS_PER_US:.1f}",
                f"{each.mean_step_ps / _PS_PER_US:.1f}",
                f"{each.exposed_ps / _PS_PER_US:.1f}",
                f"{100 * each.exposed_ps / each.mean_step_ps:.1f}",
                str(each.wrong) if each.identical else f"{each.wrong}, ranks differ",
            ]
            for each in results
        ],
        names=["algorithm"],
    )
    print_figures(
        console,
        "loss, beside that of one process",
        [
            "algorithm",
            "at first",
            "in the end",
            "one process",
            "within",
            "target",
            "at step",
            "at (µs)",
        ],
        [
            [
                each.algorithm,
                f"{each.losses[0]:.3f}",
                f"{each.losses[-1]:.3f}",
                f"{each.single_losses[-1]:.3f}",
                _within(each.loss_difference, each.loss_bound),
                f"{each.target_loss:g}",
                *_target(each),
            ]
            for each in results
        ],
        names=["algorithm"],
    )
    print_figures(
        console,
        "recognised, in % of all images",
        ["algorithm", "ranks", "one process", "within"],
        [
            [
                each.algorithm,
                f"{100 * each.accuracy:.1f}",
                f"{100 * each.single_accuracy:.1f}",
                _within(100 * abs(each.accuracy - each.single_accuracy), 100 * each.accuracy_bound),
            ]
            for each in results
        ],
        names=["algorithm"],
    )


def _within(difference: float, bound: float) -> str:
    """Return the bound where it holds: how far below it a difference is depends on the machine's products."""
    return f"± {bound:g}" if difference <= bound else f"no: {difference:.1e}"


def _target(result: TrainingRunResult) -> tuple[str, str]:
    if result.target_ps is None:
        return "never", ""
    return str(result.target_steps), f"{result.target_ps / _PS_PER_US:.1f}"


def report_training_runs(results: Sequence[TrainingRunResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Curves of the loss, bars of the steps' parts, and a table."""
    labels = [f"{number} {each.algorithm}" for number, each in enumerate(results, 1)]
    loss = Axis("loss")
    curves = [
        Curve(label, list(_times_us(each)), each.losses) for label, each in zip(labels, results, strict=True)
    ]
    yield CurveFigure(
        "Loss against time",
        Axis("emulated time (µs)", "µs"),
        loss,
        curves,
        text="Mean loss of all images. Times are those of the steps, one behind the other.",
    )
    steps = range(len(results[0].losses))
    yield CurveFigure(
        "Loss against steps",
        Axis("steps"),
        loss,
        [
            *(
                Curve(label, range(len(each.losses)), each.losses)
                for label, each in zip(labels, results, strict=True)
            ),
            Curve("one process", steps, results[0].single_losses),
        ],
        text="Beside that of one process, which computes the gradient of all ranks' images at once.",
    )
    yield BarFigure(
        "Steps of training",
        Axis("time (µs)", "µs"),
        rows=labels,
        parts={
            "compute": [each.compute_ps / _PS_PER_US for each in results],
            "exposed communication": [each.exposed_ps / _PS_PER_US for each in results],
        },
        text="What a step took on average: computing, and the communication that nothing hid.",
    )
    columns = [
        "algorithm", "steps", "repeated", "step (µs)", "exposed (µs)", "loss in the end", "one process", "recognised",
        "one process", "wrong", "retransmitted packets",
    ]  # fmt: skip
    yield ReportTable(
        "Training",
        columns,
        [
            [
                each.algorithm,
                len(each.steps_ps),
                each.repeated,
                f"{each.mean_step_ps / _PS_PER_US:.1f}",
                f"{each.exposed_ps / _PS_PER_US:.1f}",
                f"{each.losses[-1]:.4f}",
                f"{each.single_losses[-1]:.4f}",
                f"{100 * each.accuracy:.1f} %",
                f"{100 * each.single_accuracy:.1f} %",
                each.wrong,
                each.retransmissions,
            ]
            for each in results
        ],
        "repeated: attempts at a step that links failed in",
    )


def _times_us(result: TrainingRunResult) -> Iterator[float]:
    time_ps = 0
    yield 0.0
    for step_ps in result.steps_ps:
        time_ps += step_ps
        yield time_ps / _PS_PER_US


TRAINING_RUNS = ResultKind(
    key="training_runs",
    meaning="Of each item of training, by each algorithm.",
    model=TrainingRunResult,
    is_checked=lambda _: True,
    show=print_training_runs,
    order=5,
    report=report_training_runs,
    problems=problems_of,
    name="algorithm",
    labels=("algorithm", "buckets"),
    measured=(
        MeasuredColumn("step", "µs", 1, "mean_step_ps", _PS_PER_US),
        MeasuredColumn("exposed", "µs", 1, "exposed_ps", _PS_PER_US),
        MeasuredColumn("target loss", "µs", 1, "target_ps", _PS_PER_US),
    ),
)
