"""Runs points with threads on this machine, or with Dask on a cluster with shared files."""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.errors import EnvironmentLacksError
from weft.hints import install_extra
from weft.sweeps.plan import Point
from weft.sweeps.store import Outcome, State, SweepStore
from weft.sweeps.worker import run_point, sees, stop_points

_CONNECT_S = 10.0

Outcomes = Generator[tuple[Point, Outcome], None, None]


def run_points(
    points: Sequence[Point],
    store: SweepStore,
    workers: int,
    scheduler: str | None,
    on_done: Callable[[Point, Outcome], None],
) -> None:
    """Run points, as many at a time as there are workers, and store their results; `on_done` is called for each.

    An interruption ends the running points.

    Raises:
        EnvironmentLacksError: the cluster at `scheduler` cannot be used, or Dask is not installed.
    """
    if not points:
        return
    directories = {str(store.prepare(point)): point for point in points}
    if scheduler is None:
        outcomes = _here(directories, workers)
    else:
        outcomes = _on_cluster(directories, scheduler, store.directory / ".lock")
    # What interrupts the sweep here reaches the generator by its end.
    with contextlib.closing(outcomes):
        for point, outcome in outcomes:
            store.keep(point, outcome)
            on_done(point, outcome)


def _here(directories: Mapping[str, Point], workers: int) -> Outcomes:
    """Yield points as they end. Threads, because each point has a process of its own; nothing listens to a port."""
    sweep = uuid.uuid4().hex
    # Dask's own local cluster would open two web servers that every user of the machine can read.
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(run_point, sweep, each, point.arguments): point for each, point in directories.items()}
        try:
            for future in concurrent.futures.as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop_points(sweep)
            raise


def _on_cluster(directories: Mapping[str, Point], scheduler: str, lock: Path) -> Outcomes:
    """Yield points as they end on the cluster's workers, which must see the lock of the sweep's directory."""
    sweep = uuid.uuid4().hex
    with _logging_restored(), _client(scheduler) as client:
        _require_shared(client, lock)
        from distributed import as_completed

        futures = {}
        for directory, point in directories.items():
            # Results that Dask has cached do not count: the store alone decides what is finished.
            key = f"{point.identity}-{sweep}"
            futures[client.submit(run_point, sweep, directory, key=key, pure=False)] = point
        try:
            for future in as_completed(list(futures), loop=client.loop):
                yield futures[future], _outcome_of(future)
        except BaseException:
            # Dask would log every point that it abandons.
            logging.disable(logging.CRITICAL)
            client.run(stop_points, sweep)
            raise


@contextlib.contextmanager
def _logging_restored() -> Iterator[None]:
    before = logging.root.manager.disable
    try:
        yield
    finally:
        logging.disable(before)


def _outcome_of(future: Any) -> Outcome:
    if future.status == "finished":
        outcome: Outcome = future.result()
        return outcome
    return Outcome(State.FAILED, f"Dask could not run it: {future.exception()!r}")


@contextlib.contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise EnvironmentLacksError(f"--scheduler needs Dask distributed: {install_extra('sweep')}") from None
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(Client(scheduler, timeout=_CONNECT_S, set_as_default=False))
            client.wait_for_workers(1, timeout=_CONNECT_S)
        except (OSError, ValueError) as error:
            raise EnvironmentLacksError(f"no Dask cluster with workers at {scheduler}: {error}") from None
        yield client


def _require_shared(client: Any, file: Path) -> None:
    """Check that every worker sees the sweep's directory; runs' identities do not cover a worker's version of Weft."""
    blind = [worker for worker, found in client.run(sees, str(file)).items() if not found]
    if blind:
        raise EnvironmentLacksError(
            f"the Dask workers {', '.join(blind)} do not see {file.parent}: --out must be a directory that they share"
        )
