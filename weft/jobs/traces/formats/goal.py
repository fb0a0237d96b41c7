"""GOAL text, as LogGOPSim and ATLAHS read it."""

from __future__ import annotations

import io
from pathlib import Path

from weft.cache import collector_paused, read_bytes
from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.goal.reading import GoalReader
from weft.jobs.traces.goal.writing import text_of
from weft.system.writing import written_whole
from weft.traffic.jobs import Job

MAX_FILE_BYTES = 1 << 31


class Goal(TraceFormat):
    """One file, NAME.goal, for all ranks; times are in nanoseconds."""

    name = "goal"
    title = "GOAL"
    is_written = True
    options = frozenset({"send_overhead_ps", "eager_bytes"})

    def recognises(self, path: Path) -> bool:
        """Return whether the suffix is .goal."""
        return path.suffix == ".goal"

    @collector_paused()
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the job described by the text."""
        reader = GoalReader(path.stem, str(path), options)
        lines = io.TextIOWrapper(io.BytesIO(read_bytes(path, MAX_FILE_BYTES)), "utf-8", "replace")
        return Trace(reader.read(lines), locate=reader.place)

    def write(self, job: Job, path: Path) -> list[Path]:
        """Write the file."""
        with written_whole(path) as partial, open(partial, "w", encoding="utf-8") as stream:
            stream.writelines(text_of(job))
        return [path]
