"""Results of a training job's step: its duration, and the parts of ranks' time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weft.jobs.plan_summary import PlanSummary
from weft.quantities.readable import Unit, counted, format_number, format_size, format_time, time_unit
from weft.quantities.units import PS_PER_MS
from weft.recording import tables
from weft.results.clearances import ClearedResult, ClearToSendResult, clearance_columns, print_clearances
from weft.results.columns import Column, Look, ResultTable
from weft.results.critical_paths import (
    CriticalPathResult,
    critical_path_tables,
    print_critical_path,
    shares_table,
)
from weft.results.kinds import ResultKind, lengths_and_sums
from weft.results.operation_files import OperationFile, timelines
from weft.results.report_parts import Axis, BarFigure, ReportPart, shown_of
from weft.results.step_parts import StepParts
from weft.results.work import Work, training_products
from weft.topologies import FabricSpec
from weft.traffic.jobs.breakdown import Breakdown

_MOST_BARS = 64
_OF_RANKS = ("compute", "exposed", "bubble", "stall")


@dataclass(frozen=True)
class TrainingJobResult(ClearedResult):
    """A step of training, from the job's start to the end of its last operation.

    Each rank's time is divided into computing, exposed communication, bubbles and stalls, which add up to the step
    ([definitions](training.md#where-the-time-of-a-step-goes)). `records` has a row per operation; it is written to a
    separate table, not to the results file.
    """

    derived: ClassVar[Mapping[str, str]] = {
        "mfu": "mfu",
        "mfu_with_all_scores": "mfu_with_all_scores",
        "tokens_per_s": "tokens_per_s",
    }

    name: str
    """Name of the model."""
    plan: PlanSummary
    """Plan of the step, known before the run."""
    step_ps: int
    """Duration of the step."""
    compute_ps: dict[str, int]
    """Computation by category, on average over the ranks."""
    exposed_ps: dict[str, int]
    """Communication that no computation hid, by category, on average over the ranks."""
    bubble_ps: int
    """Waiting for messages that had not been sent, and for the end, on average over the ranks."""
    stall_ps: int
    """Waiting for ranks of a group that had not begun a collective, on average over the ranks."""
    ranks: dict[str, list[int]]
    """Parts of each rank's time: `compute`, `exposed`, `bubble` and `stall`, in ps."""
    retransmissions: int
    """Packets sent again."""
    critical_path: CriticalPathResult
    """Parts of the step's time."""
    records: tables.Table = field(default_factory=dict, compare=False, repr=False)

    @property
    def cleared_ps(self) -> int:
        """`step_ps`."""
        return self.step_ps

    @property
    def step_parts(self) -> StepParts:
        """Return the means of the ranks' parts."""
        return StepParts.of_ranks(*(self.ranks[each] for each in _OF_RANKS))

    @property
    def work(self) -> Work:
        """Return the step and its tokens."""
        products = training_products(self.plan.ranks, tokens=self.plan.tokens)
        share = self.step_parts.computing_share
        return Work(f"training {self.name}", self.plan.ranks, self.step_ps, products, share, self.mfu)

    @property
    def mfu(self) -> float:
        """Return model FLOPs utilisation: the step's operations over what accelerators could do in its time."""
        return self.plan.utilisation(self.step_ps)

    @property
    def mfu_with_all_scores(self) -> float:
        """Return `mfu` with all of attention's scores counted, not the causal half."""
        return self.plan.utilisation_with_all_scores(self.step_ps)

    @property
    def tokens_per_s(self) -> float:
        """Return tokens per second of emulated time, of all ranks."""
        return self.plan.tokens_per_s(self.step_ps)


def training_job_result(
    name: str,
    plan: PlanSummary,
    step_ps: int,
    found: Sequence[Breakdown],
    retransmissions: int,
    path: CriticalPathResult,
    records: tables.Table,
    clear_to_send: ClearToSendResult | None = None,
) -> TrainingJobResult:
    """Return the result of a step, given what each rank's time went to."""
    return TrainingJobResult(
        name=name,
        plan=plan,
        step_ps=step_ps,
        compute_ps=_means(found, "compute_ps"),
        exposed_ps=_means(found, "exposed_ps"),
        bubble_ps=round(sum(each.bubble_ps for each in found) / len(found)),
        stall_ps=round(sum(each.stall_ps for each in found) / len(found)),
        ranks={
            "compute": [each.compute_ps.total() for each in found],
            "exposed": [each.exposed_ps.total() for each in found],
            "bubble": [each.bubble_ps for each in found],
            "stall": [each.stall_ps for each in found],
        },
        retransmissions=retransmissions,
        critical_path=path,
        records=records,
        clear_to_send=clear_to_send,
    )


def _means(found: Sequence[Breakdown], name: str) -> dict[str, int]:
    sums = Counter[str]()
    for each in found:
        sums.update(getattr(each, name))
    return {category: round(total / len(found)) for category, total in sorted(sums.items())}


def print_plan(console: Console, name: str, plan: PlanSummary) -> None:
    """Print what is known before a run."""
    ranks = counted(plan.ranks, "rank")
    console.print(f"\n[bold]training {escape(name)} on {ranks}[/bold], before the run")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row("parameters", f"{plan.parameters:,}, of which {plan.active_parameters:,} compute a token")
    table.add_row(
        "memory of a rank",
        f"{format_size(sum(plan.memory_bytes.values()))} of {format_size(plan.accelerator_memory_bytes)} "
        f"({_sizes(plan.memory_bytes)})",
    )
    table.add_row("tokens a step", f"{plan.tokens:,}")
    whole = f"; {plan.all_scores_flops:.3e} with all scores" if plan.all_scores_flops else ""
    table.add_row("operations a step", f"{plan.model_flops:.3e} FLOP of the model, scores causal{whole}")
    table.add_row("a rank sends", _sizes(plan.sent_bytes) or "nothing")
    table.add_row(
        "ideal step",
        f"{format_time(plan.ideal_ps)} without communication: {_rate(plan, plan.ideal_ps)}",
    )
    console.print(table)


def _rate(plan: PlanSummary, step_ps: int) -> str:
    mfu, whole = plan.utilisation(step_ps), plan.utilisation_with_all_scores(step_ps)
    both = f" ({format_number(100 * whole)} % with all scores)" if whole else ""
    return f"{format_number(plan.tokens_per_s(step_ps))} tokens/s, MFU {format_number(100 * mfu)} %{both}"


def _sizes(sizes_bytes: Mapping[str, int]) -> str:
    return ", ".join(f"{escape(name)} {format_size(size, digits=3)}" for name, size in sizes_bytes.items())


def print_training_jobs(console: Console, results: Sequence[TrainingJobResult]) -> None:
    """Print the plan of each step and where its time went, on average over the ranks."""
    for result in results:
        print_plan(console, result.name, result.plan)
        console.print(f"\n[bold]a step of {escape(result.name)}[/bold] (time is emulated; mean of the ranks)")
        times = [("step", result.step_ps), *_parts(result).items()]
        shares_table(time_unit([result.step_ps]), result.step_ps).print(console, times)
        console.print(_rate(result.plan, result.step_ps))
        print_clearances(console, result)
        print_critical_path(console, result.critical_path)


def _parts(result: TrainingJobResult) -> dict[str, int]:
    """Return what a step's time went to, by what people call it."""
    return {
        **{f"compute: {name}": time_ps for name, time_ps in result.compute_ps.items()},
        **{f"exposed: {name}": time_ps for name, time_ps in result.exposed_ps.items()},
        "bubble": result.bubble_ps,
        "stall": result.stall_ps,
    }


def report_training_jobs(results: Sequence[TrainingJobResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Bars of the steps, bars of each step's ranks, and a table with a row for each step."""
    parts = [_parts(each) for each in results]
    names = dict.fromkeys(name for each in parts for name in each)
    labels = [f"{number} {each.name}" for number, each in enumerate(results, 1)]
    unit = time_unit(time_ps for each in results for time_ps in (each.step_ps, each.plan.ideal_ps))
    yield BarFigure(
        "Training",
        Axis(f"time ({unit.name})", unit.name),
        rows=labels,
        parts={name: [unit.of(each.get(name, 0)) for each in parts] for name in names},
        text="Time of a step, on average over the ranks.",
    )
    for label, result in zip(labels, results, strict=True):
        shown, own = min(result.plan.ranks, _MOST_BARS), time_unit([result.step_ps])
        yield BarFigure(
            f"Ranks of training {label}",
            Axis(f"time ({own.name})", own.name),
            rows=[f"rank {rank}" for rank in range(shown)],
            parts={name: [own.of(each) for each in values[:shown]] for name, values in result.ranks.items()},
            text="Parts of each rank's time.",
            note=shown_of(shown, result.plan.ranks, "the first ranks"),
        )
        yield from timelines(f"training {label}", result.records)
        yield from critical_path_tables(f"training {label}", result.critical_path)
    yield _steps(unit).part(results)


def _percent(title: str, value: str, sweep: Look | None = None) -> Column[TrainingJobResult]:
    return Column(title, value, form=lambda share: f"{100 * share:.1f} %", sweep=sweep)


_MFU = _percent("MFU", "mfu", {"unit": "%", "scale": 0.01, "digits": 1, "more_is_better": True})


def _steps(unit: Unit) -> ResultTable[TrainingJobResult]:
    """Return a page's table of steps."""
    return ResultTable(
        "Training",
        (
            Column("model", "name"),
            Column("ranks", "plan.ranks"),
            Column("step", lambda each: unit.of(each.step_ps), unit=unit.name, digits=3),
            Column("ideal", lambda each: unit.of(each.plan.ideal_ps), unit=unit.name, digits=3),
            Column("tokens/s", "tokens_per_s", digits=0),
            _MFU,
            _percent("MFU with all scores", "mfu_with_all_scores"),
            Column("retransmitted packets", "retransmissions"),
            *clearance_columns(TrainingJobResult),
        ),
        note="ideal: without communication, with no rank slower; MFU: with the causal half of attention's scores",
    )


def _problems(result: TrainingJobResult) -> Iterator[tuple[str, str]]:
    if set(result.ranks) != set(_OF_RANKS):
        yield "ranks", f"has {', '.join(result.ranks) or 'nothing'}; there are {', '.join(_OF_RANKS)}"
        return
    yield from lengths_and_sums("ranks.", result.ranks, result.plan.ranks, "step_ps", result.step_ps)
    if result.plan.peak_flops_per_s <= 0:
        yield "plan.peak_flops_per_s", f"{result.plan.peak_flops_per_s:g} is out of range (valid: above 0)"


TRAINING_JOBS = ResultKind(
    key="training_jobs",
    meaning="One for each step of a training job.",
    model=TrainingJobResult,
    show=print_training_jobs,
    order=5,
    report=report_training_jobs,
    flow_file=OperationFile("training"),
    problems=_problems,
    name="name",
    labels=("name",),
    columns=(
        Column("step", "step_ps", unit="ms", scale=PS_PER_MS, digits=3, sweep={}),
        _MFU,
        Column("bubble", "bubble_ps", unit="ms", scale=PS_PER_MS, digits=3, sweep={}),
    ),
)
