"""What hosts can run, beside other things or alone: how it is made ready, and what its end says."""

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
from weft.traffic.patterns import Flow
from weft.traffic.prepared_runs import RunOutcome
from weft.traffic.rank_buffer import RankBuffer

T = TypeVar("T")
S = TypeVar("S")
Prepare = Callable[[Sequence[RankBuffer], list[Path], Sequence[int]], int]
"""Given the ranks' buffers, the files of their results (none where hosts work on arrays of this process), and the
aggregation jobs of `Task.reducing`, connects the hosts and has them make ready; returns the run's number."""


_TIMEOUT_S = number(0, 1e12)


def check_timeout(timeout_s: float) -> None:
    """Check how long a run may take. Raises BadInputError."""
    _TIMEOUT_S.check(timeout_s, "timeout_s")


def require_all(found: Sequence[object], kind: type, where: str, valid: str) -> None:
    """Check what users list: that it is a list, of things of a kind. Raises BadInputError."""
    if not isinstance(found, Sequence):
        raise BadInputError(f"{where}: a {type(found).__name__} (valid: a list, each {valid})")
    for place, each in enumerate(found):
        if not isinstance(each, kind):
            raise BadInputError(f"{where}: item {place} is a {type(each).__name__} (valid: {valid})")


@dataclass(frozen=True)
class Ended:
    """A run of a task that has ended.

    Attributes:
        outcome: when each rank began and ended.
        counted: by all hosts, for what ran beside it, too.
        outputs: every rank's data; none where lengths stood for them, and of a repetition but the last.
        records: of the task's flows that have ended.
        times: of each rank's operations, in emulated time, if the task is a job.
        answers: to each rank's requests, if the task asks a service of switches; of TCP flows, what became of them.
        verdict: on the outputs, if they were compared with anything.
    """

    outcome: RunOutcome
    counted: HostTotals
    outputs: list[NDArray[Any]]
    records: EndedFlows
    times: Sequence[RankTimes] = ()
    answers: Sequence[ServiceRecords | ParameterRecords | TcpRecords | ApplicationRecords] = ()
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Task(Generic[T]):
    """A run of the hosts that is described and checked, and may begin at any time.

    Attributes:
        name: of its phase.
        kind: of its result; None for one that is not noted.
        prepare: see `Prepare`.
        result: from all of its runs, in order, warm-ups included.
        inputs: every rank's data, of which runs use copies.
        verify: compares a run's outputs with what they should be.
        arrays: of every rank's data after a run, the results as users get them.
        reducing: for which ranks switches reduce; they join an aggregation job each before it runs.
        flows: that it consists of, if it does.
        repetitions: how often it runs.
        collective: where its definition is, if it has one (`Collective.reference`).
        job: whose operations it consists of, if it does.
        asks: what is asked of hosts at the end: requests to a service of switches or a parameter store, TCP flows, what
            programs on their IP stacks have found.
        at_ps: how long after the start of what it runs beside it begins.
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
        """Whether switches reduce."""
        return bool(self.reducing)

    def of(self, tenant: str) -> Task[T]:
        """Return the task as a tenant's, whose quotas its reductions in the network have; "" stands for nobody.

        What `auto` chose is for the tenant that the task was made for.
        """
        return replace(self, reducing=tuple(replace(group, tenant=tenant) for group in self.reducing))

    def at(self, after_ps: int) -> Task[T]:
        """Return the task, beginning so long after the start of what it runs beside."""
        return replace(self, at_ps=after_ps)

    def with_run(self) -> Task[tuple[T, Ended]]:
        """Return the task with its last run beside its result, which is not noted."""
        return Task(
            **{**vars(self), "kind": None, "result": lambda ended: (self.result(ended), ended[-1])},
        )

    def noted(self, kind: ResultKind[Any], result: Callable[[T], S]) -> Task[S]:
        """Return the task with another result, which is made from its own and noted as of this kind."""
        return Task(
            **{**vars(self), "kind": kind, "result": lambda ended: result(self.result(ended))},
        )
