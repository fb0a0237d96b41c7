"""Connection matrices of htsim (ultraethernet/uet-htsim): flows, and jobs where triggers order them."""

from __future__ import annotations

from pathlib import Path

from weft.cache import collector_paused
from weft.jobs.traces.assembling import MAX_RANKS
from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.formats.flow_csv import MAX_HOSTS
from weft.jobs.traces.htsim.job import MatrixJob
from weft.jobs.traces.htsim.matrix import Matrix, header_counts, read_matrix
from weft.jobs.traces.tables.lines import first_lines, lines_of
from weft.traffic.patterns import Flow


def _has_triggers(path: Path) -> bool | None:
    """Return whether a path is a matrix with triggers, and None if it is no matrix."""
    counts = header_counts(first_lines(path))
    return counts.get("Triggers", "0") != "0" if counts else None


def _notes(matrix: Matrix) -> list[str]:
    lines = {"prio": "priorities, left out", "msg": "messages of a connection, each of which starts by its own line"}
    return [f"{what}: {matrix.left_out[key]}" for key, what in lines.items() if key in matrix.left_out]


class HtsimFlows(TraceFormat):
    """A connection matrix without triggers: flows."""

    name = "htsim_flows"
    title = "a connection matrix of htsim without triggers"
    holds_flows = True

    def recognises(self, path: Path) -> bool:
        """Return whether the file begins with the header of a connection matrix, without triggers."""
        return _has_triggers(path) is False

    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the flows, in the order of their lines."""
        matrix = read_matrix(lines_of(path), str(path), MAX_HOSTS)
        for connection in matrix.connections:
            if connection.trigger or connection.send_done or connection.receive_done:
                place = matrix.place(connection.line)
                raise TraceError("a trigger", place=place, valid="none in a list of flows; `trace` runs triggers")
        flows = (Flow(each.source, each.destination, each.size_bytes, 0, each.start_ps) for each in matrix.connections)
        return Trace(flows=tuple(flows), notes=_notes(matrix))


class Htsim(TraceFormat):
    """A connection matrix: each connection is a message of a job, and triggers order them."""

    name = "htsim"
    title = "a connection matrix of htsim"

    def recognises(self, path: Path) -> bool:
        """Return whether the file begins with the header of a connection matrix, with triggers."""
        return _has_triggers(path) is True

    @collector_paused()
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the job: a rank for each node."""
        matrix = read_matrix(lines_of(path), str(path), MAX_RANKS)
        made = MatrixJob(path.stem, matrix)
        job = made.job()
        return Trace(job, locate=made.place, notes=[*_notes(matrix), *made.notes])
