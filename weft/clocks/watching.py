"""A run's progress, for its watchers. Watching reads counters between two windows and changes nothing."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

# Share of the time between two samples that taking one may cost.
_MOST_SHARE = 0.02
# Duplicates after a loss count as delivered, too, so bytes alone never make a run done.
_MOST_SHARE_OF_BYTES = 0.99


@dataclass(frozen=True)
class Sample:
    """How far a run is.

    Attributes:
        emulated_ps: emulated time since it began.
        steps_done, step_count: of its schedules' steps, or of its flows' ends; a count of 0 is not known.
        packets: that hosts have sent since it began; None under the real clock.
        delivered_bytes, expected_bytes: of frames, delivered to hosts since it began, and expected of its flows.
    """

    emulated_ps: int
    steps_done: int
    step_count: int
    packets: int | None
    delivered_bytes: int = 0
    expected_bytes: int = 0

    @property
    def share(self) -> float | None:
        """Share of the run that is done: of its steps, or of its flows' bytes, most of which come before flows end."""
        if not self.step_count:
            return None
        of_steps = self.steps_done / self.step_count
        of_bytes = self.delivered_bytes / self.expected_bytes if self.expected_bytes else 0.0
        return max(of_steps, min(of_bytes, _MOST_SHARE_OF_BYTES))


class Watcher(Protocol):
    """Receives the progress of runs. Called from a thread of its own, except `ended`."""

    interval_s: float

    def see(self, sample: Sample) -> None:
        """Receive the progress of the present run."""

    def ended(self) -> None:
        """The run has ended."""


@contextlib.contextmanager
def watched(watcher: Watcher | None, take: Callable[[], Sample]) -> Iterator[None]:
    """While inside, show a watcher samples of what runs here."""
    if watcher is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(watcher, take, over), name="weft-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        watcher.ended()


def _watch(watcher: Watcher, take: Callable[[], Sample], over: threading.Event) -> None:
    wait_s = watcher.interval_s
    while not over.wait(wait_s):
        began = time.monotonic()
        sample = take()
        wait_s = max(watcher.interval_s, (time.monotonic() - began) / _MOST_SHARE)
        watcher.see(sample)
