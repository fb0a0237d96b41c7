"""Kinds of results: what a run leaves in results.json, on the terminal, in pages and in sweeps."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rich.console import Console

from weft.quantities.plain_data import PlainData
from weft.results.columns import Column, ResultTable
from weft.results.record_files import RecordFile
from weft.results.report_parts import ReportPart
from weft.results.step_parts import StepParts
from weft.results.work import Work
from weft.scenario.traffic import TRAFFIC_KINDS
from weft.topologies import FabricSpec

if TYPE_CHECKING:
    from weft.results.model import Results


_MADE: dict[str, ResultKind[Any]] = {}
"""Kinds by key, as their modules are imported."""


class ItemResult(PlainData):
    """A base of what a run of an item found: a frozen dataclass of plain fields, read back as they were written.

    The text below a field is its meaning in docs/results-reference.md.
    """

    @property
    def ok(self) -> bool:
        """Whether nothing is known to be wrong; True where there is no data to check."""
        return True

    @property
    def step_parts(self) -> StepParts | None:
        """Parts of the time of a step, or of all steps; None if ranks compute nothing."""
        return None

    @property
    def work(self) -> Work | None:
        """Steps and tokens that money is divided by; None if there are none."""
        return None


R = TypeVar("R", bound=PlainData)


def nothing(*_: Any) -> tuple[()]:
    """Show nothing: for results that the terminal or pages leave to the others."""
    return ()


@dataclass(frozen=True)
class ResultKind(Generic[R]):
    """A kind of result, which a kind of traffic names as `results`, or of the whole run (`weft.results.model.OF_RUN`).

    Args:
        key: of results.json, which holds a list of them, or the figures from which `rows` makes one.
        model: class of each item.
        rows: makes a list of them of a run's results; without it, results.json holds the list.
        meaning: the list's meaning, for docs/results-reference.md; the model of results.json has the whole run's.
        tables: with a row for each of them, which the terminal and pages show.
        show: prints all of a run; without it, the tables are printed.
        is_checked: whether one of them was compared with its expected value, so that `ok` says something.
        is_always_written: whether results.json has the list where it is empty, too; for kinds that
            `weft.results.run_result` imports.
        order: place on the terminal, on pages and in sweeps, the lowest first.
        report: its part of the page of a run, from top to bottom, given all of the run and the fabric; without it, the
            tables.
        flow_file: file of the model's `records`, a row per flow, operation or request; written next to results.json and
            read back.
        save: writes further files of one of them, given the directory and its place in the list.
        problems: problems of one that was read back beyond its fields' types: a key below it, and the problem.
        name: column of a sweep's table that says what a result is of.
        labels: further columns that distinguish the results of one point, the most useful first.
        columns: columns that sweeps compare before the tables' columns; some are in no table.
        flattened: values of a result's plain data as columns of a sweep's table, which leaves lists out otherwise.
    """

    key: str
    model: type[R]
    rows: Callable[[Results], list[R]] | None = None
    meaning: str = ""
    tables: tuple[ResultTable[R], ...] = ()
    show: Callable[[Console, Sequence[R]], object] | None = None
    is_checked: Callable[[R], bool] = lambda _: False
    is_always_written: bool = False
    order: int = 100
    report: Callable[[Sequence[R], FabricSpec], Iterable[ReportPart]] | None = None
    flow_file: RecordFile | None = None
    save: Callable[[R, Path, int], object] = nothing
    problems: Callable[[R], Iterable[tuple[str, str]]] = nothing
    name: str = ""
    labels: tuple[str, ...] = ()
    columns: tuple[Column[R], ...] = ()
    flattened: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda _: {}

    def __post_init__(self) -> None:
        """Note the kind. Raise TypeError if the model's `derived` or a compared column has a wrong type."""
        derived = getattr(self.model, "derived", None)
        if not isinstance(derived, Mapping):
            raise TypeError(
                f"{self.model.__name__}.derived is a {type(derived).__name__} (valid: a mapping from keys "
                "of as_dict to the properties that they are)"
            )
        for column in self.compared():
            if not isinstance(column.value, str):
                raise TypeError(
                    f"{self.key}: sweeps cannot compare column {column.name!r} by a function (valid: as value of its "
                    "sweep, a key in results.json)"
                )
        _MADE[self.key] = self

    def print(self, console: Console, results: Sequence[R]) -> None:
        """Print all results of a run, of which there is one or more."""
        if self.show is not None:
            self.show(console, results)
            return
        for table in self.tables:
            table.print(console, results)

    def parts(self, results: Sequence[R], fabric: FabricSpec) -> Iterable[ReportPart]:
        """Return its parts of a page; those that are empty are left out there."""
        if self.report is not None:
            return self.report(results, fabric)
        return (table.part(results) for table in self.tables)

    def compared(self) -> Iterator[Column[R]]:
        """Return the columns that sweeps compare, as they have them: their values are keys of results.json."""
        of_tables = (each for table in self.tables for each in table.columns)
        for column in dict.fromkeys((*self.columns, *of_tables)):
            if (found := column.at("sweep")) is not None:
                yield found


def lengths_and_sums(
    above: str, parts: Mapping[str, Sequence[int]], ranks: int, whole: str, whole_ps: int
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with parts of each rank's time: keys with another number of ranks, and other sums.

    `above` is what stands before the parts' keys, `whole` the key of their sum.
    """
    wrong = [(f"{above}{key}", len(values)) for key, values in parts.items() if len(values) != ranks]
    for key, length in wrong:
        yield key, f"has {length} values; there are {ranks} ranks"
    if not wrong:
        for rank, times_ps in enumerate(zip(*parts.values(), strict=True)):
            if sum(times_ps) != whole_ps:
                names = ", ".join(f"{above}{key}" for key in parts)
                yield whole, f"is {whole_ps}, but {names} of rank {rank} add up to {sum(times_ps)}"
                return


def kinds_of(keys: Collection[str]) -> tuple[ResultKind[Any], ...]:
    """Return the kinds that results.json has lists of if there are results with these keys, in their order.

    Unlike `result_kinds`, it imports no kind of traffic that the process has not used.
    """
    if not _MADE.keys() >= set(keys):
        return result_kinds()
    found = [kind for key, kind in _MADE.items() if key in keys or kind.is_always_written]
    return _in_order(found)


def _in_order(kinds: Iterable[ResultKind[Any]]) -> tuple[ResultKind[Any], ...]:
    return tuple(sorted(kinds, key=lambda kind: (kind.order, kind.key)))


def result_kinds() -> tuple[ResultKind[Any], ...]:
    """Return the kinds of results that kinds of traffic name, each once, in their order."""
    # Scenarios, where the sections are found, know nothing of results; `TrafficItem` in weft/run names them.
    named = [inspect.getattr_static(section, "results") for section in TRAFFIC_KINDS.values()]
    found = {kind.key: kind for kind in named if kind is not None}
    return _in_order(found.values())
