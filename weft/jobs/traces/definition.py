"""What a format of traces is, and what reading one yields."""

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
    """How to read what formats leave open.

    Attributes:
        roofline: makes durations of computations that are given as operations and bytes; None refuses those.
        groups: a JSON file of process groups; None takes the one beside the trace, if there is one.
        send_overhead_ps: time that a GOAL rank's processor spends on each message (o of LogGP).
        eager_bytes: what follows a GOAL send of up to so many bytes need not wait for its acknowledgement.
    """

    roofline: Roofline | None = None
    groups: Path | None = None
    send_overhead_ps: int = 0
    eager_bytes: int = DEFAULT_EAGER_BYTES

    def given(self) -> frozenset[str]:
        """Return the options that are not what they are by default."""
        return frozenset(each.name for each in fields(self) if getattr(self, each.name) != each.default)


@dataclass(frozen=True)
class Trace:
    """What a trace holds: a job, or flows without dependencies.

    Attributes:
        job: None for flows.
        flows: none for a job.
        locate: says where an operation of a rank was read: file, and node or line.
        notes: what was read otherwise than it is written, a sentence each.
    """

    job: Job | None = None
    flows: tuple[Flow, ...] = ()
    locate: Callable[[int, int], str] = field(default=lambda _, operation: f"operation {operation}")
    notes: Sequence[str] = ()


class TraceFormat(abc.ABC):
    """A format of traces. What it does not offer, it refuses."""

    name: ClassVar[str]
    """What scenarios and commands call it."""
    title: ClassVar[str]
    """Its name in sentences."""
    holds_flows: ClassVar[bool] = False
    """Whether it holds flows rather than a job."""
    is_written: ClassVar[bool] = False
    """Whether jobs can be written in it."""
    options: ClassVar[frozenset[str]] = frozenset()
    """The fields of `ReadOptions` that mean something for it."""

    @abc.abstractmethod
    def recognises(self, path: Path) -> bool:
        """Return whether a path looks like a trace of this format."""

    @abc.abstractmethod
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return a trace. Raises TraceError, and OSError for files that cannot be read."""

    def write(self, job: Job, path: Path) -> list[Path]:
        """Write a job, and return the files. Raises TraceError for what the format cannot express."""
        raise NotImplementedError(self.name)
