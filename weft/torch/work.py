"""A collective that a rank has called, as PyTorch waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from weft.ranks.client import Pending
from weft.ranks.errors import RanksError
from weft.torch.tensors import devices_of

Finish = Callable[[list[Any]], None]
"""Given the results of all calls, in order, fills the caller's tensors."""


class WeftWork(dist._Work):
    """Done when all its calls are, and the caller's tensors hold the results.

    `waited` is called with the emulated time of the end by whoever waits.
    """

    def __init__(self, calls: Sequence[Pending], finish: Finish, outputs: Any, waited: Callable[[int], None]) -> None:
        super().__init__()
        self._calls, self._finish, self._outputs, self._waited = calls, finish, outputs, waited
        # A future takes tensors of those devices only that it has been told.
        self._future: Any = torch.futures.Future(devices=devices_of(outputs))
        self._done, self._left, self._lock = threading.Event(), len(calls), threading.Lock()
        self._failure: Exception | None = None
        if not calls:
            self._end()
        for call in calls:
            call.then(self._one_done)

    @classmethod
    def of_all(cls, works: Sequence[WeftWork], outputs: Any, waited: Callable[[int], None]) -> WeftWork:
        """Return the work that is done when all given works are done."""

        def finish(_: list[Any]) -> None:
            # Each was called back before, and so has filled its tensors.
            for work in works:
                if work._failure is not None:
                    raise work._failure

        return cls([call for work in works for call in work._calls], finish, outputs, waited)

    def _one_done(self, _call: Pending) -> None:
        with self._lock:
            self._left -= 1
            if self._left:
                return
        self._end()

    def _end(self) -> None:
        """Fill the tensors; the thread that reads results calls this."""
        try:
            with torch.no_grad():
                self._finish([call.wait() for call in self._calls])
        except Exception as error:
            self._failure = error if isinstance(error, RanksError) else RanksError(f"weft: {error}")
        self._done.set()
        if self._failure is None:
            self._future.set_result(self._outputs)
        else:
            self._future.set_exception(self._failure)

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Wait for the end. Raises RanksError, a RuntimeError, if the collective failed."""
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout or 0.0
        if not self._done.wait(seconds if seconds > 0 else None):
            raise RanksError(f"weft: {self._calls[0].call}: no result within {seconds:g} s")
        if self._failure is not None:
            raise self._failure
        # Only the rank that waits has lost the time; a collective that ends behind its computing costs it nothing.
        self._waited(max((call.ended_ps for call in self._calls), default=0))
        return True

    def is_completed(self) -> bool:
        """Return whether it is done, be it with an error."""
        return self._done.is_set()

    def is_success(self) -> bool:
        """Return whether it is done without an error."""
        return self._done.is_set() and self._failure is None

    def exception(self) -> Exception | None:
        """Return why it failed; None if it did not."""
        return self._failure

    def result(self) -> Any:
        """Return the caller's tensors."""
        self.wait()
        return self._outputs

    def get_future(self) -> Any:
        """Return a future of the caller's tensors. To wait for it lets no emulated time pass."""
        return self._future
