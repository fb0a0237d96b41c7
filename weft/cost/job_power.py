"""Power of the jobs and collectives of a run, from its results and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.cost.power import PowerTrace, busy_communicating, busy_of_operations, power_trace
from weft.cost.prices import PriceTable, StateWatts
from weft.errors import BadInputError
from weft.recording.tables import Table, integers_of
from weft.results.collectives import COLLECTIVES, CollectiveResult
from weft.results.kinds import ResultKind
from weft.results.model import Results
from weft.results.run_result import RESULTS_FILE
from weft.results.training_jobs import TRAINING_JOBS, TrainingJobResult
from weft.topologies import FabricSpec


@dataclass(frozen=True, eq=False)
class JobPower:
    """Power of one result's time.

    Attributes:
        name: of the result.
        what: what took the time, such as `a training step`.
        trace: power over that time.
        tokens: tokens made meanwhile; 0 if none.
        moved_bytes: bytes of a collective, of all ranks; 0 of a step.
    """

    name: str
    what: str
    trace: PowerTrace
    tokens: int = 0
    moved_bytes: int = 0


def job_powers(
    directory: Path,
    results: Results,
    fabric: FabricSpec,
    placed: Sequence[tuple[ResultKind[Any], Sequence[int] | None]],
    table: PriceTable,
    states: StateWatts,
    per_endpoint: int = 1,
) -> Iterator[JobPower]:
    """Yield the power of each training step and collective of a run.

    Args:
        directory: where the run's tables are.
        results: its results.
        fabric: where it ran.
        placed: kind of results and ranks of the fabric, None for the first ones, of each item of the scenario.
        table: prices and watts.
        states: watts of each accelerator.
        per_endpoint: accelerators of each rank.

    Raises:
        BadInputError: the run has neither, a table is missing or lacks ranks, or the items do not fit the results.
    """
    found = False
    file = directory / RESULTS_FILE
    first = _first_ranks(fabric)
    steps: list[TrainingJobResult] = results.of(TRAINING_JOBS)
    for number, (step, ranks) in enumerate(zip(steps, _ranks_of_steps(placed, len(steps), file), strict=True)):
        records = _records(directory, number, step, len(fabric.hosts))
        busy, where = busy_of_operations(records, step.plan.ranks), ranks or first[: step.plan.ranks]
        trace = power_trace(fabric, table, states, where, busy, step.step_ps, per_endpoint)
        yield JobPower(f"training {step.name}", "a training step", trace, tokens=step.plan.tokens)
        found = True
    collectives: list[CollectiveResult] = results.of(COLLECTIVES)
    everywhere = {len(ranks): ranks for kind, ranks in placed if kind is COLLECTIVES and ranks is not None}
    for each in collectives:
        if not each.time_ps:
            continue
        busy, where = busy_communicating(each.ranks, each.time_ps), everywhere.get(each.ranks, first[: each.ranks])
        trace = power_trace(fabric, table, states, where, busy, each.time_ps, per_endpoint)
        name = f"{each.collective}, {each.algorithm}, {each.size_bytes:,} B"
        yield JobPower(name, "a run of it", trace, moved_bytes=each.size_bytes * each.ranks)
        found = True
    if not found:
        raise BadInputError("the run has no job with a timeline", place=file, valid="results of model or collective")


def _first_ranks(fabric: FabricSpec) -> list[int]:
    hosts = fabric.host_numbers()
    return sorted(range(len(hosts)), key=lambda rank: (hosts[rank], rank))


def _ranks_of_steps(
    placed: Sequence[tuple[ResultKind[Any], Sequence[int] | None]], count: int, file: Path
) -> list[Sequence[int] | None]:
    ranks = [ranks for kind, ranks in placed if kind is TRAINING_JOBS]
    if len(ranks) != count:
        raise BadInputError(f"has {count} training steps; the scenario has {len(ranks)} items of model", place=file)
    return ranks


def _records(directory: Path, number: int, step: TrainingJobResult, hosts: int) -> Table:
    """Return the operations of all ranks of a step. Raises BadInputError if they are not all there."""
    assert TRAINING_JOBS.flow_file is not None, "steps have a table of operations"
    records = TRAINING_JOBS.flow_file.read(directory, number, hosts)
    name = directory / TRAINING_JOBS.flow_file.of(number)
    if not records or not len(integers_of(records, "rank")):
        raise BadInputError("is missing, or has no rows: power over time needs the operations of all ranks", place=name)
    ranks = int(integers_of(records, "rank").max()) + 1
    if ranks != step.plan.ranks:
        raise BadInputError(
            f"has the operations of {ranks:,} of {step.plan.ranks:,} ranks: a table has at most 200,000 rows, which is "
            "too few for this job",
            place=name,
        )
    return records
