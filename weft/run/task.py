"""Tasks, which hosts run alone or concurrently: how they are prepared, verified and turned into results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from numpy.typing import NDArray

from weft.errors import BadInputError
from weft.quantities.definitions import number
from weft.results.counters import HostTotals
from weft.results.kinds import ResultKind
from weft.results.verification import Verdict
from weft.run.collectives import Repetitions
from weft.run.reducing_groups import ReducingGroup
from weft.traffic.answers import (
    ApplicationRecords,
    EndedFlows,
    ParameterRecords,
    ServiceRecords,
    TcpRecords,
)
from weft.traffic.jobs import Job, RankTimes
from weft.traffic.mapped_data import RankBuffer
from weft.traffic.patterns import Flow
from weft.traffic.prepared_runs import RunOutcome

T = TypeVar("T")
S = TypeVar("S")
Prepare = Callable[[Sequence[RankBuffer], list[Path], Sequence[int]], int]
"""Connects the hosts and prepares them; returns the run's number. Takes the ranks' buffers, their result files (none if
hosts use arrays of this process), and the aggregation jobs of `Task.reducing`."""


_TIMEOUT_S = number(0, 1e12)


def check_timeout(timeout_s: float) -> None:
    """Check the timeout of a run. Raises BadInputError if it is out of range."""
    _TIMEOUT_S.check(timeout_s, "timeout_s")


def require_all(found: Sequence[object], kind: type, where: str, valid: str) -> None:
    """Check that a user's argument is a list with items of a type. Raises BadInputError otherwise."""
    if not isinstance(found, Sequence):
        raise BadInputError(f"a {type(found).__name__}", place=where, valid=f"a list, each {valid}")
    for place, each in enumerate(found):
        if not isinstance(each, kind):
            raise BadInputError(f"item {place} is a {type(each).__name__}", place=where, valid=valid)


@dataclass(frozen=True)
class Ended:
    """A finished run of a task.

    Attributes:
        outcome: when each rank began and ended.
        counted: counts of all hosts, which include concurrent tasks.
        outputs: every rank's data; empty if packets carried lengths, and for repetitions before the last.
        records: records of the task's finished flows.
        times: times of each rank's operations, in emulated time, if the task is a job.
        hosts: indices of the hosts that had the ranks, in their order, if the task is a job.
        answers: records of each rank for tasks with `asks`: a switch service, a store, TCP flows or programs.
        verdict: verdict on the outputs, if they were compared.
    """

    outcome: RunOutcome
    counted: HostTotals
    outputs: list[NDArray[Any]]
    records: EndedFlows
    times: Sequence[RankTimes] = ()
    hosts: Sequence[int] = ()
    answers: Sequence[ServiceRecords | ParameterRecords | TcpRecords | ApplicationRecords] = ()
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Task(Generic[T]):
    """A checked description of a run of the hosts, which may begin at any time.

    Attributes:
        name: name of its phase.
        kind: kind of its result; None if the result is not recorded.
        prepare: see `Prepare`.
        result: makes the result from all runs, in order, including warm-ups.
        inputs: every rank's data; runs use copies.
        verify: compares a run's outputs with the expected ones.
        arrays: converts every rank's data after a run to the results for users.
        reducing: groups of ranks that reduce in the network; each joins an aggregation job before the run.
        flows: its flows, if it consists of flows.
        repetitions: how often it runs.
        collective: reference of its definition, if it has one (`Collective.reference`).
        job: its job, if it consists of a job's operations.
        asks: records to read from hosts at the end: of requests to a switch service or a parameter store, of TCP flows,
            or of programs on their IP stacks.
        at_ps: how long after the common start of concurrent tasks it begins.
    """

    name: str
    kind: ResultKind[Any] | None
    prepare: Prepare
    result: Callable[[Sequence[Ended]], T]
    inputs: list[NDArray[Any]] | None = None
    verify: Callable[[Sequence[NDArray[Any]]], Verdict] | None = None
    arrays: Callable[[Sequence[NDArray[Any]]], list[NDArray[Any]]] = list
    reducing: tuple[ReducingGroup, ...] = ()
    flows: Sequence[Flow] = ()
    repetitions: Repetitions = field(default_factory=Repetitions)
    collective: str = ""
    job: Job | None = None
    asks: Literal["", "service", "parameters", "tcp", "applications"] = ""
    at_ps: int = 0

    @property
    def in_network(self) -> bool:
        """Whether switches reduce data."""
        return bool(self.reducing)

    def of(self, tenant: str) -> Task[T]:
        """Return the task with its in-network reductions charged to a tenant; "" for none.

        The choice of `auto` remains the one for the task's original tenant.
        """
        return replace(self, reducing=tuple(replace(group, tenant=tenant) for group in self.reducing))

    def at(self, after_ps: int) -> Task[T]:
        """Return the task with its start `after_ps` after the common start of concurrent tasks."""
        return replace(self, at_ps=after_ps)

    def with_run(self) -> Task[tuple[T, Ended]]:
        """Return the task with a result of the pair (result, last run), which is not recorded."""
        return Task(
            **{**vars(self), "kind": None, "result": lambda ended: (self.result(ended), ended[-1])},
        )

    def noted(self, kind: ResultKind[Any], result: Callable[[T], S]) -> Task[S]:
        """Return the task with its result converted by `result` and recorded as this kind."""
        return Task(
            **{**vars(self), "kind": kind, "result": lambda ended: result(self.result(ended))},
        )
