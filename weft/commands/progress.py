"""Progress of long runs on stderr: emulated time, share done, packets a second, the time left."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import click

from weft.clocks.watching import Sample
from weft.quantities.readable import format_time

_FIRST_LINE_S = 10.0
_LINES_S = 30.0
_BAR_INTERVAL_S = 0.5
PROGRESS_VARIABLE = "WEFT_PROGRESS"
"""Environment variable with which programs ask for progress as JSON; its value is then `json`."""


def progress_text(sample: Sample, elapsed_s: float) -> str:
    """Return `45 %, 1.23 ms emulated, 1.1 million packets/s, about 40 s left`, as far as it is known."""
    parts = []
    share = sample.share
    if share is not None:
        parts.append(f"{share:.0%}".replace("%", " %"))
    parts.append(f"{format_time(_rounded(sample.emulated_ps))} emulated")
    if sample.packets is not None and elapsed_s > 0:
        parts.append(f"{_rate(sample.packets / elapsed_s)} packets/s")
    if share:
        parts.append(f"about {_duration(elapsed_s * (1 - share) / share)} left")
    return ", ".join(parts)


def _rounded(time_ps: int) -> int:
    """Return a time of four digits at most."""
    digits = max(0, len(str(time_ps)) - 4)
    return int(round(time_ps, -digits))


def _rate(per_second: float) -> str:
    if per_second >= 1e6:
        return f"{per_second / 1e6:.2f} million"
    return f"{per_second / 1e3:.0f} thousand" if per_second >= 1e4 else f"{per_second:.0f}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


class LineProgress:
    """A line for each stage, and a line now and then while a run takes long. `say` writes a line."""

    interval_s = 1.0

    def __init__(self, say: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._now = now
        self._began_s = now()
        self._next_s = self._began_s + _FIRST_LINE_S

    def __call__(self, text: str) -> None:
        """Say what is being done."""
        self._say(f"· {text}")
        self._begin()

    def see(self, sample: Sample) -> None:
        """See Watcher."""
        now_s = self._now()
        if now_s >= self._next_s:
            self._next_s = now_s + _LINES_S
            self._say(f"·   {progress_text(sample, now_s - self._began_s)}")

    def ended(self) -> None:
        """See Watcher."""
        self._begin()

    def _begin(self) -> None:
        self._began_s = self._now()
        self._next_s = self._began_s + _FIRST_LINE_S


class BarProgress:
    """A line for each stage, and below it a bar that goes away when the run ends."""

    interval_s = _BAR_INTERVAL_S

    def __init__(self, console: Any) -> None:
        self._console = console
        self._bar: Any = None
        self._task: Any = None
        self._began_s = time.monotonic()

    def __call__(self, text: str) -> None:
        """Say what is being done."""
        self._console.print(f"· {text}", markup=False, highlight=False, soft_wrap=True)
        self._began_s = time.monotonic()

    def see(self, sample: Sample) -> None:
        """See Watcher."""
        if self._bar is None:
            self._begin_bar()
        elapsed_s = time.monotonic() - self._began_s
        share = sample.share
        self._bar.update(
            self._task,
            total=None if share is None else 1.0,
            completed=share or 0.0,
            description=progress_text(sample, elapsed_s),
        )

    def ended(self) -> None:
        """See Watcher."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        self._began_s = time.monotonic()

    def _begin_bar(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (BarColumn(bar_width=24), TextColumn("{task.description}", markup=False))
        self._bar = Progress(*columns, console=self._console, transient=True)
        self._task = self._bar.add_task("", total=None)
        self._bar.start()


class JsonProgress:
    """An object of JSON a line, for programs: `stage`, or `share` (0 to 1, null if unknown) and `text` of a run."""

    interval_s = _BAR_INTERVAL_S

    def __init__(self, say: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._now = now
        self._began_s = now()

    def __call__(self, text: str) -> None:
        """Say what is being done."""
        self._began_s = self._now()
        self._say(json.dumps({"progress": {"stage": text}}))

    def see(self, sample: Sample) -> None:
        """See Watcher."""
        text = progress_text(sample, self._now() - self._began_s)
        self._say(json.dumps({"progress": {"share": sample.share, "text": text}}))

    def ended(self) -> None:
        """See Watcher."""
        self._began_s = self._now()


def make_progress() -> LineProgress | BarProgress | JsonProgress:
    """Return what suits stderr: a bar on a terminal, else lines; JSON if the environment asks for it."""
    if os.environ.get(PROGRESS_VARIABLE) == "json":
        return JsonProgress(lambda text: click.echo(text, err=True))
    if not sys.stderr.isatty():
        return LineProgress(lambda text: click.echo(text, err=True))
    from rich.console import Console

    return BarProgress(Console(stderr=True, highlight=False))
