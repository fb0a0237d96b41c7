"""Print how deep the incast's queue is as time goes by, for each run of a sweep over congestion controls.

python labs/02-congestion-control/queue.py DIR
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

PORT = "p0l0:1"  # towards h0
AFTER_US = (100, 500, 1000, 2000, 5000)


def depths(run: Path) -> list[int]:
    """Return the bytes that wait at h0's port at each of AFTER_US of the incast. A row holds until the next one."""
    phases = json.loads((run / "results.json").read_text(encoding="utf-8"))["phases"]
    (start_ps,) = (phase["start_ps"] for phase in phases if phase["name"].startswith("incast"))
    found = [0] * len(AFTER_US)
    with (run / "queues.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["port"] == PORT and row["priority_class"] == "3":
                for place, after_us in enumerate(AFTER_US):
                    if int(row["time_ps"]) <= start_ps + after_us * 1_000_000:
                        found[place] = int(row["queue_bytes"])
    return found


def main() -> None:
    """Print a row for each run of the sweep."""
    sweep = Path(sys.argv[1])
    print(f"{'queue (KB) after':20}" + "".join(f"{after / 1000:>8} ms" for after in AFTER_US))
    with (sweep / "table.csv").open(encoding="utf-8", newline="") as file:
        points = {row["transport.congestion_control"]: row["point"] for row in csv.DictReader(file)}
    for algorithm, point in points.items():
        print(f"{algorithm:20}" + "".join(f"{depth / 1000:>11.0f}" for depth in depths(sweep / "points" / point)))


if __name__ == "__main__":
    main()
