"""Draw the loss curves of lab 18's runs, as an SVG.

python benchmarks/plot_training.py RUN RUN-64 RUN-SWITCH-DIES > docs/pictures/lab-18.svg
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from curves import Panel, svg_of

from weft.quantities.units import PS_PER_MS
from weft.results.results_file import read_results
from weft.results.training_runs import TRAINING_RUNS, TrainingRunResult

_LOSS = 2.5
_TICKS = 5


def results_of(directory: Path) -> Sequence[TrainingRunResult]:
    """Return what a run's directory has of training."""
    return read_results(directory / "results.json").of(TRAINING_RUNS)


def against_steps(title: str, results: Sequence[TrainingRunResult]) -> Panel:
    """Return losses after each step, beside those of one process."""
    losses = {each.algorithm: each.losses for each in results} | {"one process": results[0].single_losses}
    curves = {name: [(float(step), loss) for step, loss in enumerate(own)] for name, own in losses.items()}
    return Panel(title, "steps", "loss", len(results[0].steps_ps), _LOSS, curves)


def against_time(title: str, results: Sequence[TrainingRunResult]) -> Panel:
    """Return losses at the time of each step's end."""
    curves = {}
    for each in results:
        times = accumulate(each.steps_ps, initial=0)
        curves[each.algorithm] = [(time / PS_PER_MS, loss) for time, loss in zip(times, each.losses, strict=True)]
    latest = max(points[-1][0] for points in curves.values())
    return Panel(title, "emulated time (ms)", "loss", _TICKS * math.ceil(latest / _TICKS), _LOSS, curves)


if __name__ == "__main__":
    eight, many, dying = (results_of(Path(each)) for each in sys.argv[1:4])
    panels = [
        against_steps("8 workers, step by step", eight),
        against_time("64 workers", many),
        against_time("8 workers, the tree's root dies", dying),
    ]
    print(svg_of(panels), end="")
