"""Life of jobs and of the cluster's accelerators in a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from weft.scheduling.placement import Placement, Spread
from weft.scheduling.workload import Job


@dataclass
class JobRecord:
    """Life of a job; times in seconds.

    Attributes:
        started_s: when it first started.
        waited_s: time in the queue, also after it was preempted.
        held_s: time for which it held accelerators.
        spread: of its last placement.
    """

    job: Job
    started_s: float = -1.0
    ended_s: float = -1.0
    waited_s: float = 0.0
    held_s: float = 0.0
    spread: Spread = field(default_factory=lambda: Spread(0, 0))
    preemptions: int = 0
    migrations: int = 0

    @property
    def slowdown(self) -> float:
        """Time on accelerators over the run time where it is packed."""
        return self.held_s / self.job.run_time_s


@dataclass
class Progress:
    """A job that is running, or that was preempted: its work is counted in seconds of a packed run."""

    job: Job
    left_s: float
    overhead_s: float = 0.0
    """Time before it goes on: a checkpoint is written and read, or the job moves."""
    placement: Placement | None = None
    slowdown: float = 1.0
    since_s: float = 0.0
    version: int = 0
    """Counts starts and moves: an end that was foreseen before one does not happen."""

    @property
    def remaining_s(self) -> float:
        """Time until it ends, from `since_s` on."""
        return self.overhead_s + self.left_s * self.slowdown

    def advance(self, now_s: float) -> None:
        """Let time pass until now."""
        passed_s = now_s - self.since_s
        pause_s = min(passed_s, self.overhead_s)
        self.overhead_s -= pause_s
        self.left_s = max(0.0, self.left_s - (passed_s - pause_s) / self.slowdown)
        self.since_s = now_s


class State(NamedTuple):
    """The cluster from a time on: accelerators in use, and jobs that wait.

    `idle` are free accelerators while a job waits, `unusable` the ones that no waiting job could use.
    """

    at_s: float
    used: int
    waiting: int
    idle: int
    unusable: int
