"""The main results of runs, for the page's list of them."""

from __future__ import annotations

import threading
from typing import Any

from weft.errors import BadInputError
from weft.quantities.readable import format_time
from weft.results.model import Results
from weft.results.results_file import read_results
from weft.results.run_result import RESULTS_FILE
from weft.workbench.folder import Folder

_MOST_BYTES = 32 << 20
_MOST_PHASES = 8
_MOST_KEPT = 500


class Summaries:
    """Reads results once, and again when they have been written anew."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, int], dict[str, Any]] = {}

    def of(self, run: str) -> dict[str, Any]:
        """Return a run's main results: verdict, time, phases, losses; or `problem`, for results that cannot be read."""
        time_ns = self._folder.results_time_ns(run)
        if time_ns is None:
            return {"run": run, "problem": "has no results"}
        with self._lock:
            found = self._kept.get((run, time_ns))
        if found is None:
            found = {"run": run, "written_s": time_ns // 10**9, **self._read(run)}
            with self._lock:
                while len(self._kept) >= _MOST_KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[run, time_ns] = found
        return found

    def _read(self, run: str) -> dict[str, Any]:
        try:
            path = self._folder.run_directory(run) / RESULTS_FILE
            if path.stat().st_size > _MOST_BYTES:
                return {"problem": f"{RESULTS_FILE} is too large for this list: open the report"}
            return _summary(read_results(path))
        except (BadInputError, OSError) as error:
            return {"problem": str(error)}


def _summary(results: Results) -> dict[str, Any]:
    phases = [{"name": each.name, "time": format_time(each.end_ps - each.start_ps)} for each in results.phases]
    return {
        "ok": results.ok and not results.failures,
        "valid": results.lateness is None or results.lateness.valid,
        "checked": results.checked_count,
        "time": format_time(results.traffic_ps),
        "phases": phases[:_MOST_PHASES],
        "more_phases": max(0, len(phases) - _MOST_PHASES),
        "drops": sum(results.drops.values()),
        "retransmissions": results.retransmissions,
        "marks": sum(plane.ecn_marked_packets for plane in results.planes),
        "has_timeline": results.made_by.observe.timelines,
    }
