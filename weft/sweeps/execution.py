"""Points run by Dask: on this machine, or on a cluster whose workers see the same files."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from weft.errors import EnvironmentLacksError
from weft.hints import install_extra
from weft.sweeps.plan import Point
from weft.sweeps.store import Outcome, State, SweepStore
from weft.sweeps.worker import run_point, sees, stop_points

_CONNECT_S = 10.0
# Dask's own status pages, on any free port and for the local machine only.
_LOOPBACK = "127.0.0.1:0"


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
        EnvironmentLacksError: Dask is not installed, or the cluster cannot be used.
    """
    if not points:
        return
    sweep = uuid.uuid4().hex
    with _logging_restored(), _client(workers, scheduler) as client:
        _require_shared(client, store.directory / ".lock")
        from distributed import as_completed

        futures = {}
        for point in points:
            directory = store.prepare(point)
            # Results that Dask has cached do not count: the store alone decides what is finished.
            key = f"{point.identity}-{sweep}"
            futures[client.submit(run_point, sweep, str(directory), key=key, pure=False)] = point
        try:
            for future in as_completed(list(futures), loop=client.loop):
                outcome = _outcome_of(future)
                store.keep(futures[future], outcome)
                on_done(futures[future], outcome)
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
def _client(workers: int, scheduler: str | None) -> Iterator[Any]:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise EnvironmentLacksError(f"a sweep needs Dask distributed: {install_extra('sweep')}") from None
    with contextlib.ExitStack() as stack:
        if scheduler is None:
            # Threads, because each point has a process of its own already.
            address = stack.enter_context(
                LocalCluster(
                    n_workers=1,
                    threads_per_worker=workers,
                    processes=False,
                    dashboard_address=_LOOPBACK,
                    worker_dashboard_address=_LOOPBACK,
                    memory_limit=0,
                )
            )
        else:
            address = scheduler
        try:
            client = stack.enter_context(Client(address, timeout=_CONNECT_S, set_as_default=False))
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
