"""Runs the trials of many procedures at once: as many as there are workers, each in a process of its own."""

from __future__ import annotations

import concurrent.futures
import os
import uuid
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from weft.errors import BadInputError, WeftError
from weft.sweeps.plan import Point, PointMaker
from weft.sweeps.store import Outcome, State, SweepStore
from weft.sweeps.worker import run_point, stop_points
from weft.trials.trial import InvalidTrialError, Trial, TrialRun

_Result = TypeVar("_Result")
Procedure = Generator[Sequence[Trial], Sequence[TrialRun], _Result]
"""Yields trials, gets their runs in the same order, and returns its result.

A trial whose scenario is not valid raises InvalidTrialError at the `yield`.
"""


class TrialProgress(Protocol):
    """Shows the progress of procedures."""

    def begin(self, procedures: Sequence[str]) -> None:
        """All that are to be run, by name."""

    def planned(self, procedure: str, trials: int, left: int) -> None:
        """A procedure has asked for so many trials; `left` of them have not been run before."""

    def ended(self, procedure: str, run: TrialRun) -> None:
        """A trial of a procedure has ended now."""

    def done(self, procedure: str, error: WeftError | None) -> None:
        """A procedure has its result, or has been ended by an error."""


class _Silent:
    def begin(self, procedures: Sequence[str]) -> None:
        pass

    def planned(self, procedure: str, trials: int, left: int) -> None:
        pass

    def ended(self, procedure: str, run: TrialRun) -> None:
        pass

    def done(self, procedure: str, error: WeftError | None) -> None:
        pass


@dataclass
class _Batch(Generic[_Result]):
    """A procedure, and the trials that it waits for; `missing` are the points that have not ended."""

    procedure: Procedure[_Result]
    trials: Sequence[Trial] = ()
    points: Sequence[Point] = ()
    missing: set[str] = field(default_factory=set)


class TrialRunner:
    """Runs procedures in a directory; a trial that has finished there before, by this version of Weft, is not repeated.

    Two trials with the same scenario are one run.
    """

    def __init__(self, directory: Path, workers: int | None = None, progress: TrialProgress | None = None) -> None:
        if workers is not None and workers < 1:
            raise BadInputError(f"{workers} workers", valid="1 or more")
        self._store = SweepStore(directory)
        self._workers = workers or len(os.sched_getaffinity(0))
        self._progress: TrialProgress = progress or _Silent()
        self._maker = PointMaker()

    def run(self, procedures: Mapping[str, Procedure[_Result]]) -> dict[str, _Result | WeftError]:
        """Return the result of each procedure, by name; a WeftError that a procedure has raised stands in its place.

        An interruption ends the running trials.
        """
        with self._store.locked():
            return _Runs(self._store, self._workers, self._progress, self._maker, procedures).results()


class _Runs(Generic[_Result]):
    """One call of `run`."""

    def __init__(
        self,
        store: SweepStore,
        workers: int,
        progress: TrialProgress,
        maker: PointMaker,
        procedures: Mapping[str, Procedure[_Result]],
    ) -> None:
        self._store = store
        self._workers = workers
        self._progress = progress
        self._maker = maker
        self._batches = {name: _Batch(procedure) for name, procedure in procedures.items()}
        self._found: dict[str, _Result | WeftError] = {}
        self._outcomes: dict[str, Outcome] = {}
        """Points that have ended, by identity."""
        self._running: dict[str, concurrent.futures.Future[Outcome]] = {}
        self._session = uuid.uuid4().hex

    def results(self) -> dict[str, _Result | WeftError]:
        """Run everything, and return the results in the order of the procedures."""
        self._progress.begin(list(self._batches))
        # Threads, because each point has a process of its own.
        with concurrent.futures.ThreadPoolExecutor(self._workers) as pool:
            try:
                for name in self._batches:
                    self._advance(name, None, pool)
                while self._running:
                    concurrent.futures.wait(self._running.values(), return_when=concurrent.futures.FIRST_COMPLETED)
                    self._collect(pool)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                stop_points(self._session)
                raise
        return {name: self._found[name] for name in self._batches}

    def _collect(self, pool: concurrent.futures.Executor) -> None:
        ended = [identity for identity, future in self._running.items() if future.done()]
        for identity in ended:
            outcome = self._running.pop(identity).result()
            self._outcomes[identity] = outcome
            point = next(
                point for batch in self._batches.values() for point in batch.points if point.identity == identity
            )
            self._store.keep(point, outcome)
        for name, batch in self._batches.items():
            now = batch.missing.intersection(ended)
            batch.missing -= now
            for trial, point in zip(batch.trials, batch.points, strict=True):
                if point.identity in now:
                    self._progress.ended(name, self._run_of(trial, point))
            if now and not batch.missing:
                runs = [self._run_of(trial, point) for trial, point in zip(batch.trials, batch.points, strict=True)]
                self._advance(name, runs, pool)

    def _run_of(self, trial: Trial, point: Point) -> TrialRun:
        return TrialRun(trial, self._store.directory_of(point), self._outcomes[point.identity])

    def _advance(self, name: str, runs: Sequence[TrialRun] | None, pool: concurrent.futures.Executor) -> None:
        """Let a procedure go on until it waits for a trial that has not been run, or has its result."""
        batch = self._batches[name]
        problem: WeftError | None = None
        while True:
            try:
                # A generator that has not begun takes None only.
                trials = batch.procedure.send(runs) if problem is None else batch.procedure.throw(problem)  # type: ignore[arg-type]
            except StopIteration as end:
                self._end(name, end.value, None)
                return
            except WeftError as error:
                self._end(name, error, error)
                return
            try:
                batch.trials, batch.points, problem = trials, [self._point(each) for each in trials], None
            except InvalidTrialError as error:
                problem = error
                continue
            self._start(name, batch, pool)
            if batch.missing:
                return
            runs = [self._run_of(trial, point) for trial, point in zip(batch.trials, batch.points, strict=True)]

    def _point(self, trial: Trial) -> Point:
        try:
            return self._maker.point(dict(trial.tree), trial.label, {}, trial.program)
        except WeftError as error:
            raise InvalidTrialError(error) from error

    def _start(self, name: str, batch: _Batch[Any], pool: concurrent.futures.Executor) -> None:
        new: dict[str, Point] = {}
        batch.missing = set()
        for point in batch.points:
            identity = point.identity
            if identity not in self._outcomes and identity not in self._running and identity not in new:
                outcome = self._store.outcome(point)
                if outcome.state is State.FINISHED:
                    self._outcomes[identity] = outcome
                else:
                    new[identity] = point
            if identity not in self._outcomes:
                batch.missing.add(identity)
        self._progress.planned(name, len(batch.points), len(batch.missing))
        for identity, point in new.items():
            folder = str(self._store.prepare(point))
            self._running[identity] = pool.submit(run_point, self._session, folder, point.arguments, point.program)

    def _end(self, name: str, found: _Result | WeftError, error: WeftError | None) -> None:
        self._found[name] = found
        batch = self._batches[name]
        batch.trials, batch.points, batch.missing = (), (), set()
        self._progress.done(name, error)
