"""12.2 Resource Leak Detection."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from weft.bench.figures import curve
from weft.bench.model import Measured
from weft.bench.procedure import BenchTest
from weft.bench.setup import Setup
from weft.bench.soak_trials import soak_of
from weft.bench.soaking import ProcessSample
from weft.results.report_parts import Axis, Cell, CurveFigure, ReportTable
from weft.trials import Procedure

_MB = 10**6
_S_PER_HOUR = 3600
LIMIT_BYTES_PER_HOUR = _MB
"""The draft's slope from which a leak is possible."""
_WARM_UP = 0.25
"""Share of the run that is left out: processes still grow to their working size."""
_LEAST_S = 600
"""Shorter runs give no slope that means anything."""


class LeakDetection(BenchTest):
    """Memory and open files of Weft's processes over time."""

    section = "12.2"
    name = "leaks"
    title = "Resource Leak Detection"
    objective = "Whether a process of the fabric takes more and more memory or files."

    def run(self, setup: Setup) -> Procedure[Measured]:
        """See BenchTest."""
        soak = yield from soak_of(setup)
        by_process: dict[tuple[str, int], list[ProcessSample]] = defaultdict(list)
        for sample in soak.samples:
            by_process[sample.name, sample.pid].append(sample)
        # The name alone stands in the report: process numbers differ from run to run.
        lasting = {key: found for key, found in by_process.items() if len(found) >= 3}
        slopes = {key: slope_bytes_per_hour(found, soak.seconds) for key, found in lasting.items()}
        largest = sorted(lasting, key=lambda key: -max(sample.resident_bytes for sample in lasting[key]))
        suspects = [key for key in largest if slopes[key] > LIMIT_BYTES_PER_HOUR]
        is_long = soak.seconds >= _LEAST_S
        return Measured(
            tables=[
                ReportTable(
                    "Processes of the lab",
                    [
                        "process",
                        "how many",
                        "resident, first (MB)",
                        "last (MB)",
                        "largest slope (MB/hour)",
                        "open files, first",
                        "last",
                        "processor (%)",
                    ],
                    [
                        _row(name, [lasting[key] for key in largest if key[0] == name], soak.seconds)
                        for name in dict.fromkeys(name for name, _ in largest)
                    ],
                    "slope: least squares after a quarter of the time"
                    + ("" if is_long else ", of a run too short for it"),
                )
            ],
            curves=[
                CurveFigure(
                    "Resident memory over time",
                    Axis("time (s)", "s"),
                    Axis("MB"),
                    [
                        curve(
                            key[0],
                            [sample.time_s for sample in lasting[key]],
                            [sample.resident_bytes / _MB for sample in lasting[key]],
                        )
                        for key in largest[:6]
                    ],
                    note=f"the largest 6 of {len(largest)} processes" if len(largest) > 6 else "",
                )
            ],
            scaled=[
                f"{soak.seconds:g} s in place of 24 hours; the processes are those of Weft's lab, on this machine",
                *([] if is_long else [f"a slope means something from {_LEAST_S} s on"]),
            ],
            anomalies=[
                f"{key[0]}: {slopes[key] / _MB:.2f} MB/hour; the limit is {LIMIT_BYTES_PER_HOUR / _MB:g} MB/hour"
                for key in suspects
                if is_long
            ],
        )


def slope_bytes_per_hour(samples: list[ProcessSample], seconds: float) -> float:
    """Return the least-squares slope of a process's resident memory, without the first part of the run."""
    late = [sample for sample in samples if sample.time_s >= _WARM_UP * seconds]
    if len(late) < 2:
        return 0.0
    slope = np.polyfit([sample.time_s for sample in late], [sample.resident_bytes for sample in late], 1)[0]
    return float(slope) * _S_PER_HOUR


def _row(name: str, processes: list[list[ProcessSample]], seconds: float) -> list[Cell]:
    """Return the row of all processes with a name: sums, and the largest slope."""
    firsts, lasts = [samples[0] for samples in processes], [samples[-1] for samples in processes]
    processor_s = sum(last.processor_s - first.processor_s for first, last in zip(firsts, lasts, strict=True))
    return [
        name,
        len(processes),
        round(sum(sample.resident_bytes for sample in firsts) / _MB, 1),
        round(sum(sample.resident_bytes for sample in lasts) / _MB, 1),
        round(max(slope_bytes_per_hour(samples, seconds) for samples in processes) / _MB, 2),
        sum(sample.open_files for sample in firsts),
        sum(sample.open_files for sample in lasts),
        round(100 * processor_s / seconds, 1),
    ]
