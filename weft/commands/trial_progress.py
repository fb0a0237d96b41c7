"""The progress of procedures of trials, on the terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.errors import WeftError
    from weft.trials import TrialRun


class _Shown:
    """A bar on a terminal, a line for each trial and each end elsewhere, on stderr."""

    def __init__(self, bar: Any, what: str) -> None:
        self._bar = bar
        self._what = what
        self._task: Any = None
        self._trials = 0
        self._all = 0
        self._ended = 0

    def begin(self, procedures: Sequence[str]) -> None:
        """See TrialProgress."""
        self._all = len(procedures)
        self._say(f"{self._all} {self._what}s")
        self._task = self._bar.add_task("trials", total=self._all, trials=0)

    def planned(self, procedure: str, trials: int, left: int) -> None:
        """See TrialProgress."""

    def ended(self, procedure: str, run: TrialRun) -> None:
        """See TrialProgress."""
        self._trials += 1
        self._bar.update(self._task, trials=self._trials)
        if run.error or not self._bar.console.is_terminal:
            error = f": {run.error.splitlines()[0]}" if run.error else ""
            self._say(f"{procedure}: {run.trial.label}{error}")

    def done(self, procedure: str, error: WeftError | None) -> None:
        """See TrialProgress."""
        self._ended += 1
        self._bar.advance(self._task)
        lines = str(error).splitlines() if error is not None else []
        said = f": {lines[0]}" if lines else ""
        self._say(f"{self._ended}/{self._all} {procedure}{said}")

    def _say(self, text: str) -> None:
        self._bar.console.print(f"· {text}", markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def trial_progress(what: str) -> Iterator[_Shown]:
    """Show the progress of procedures on standard error, within the context; `what` is a procedure's name."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{what}s, {{task.fields[trials]}} trials"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        yield _Shown(bar, what)
