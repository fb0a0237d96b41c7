"""The trace formats, found by name or by how a path looks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.quantities.units import shown
from weft.registry import Registry, classes_of
from weft.traffic.jobs import Job, JobError, Kind, check_job


def _kinds_in(module: ModuleType) -> Iterator[tuple[str, TraceFormat]]:
    return ((kind.name, kind()) for kind in classes_of(TraceFormat, module))  # type: ignore[type-abstract]


_MOST_PATH = 1000
_OPTION_NAMES = {
    "roofline": "accelerator",
    "groups": "groups",
    "send_overhead_ps": "send overhead",
    "eager_bytes": "eager",
}
"""User-visible names of the fields of `ReadOptions`."""
TRACE_FORMATS: Registry[TraceFormat] = Registry("weft.jobs.traces.formats", "format", _kinds_in, TraceError)


def read_trace(path: Path, format_name: str = "", options: ReadOptions | None = None) -> Trace:
    """Return a trace. If it is a job, every operation can finish.

    Args:
        path: file, folder or prefix, depending on the format.
        format_name: a name in `TRACE_FORMATS`; "" to recognise the format by the path.
        options: options for aspects that formats leave open.

    Raises:
        TraceError: it cannot be read, or its job cannot finish; with file, rank, and node or line.
    """
    if len(str(path)) > _MOST_PATH:
        raise TraceError(f"{shown(str(path))} is too long a path", valid=f"{_MOST_PATH} characters")
    options = options or ReadOptions()
    try:
        chosen = format_of(path, format_name)
        _check_options(path, chosen, options)
        trace = chosen.read(path, options)
    except OSError as error:
        reason = f"{error.filename or path} cannot be read: {error.strerror}" if error.strerror else str(error)
        raise TraceError(reason) from None
    if trace.job is not None:
        try:
            check_job(trace.job, trace.locate)
        except JobError as error:
            raise TraceError(f"the job cannot finish\n{error}", place=path) from None
    return trace


def _check_options(path: Path, chosen: TraceFormat, options: ReadOptions) -> None:
    for field in sorted(options.given() - chosen.options):
        valid = ", ".join(_OPTION_NAMES[each] for each in sorted(chosen.options)) or "none"
        raise TraceError(f"{_OPTION_NAMES[field]}: means nothing for {chosen.title}", place=path, valid=valid)


def write_trace(job: Job, path: Path, format_name: str) -> list[Path]:
    """Write a job; return the files. Raises TraceError for jobs that the format cannot express."""
    chosen = TRACE_FORMATS.named(format_name)
    if not chosen.is_written:
        valid = ", ".join(name for name, each in TRACE_FORMATS.items() if each.is_written)
        raise TraceError(f"{chosen.title} is not written", valid=valid)
    _refuse_reads(job, chosen.title)
    _refuse_ways_of_messages(job, chosen.title)
    return chosen.write(job, path)


def _refuse_ways_of_messages(job: Job, title: str) -> None:
    """Refuse jobs that say how their messages travel: traces say what is communicated."""
    for number, call in enumerate(job.calls):
        for name in ("protocol", "clear_to_send"):
            if getattr(call, name):
                raise TraceError(f"call {number}: {title} has no {name}", valid="a job without it")
    if job.clear_to_send:
        raise TraceError(f"{title} has no clear_to_send", valid="a job without it")


def _refuse_reads(job: Job, title: str) -> None:
    for rank, part in enumerate(job.parts):
        for operation in part.operations.of_kind(Kind.READ)[:1].tolist():
            raise TraceError(
                f"rank {rank}, operation {operation}: {title} has no READs of a peer's memory",
                valid=(kind.name.lower() for kind in Kind if kind != Kind.READ),
            )


def format_of(path: Path, name: str = "") -> TraceFormat:
    """Return the format of this name, or without a name the one that a path looks like. Raises TraceError."""
    if name:
        return TRACE_FORMATS.named(name)
    for each in TRACE_FORMATS.values():
        if each.recognises(path):
            return each
    if not path.exists():
        raise TraceError("there is no such file", place=path, valid="a trace's file, folder or prefix")
    raise TraceError(
        "no trace, or one of an unknown format",
        place=path,
        valid=f"a path of {', '.join(TRACE_FORMATS)}, or the format's name",
    )
