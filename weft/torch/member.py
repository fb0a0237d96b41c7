"""This process as a rank of the fabric: one connection and one clock, whatever process groups it has."""

from __future__ import annotations

import atexit
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft.ranks.client import CoordinatorProcess, RankClient
from weft.ranks.default_fabric import description
from weft.ranks.errors import RanksError
from weft.torch.computing import Computing, computing_of
from weft.torch.progress import Progress, say
from weft.torch.settings import Settings

_numbers = itertools.count()
"""Number of the fabrics of this process; all ranks count alike, as each fabric has all of them."""


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
        # Torchrun's store outlives groups, and processes that it restarts: later ranks must not find there where an
        # earlier fabric was.
        key = f"weft/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}/{next(_numbers)}"
        if rank == 0:
            store.set(key, json.dumps(self._held(settings, rank_count, timeout_s)))
        said = json.loads(store.get(key))
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

    def _held(self, settings: Settings, rank_count: int, timeout_s: float) -> dict[str, str]:
        try:
            self._holder = CoordinatorProcess(
                settings.scenario.resolve() if settings.scenario is not None else None,
                settings.algorithm,
                timeout_s,
                settings.out,
                rank_count,
            )
        except RanksError as error:
            return {"failed": str(error)}
        if settings.scenario is None:
            say(f"WEFT_SCENARIO is not set: the default fabric has {description(rank_count)}")
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
