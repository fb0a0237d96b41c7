"""Interface of trace formats, and the result of reading a trace."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import ClassVar

from weft.jobs.traces.roofline import Roofline
from weft.traffic.jobs import Job
from weft.traffic.patterns import Flow

DEFAULT_EAGER_BYTES = 65_535
"""LogGOPSim's S."""


@dataclass(frozen=True)
class ReadOptions:
    """Options for aspects that formats leave open.

    Attributes:
        roofline: converts operations and bytes to durations; None rejects computations without a duration.
        groups: JSON file of process groups; None takes the one next to the trace, if any.
        send_overhead_ps: time that a GOAL rank's processor spends on each message (o of LogGP).
        eager_bytes: largest GOAL send that completes without waiting for its acknowledgement.
    """

    roofline: Roofline | None = None
    groups: Path | None = None
    send_overhead_ps: int = 0
    eager_bytes: int = DEFAULT_EAGER_BYTES

    def given(self) -> frozenset[str]:
        """Return the names of the options that differ from their defaults."""
        return frozenset(each.name for each in fields(self) if getattr(self, each.name) != each.default)


@dataclass(frozen=True)
class Trace:
    """The contents of a trace: a job, or flows without dependencies.

    Attributes:
        job: the job; None for flows.
        flows: the flows; empty for a job.
        locate: returns where an operation of a rank was read: file, and node or line.
        notes: sentences on data that was left out or read differently.
    """

    job: Job | None = None
    flows: tuple[Flow, ...] = ()
    locate: Callable[[int, int], str] = field(default=lambda _, operation: f"operation {operation}")
    notes: Sequence[str] = ()


class TraceFormat(abc.ABC):
    """A trace format. Options outside `options` are rejected."""

    name: ClassVar[str]
    """Name in scenarios and commands."""
    title: ClassVar[str]
    """Name in sentences."""
    holds_flows: ClassVar[bool] = False
    """Whether it holds flows instead of a job."""
    is_written: ClassVar[bool] = False
    """Whether jobs can be written in it."""
    options: ClassVar[frozenset[str]] = frozenset()
    """Fields of `ReadOptions` that it uses."""

    @abc.abstractmethod
    def recognises(self, path: Path) -> bool:
        """Return whether a path looks like a trace of this format."""

    @abc.abstractmethod
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return a trace. Raises TraceError for an invalid trace and OSError for files that cannot be read."""

    def write(self, job: Job, path: Path) -> list[Path]:
        """Write a job; return the files. Raises TraceError for jobs that the format cannot express."""
        raise NotImplementedError(self.name)
