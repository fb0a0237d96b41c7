"""Draw the queue and the windows of examples/tcp.yaml, as an SVG.

weft run --out RUN examples/tcp.yaml; python benchmarks/plot_tcp.py RUN > docs/pictures/tcp.svg
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from curves import Panel, svg_of

from weft.quantities.units import PS_PER_MS
from weft.results.results_file import read_results
from weft.results.tcp import TCP, TcpResult

_BYTES_PER_KB = 1e3
_LONGEST_MS = 100
_MOST_KB = 600


def queues_of(directory: Path) -> list[tuple[int, int]]:
    """Return the depth of the port's queues over time, of all classes."""
    depths: dict[int, int] = {}
    with (directory / "queues.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            time_ps = int(row["time_ps"])
            depths[time_ps] = depths.get(time_ps, 0) + int(row["queue_bytes"])
    return sorted(depths.items())


def queue_panel(title: str, samples: Sequence[tuple[int, int]], begin_ps: int) -> Panel:
    """Return the queue from the start of an item on."""
    points = [
        ((time_ps - begin_ps) / PS_PER_MS, depth / _BYTES_PER_KB)
        for time_ps, depth in samples
        if 0 <= time_ps - begin_ps <= _LONGEST_MS * PS_PER_MS
    ]
    return Panel(title, "emulated time (ms)", "queue (kB)", _LONGEST_MS, _MOST_KB, {"queue": points})


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    results = read_results(directory / "results.json")
    depths = queues_of(directory)
    flows: Sequence[TcpResult] = results.of(TCP)
    panels = [
        queue_panel(each.flows[0].congestion_control, depths, phase.start_ps)
        for each, phase in zip(flows, results.phases, strict=True)
    ]
    print(svg_of(panels), end="")
