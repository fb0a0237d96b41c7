"""Reads traces of jobs and flows from other tools, and writes jobs as traces for other tools."""

from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.registry import TRACE_FORMATS, read_trace, write_trace
from weft.jobs.traces.roofline import Roofline, roofline_of

__all__ = [
    "TRACE_FORMATS",
    "ReadOptions",
    "Roofline",
    "Trace",
    "TraceError",
    "TraceFormat",
    "read_trace",
    "roofline_of",
    "write_trace",
]
