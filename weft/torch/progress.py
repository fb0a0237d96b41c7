"""A line about emulated time, after steps of the optimizer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook

from weft.quantities.readable import counted, format_time
from weft.ranks.client import RankClock


class Progress:
    """Reports step 1, 2, 5, 10, 20, 50, … of this process's optimizers, and all steps in the end.

    `compute` brings the clock up to date.
    """

    def __init__(self, clock: RankClock, compute: Callable[[], None]) -> None:
        self._clock, self._compute = clock, compute
        self._steps = 0
        self._before = (0, 0, 0)
        self._handle: Any = register_optimizer_step_post_hook(self._stepped)

    def _stepped(self, *_: Any) -> None:
        self._compute()
        self._steps += 1
        clock = self._clock
        (now_ps, waited_ps, calls), before = (clock.now_ps, clock.waited_ps, clock.calls), self._before
        self._before = (now_ps, waited_ps, calls)
        if _is_round(self._steps):
            took_ps, waiting_ps = now_ps - before[0], waited_ps - before[1]
            say(
                f"step {self._steps} took {format_time(took_ps)}: computing {format_time(took_ps - waiting_ps)}, "
                f"waiting {format_time(waiting_ps)}, {counted(calls - before[2], 'collective')}"
            )

    def end(self) -> None:
        """Report all steps, and cease to."""
        self._handle.remove()
        if self._steps:
            now_ps = self._clock.now_ps
            say(
                f"{counted(self._steps, 'step')} took {format_time(now_ps)} of emulated time, of which "
                f"{format_time(self._clock.waited_ps)} were waiting"
            )


def _is_round(number: int) -> bool:
    """Return whether a number is 1, 2 or 5 times a power of ten."""
    digits = str(number)
    return digits[0] in "125" and not digits[1:].strip("0")


def say(text: str) -> None:
    """Print a line about the run, apart from what the script prints."""
    print(f"weft: {text}", file=sys.stderr, flush=True)
