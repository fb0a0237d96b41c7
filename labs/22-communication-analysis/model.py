"""Fit time = latency + size / bandwidth to the all-reduces of a run, by algorithm.

python labs/22-communication-analysis/model.py DIR        a run's directory, with results.json
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

Points = list[tuple[int, float]]


def points_of(run: Path) -> dict[str, Points]:
    """Return (bytes, microseconds) of a run's collectives by algorithm."""
    found: dict[str, Points] = defaultdict(list)
    for each in json.loads((run / "results.json").read_text(encoding="utf-8"))["collectives"]:
        found[each["algorithm"]].append((each["size_bytes"], each["time_ps"] / 1e6))
    return found


def fit(points: Points) -> tuple[float, float, float]:
    """Return latency (µs), bandwidth (GB/s) and the largest deviation (%), least squares of relative errors."""
    sizes, times = np.array(points, float).T
    terms = np.stack([np.ones_like(sizes), sizes], axis=1) / times[:, None]
    (latency_us, us_per_byte), *_ = np.linalg.lstsq(terms, np.ones_like(times), rcond=None)
    deviation = np.abs((latency_us + us_per_byte * sizes) / times - 1).max()
    return latency_us, 1e-3 / us_per_byte, 100 * deviation


def main() -> None:
    """Print a row for each algorithm."""
    print(f"{'algorithm':18}{'latency (µs)':>14}{'bandwidth (GB/s)':>18}{'half at (KiB)':>15}{'deviation (%)':>15}")
    for algorithm, points in points_of(Path(sys.argv[1])).items():
        latency_us, bandwidth, deviation = fit(points)
        half_kib = latency_us * bandwidth * 1000 / 1024
        print(f"{algorithm:18}{latency_us:>14.1f}{bandwidth:>18.2f}{half_kib:>15.0f}{deviation:>15.0f}")


if __name__ == "__main__":
    main()
