"""Kinds of results: what each item of the traffic leaves in results.json, on the terminal, in pages and in sweeps."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from rich.console import Console

from weft.results.flow_tables import FlowFile
from weft.results.operation_files import OperationFile
from weft.results.report_parts import ReportPart
from weft.results.request_files import RequestFile
from weft.scenario.traffic import TRAFFIC_KINDS
from weft.topologies import FabricSpec


class ItemResult(Protocol):
    """What a run of an item found: a frozen dataclass of plain fields, which are read back as they were written.

    The text below a field is its meaning in docs/results-reference.md.
    """

    derived: ClassVar[Mapping[str, str]]
    """The properties that `as_dict` adds, by their keys in results.json."""

    @property
    def ok(self) -> bool:
        """Whether nothing is known to be wrong."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with derived figures."""


R = TypeVar("R", bound=ItemResult)


@dataclass(frozen=True)
class MeasuredColumn:
    """A figure that the points of a sweep are compared by: a key of the result, over `scale`, with so many digits."""

    name: str
    unit: str
    digits: int
    key: str
    scale: float = 1.0


def _nothing(*_: Any) -> tuple[()]:
    return ()


@dataclass(frozen=True)
class ResultKind(Generic[R]):
    """A kind of result, which a kind of traffic names as `results`.

    Args:
        key: of results.json, which holds a list of them.
        meaning: of that list, for docs/results-reference.md.
        model: what each of them is.
        show: prints all of a run.
        is_checked: whether one of them was compared with what it must be, so that `ok` says something.
        is_always_written: whether results.json has the list where it is empty, too.
        order: of its place on the terminal, on pages and in sweeps, the lowest first.
        report: its part of the page of a run, from top to bottom, given all of the run and the fabric.
        flow_file: of the model's `records`, a row per flow, operation or request, which are written beside results.json
            and read back.
        save: writes what else belongs to one of them there, given the directory and its place in the list.
        problems: what the fields' types do not say of one that was read back: a key below it, and what is wrong.
        name: column of a sweep's table that says what a result is of.
        labels: further columns that distinguish the results of one point, the most useful first.
        measured: figures that points are compared by.
        columns: further columns of a result's plain data, whose lists are left out otherwise.
    """

    key: str
    meaning: str
    model: type[R]
    show: Callable[[Console, Sequence[R]], None]
    is_checked: Callable[[R], bool] = lambda _: False
    is_always_written: bool = False
    order: int = 100
    report: Callable[[Sequence[R], FabricSpec], Iterable[ReportPart]] = _nothing
    flow_file: FlowFile | OperationFile | RequestFile | None = None
    save: Callable[[R, Path, int], object] = _nothing
    problems: Callable[[R], Iterable[tuple[str, str]]] = _nothing
    name: str = ""
    labels: tuple[str, ...] = ()
    measured: tuple[MeasuredColumn, ...] = ()
    columns: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda _: {}

    def __post_init__(self) -> None:
        """Raise TypeError if the model's `derived` is not what the reference and the reader of results take."""
        derived = getattr(self.model, "derived", None)
        if not isinstance(derived, Mapping):
            raise TypeError(
                f"{self.model.__name__}.derived is a {type(derived).__name__} (valid: a mapping from keys "
                "of as_dict to the properties that they are)"
            )


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


def result_kinds() -> tuple[ResultKind[Any], ...]:
    """Return the kinds of results that kinds of traffic name, each once, in their order."""
    # Scenarios, where the sections are found, know nothing of results; `TrafficItem` in weft/run names them.
    named = [inspect.getattr_static(section, "results") for section in TRAFFIC_KINDS.values()]
    found = {kind.key: kind for kind in named if kind is not None}
    return tuple(sorted(found.values(), key=lambda kind: (kind.order, kind.key)))
