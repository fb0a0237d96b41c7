"""Flow lists of the HPCC simulator (alibaba-edu/High-Precision-Congestion-Control) and its derivatives."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.formats.flow_csv import MAX_HOSTS, checked_flow
from weft.jobs.traces.tables.lines import MAX_ROWS, first_lines, lines_of, whole
from weft.quantities.units import PS_PER_S, shown
from weft.traffic.patterns import Flow

_FIELDS = "source destination class port bytes start_s"
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,30})?(e-?[0-9]{1,2})?", re.ASCII)


class HpccFlows(TraceFormat):
    """Text: the number of flows, then one per line: source, destination, class, port, bytes and start in seconds."""

    name = "hpcc_flows"
    title = "a list of flows of the HPCC simulator"
    holds_flows = True

    def recognises(self, path: Path) -> bool:
        """Return whether the file begins with a number and a line of six words."""
        lines = first_lines(path)
        return len(lines) > 1 and lines[0].strip().isdigit() and len(lines[1].split()) == len(_FIELDS.split())

    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the number of flows that the first line states, as the simulator does, without class and port.

        Starts are rounded to picoseconds.
        """
        lines = lines_of(path)
        count = _number(lines.readline().strip(), f"{path}, line 1", 0, MAX_ROWS)
        flows: list[Flow] = []
        left = 0
        for line, text in enumerate(lines, 2):
            if not text.strip():
                continue
            if len(flows) < count:
                flows.append(_flow(text.split(), f"{path}, line {line}"))
            else:
                left += 1
        if len(flows) < count:
            raise TraceError(f"{len(flows)} flows", place=path, valid=f"{count}, as line 1 says")
        notes = [f"{left} lines after the {count} flows that line 1 says are left out"] if left else []
        return Trace(flows=tuple(flows), notes=notes)


def _number(text: str, place: str, least: int, most: int) -> int:
    try:  # of each number of a flow: a context manager would take longer
        return whole(least, most)(text)
    except ValueError as error:
        raise TraceError(error, place=place) from None


def _flow(fields: list[str], place: str) -> Flow:
    if len(fields) != len(_FIELDS.split()):
        raise TraceError(f"{len(fields)} words", place=place, valid=_FIELDS)
    source, destination, _, _, size, start = fields
    if not _SECONDS.fullmatch(start):
        raise TraceError(f"{shown(start)} is no time in seconds", place=place, valid="0.000123, say")
    flow = Flow(
        _number(source, place, 0, MAX_HOSTS - 1),
        _number(destination, place, 0, MAX_HOSTS - 1),
        _number(size, place, 1, 1 << 60),
        start_ps=round(Fraction(start) * PS_PER_S),
    )
    return checked_flow(flow, place)
