"""Draw accelerators in use and waiting jobs over time by policy, as an SVG.

weft schedule examples/scheduling/policies.yaml --out DIR
python benchmarks/plot_schedule.py DIR > docs/pictures/schedule.svg
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curves import Panel, svg_of

from weft.quantities.units import S_PER_DAY

POLICIES = ("first-fit", "backfill", "slurm-tree", "kueue")


def panels_of(found: Mapping[str, Any]) -> list[Panel]:
    """Return the panels of what schedule.json holds."""
    lines = {name: found["timelines"][name] for name in POLICIES}
    days = {name: [at_s / S_PER_DAY for at_s in line["at_s"]] for name, line in lines.items()}
    last = max(own[-1] for own in days.values())
    use = {
        name: [(day, 100 * share) for day, share in zip(days[name], line["utilisation"], strict=True)]
        for name, line in lines.items()
    }
    queues = {name: list(zip(days[name], line["waiting"], strict=True)) for name, line in lines.items()}
    most = max(jobs for line in queues.values() for _, jobs in line)
    return [
        Panel("accelerators in use", "time (days)", "in use (%)", _rounded(last), 100, use),
        Panel("jobs that wait", "time (days)", "jobs", _rounded(last), _rounded(most), queues),
    ]


def _rounded(value: float) -> float:
    """Return an end for an axis with five equal parts: a multiple of 5, or of 50 above 100."""
    step = 50 if value > 100 else 5
    return step * -(-value // step)


if __name__ == "__main__":
    print(svg_of(panels_of(json.loads((Path(sys.argv[1]) / "schedule.json").read_text(encoding="utf-8")))), end="")
