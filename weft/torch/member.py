"""This process as a rank of the fabric: one connection and one clock, whatever process groups it has."""

from __future__ import annotations

import atexit
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft.ranks.client import CoordinatorProcess, RankClient
from weft.ranks.errors import RanksError
from weft.torch.computing import Computing, computing_of
from weft.torch.progress import Progress
from weft.torch.settings import Settings

_KEY = "weft"


class Member:
    """A rank, from the first process group of the process until that group ends.

    Rank 0 starts the process that holds the fabric, and says in PyTorch's store where it is.

    Args:
        rank, rank_count: in the first group, which has all ranks.
        store: PyTorch's, of that group.
        settings: only rank 0 reads the settings of the fabric.
        timeout_s: how long ranks have to meet.

    Raises RanksError, on all ranks, if there is no such fabric.
    """

    def __init__(self, rank: int, rank_count: int, store: Any, settings: Settings, timeout_s: float) -> None:
        self._holder: CoordinatorProcess | None = None
        if rank == 0:
            store.set(_KEY, json.dumps(self._held(settings, timeout_s)))
        said = json.loads(store.get(_KEY))
        if "failed" in said:
            raise RanksError(f"weft: {said['failed']}")
        self.client = RankClient(Path(said["place"]), rank, rank_count)
        self._computing: Computing = computing_of(settings)
        self._progress = Progress(self.client.clock, self.compute) if rank == 0 else None
        atexit.register(self.leave)

    def compute(self) -> None:
        """Let the rank's clock go on by what it has computed since the last time."""
        self.client.clock.compute(self._computing.since_last_ps())

    def wait_until(self, ended_ps: int) -> None:
        """Let the rank have waited until then."""
        self.compute()
        self.client.clock.wait_until(ended_ps)

    def leave(self) -> None:
        """Leave the fabric, once; rank 0 waits until all have, and the fabric is gone."""
        atexit.unregister(self.leave)
        self._computing.end()
        self.client.leave()
        if self._progress is not None:
            self._progress.end()
        if self._holder is not None:
            self._holder.end()

    def _held(self, settings: Settings, timeout_s: float) -> dict[str, str]:
        try:
            self._holder = CoordinatorProcess(settings.scenario.resolve(), settings.algorithm, timeout_s, settings.out)
        except RanksError as error:
            return {"failed": str(error)}
        return {"place": str(self._holder.place)}


_member: Member | None = None


def member_of(make: Callable[[], Member]) -> Member:
    """Return this process's rank, which `make` makes the first time."""
    global _member
    if _member is None:
        _member = make()
    return _member


def forget() -> None:
    """Leave the fabric; the next group of all ranks has another."""
    global _member
    if _member is not None:
        left, _member = _member, None
        left.leave()
