"""Programs of hosts: what a lab is asked to run, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.rdma.program import Run
from weft.rdma.reports import ProgramReport
from weft.traffic.extensions import ClassSpec


@dataclass(frozen=True)
class HostProgram:
    """A host's program: a class or function of a file, or `run` itself, which only hosts of this process can take."""

    host: str
    spec: ClassSpec | None
    run: Run | None = None

    @property
    def name(self) -> str:
        """Name in messages."""
        if self.spec is not None:
            return self.spec.reference
        return getattr(self.run, "__qualname__", None) or type(self.run).__name__


@dataclass(frozen=True)
class ProgramRun:
    """Programs of different hosts, which begin at the same time.

    `first_queue_pair` is the number of each host's first queue pair; with `telemetry` data carries INT.
    """

    programs: Sequence[HostProgram]
    timeout_s: float
    telemetry: bool = False
    first_queue_pair: int = 0x10000
    ranks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ProgramOutcome:
    """Outcome of a host's program, and when it began and returned, in emulated time."""

    host: str
    name: str
    started_ps: int
    finished_ps: int
    report: ProgramReport


def unended_message(waiting: Mapping[str, str], timeout_s: float) -> str:
    """Return what is wrong when programs have not returned in time: what those wait for, by what they are called."""
    told = "; ".join(f"{name} {what}" for name, what in waiting.items())
    return f"rdma: not all programs have returned after {timeout_s:g} s: {told}"
