"""Results of writing to switches, and of a failure's effect on jobs."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.controller.memberships import JobMembership


@dataclass(frozen=True)
class Written:
    """Result of a write: total number of updated entries, and the switches written to."""

    entries: int = 0
    switches: tuple[str, ...] = ()

    def __add__(self, other: Written) -> Written:
        switches = dict.fromkeys((*self.switches, *other.switches))
        return Written(self.entries + other.entries, tuple(switches))


@dataclass(frozen=True)
class Repair:
    """Effect of a failure on the jobs.

    Attributes:
        written: writes for the new plan.
        memberships: new memberships of every rebuilt job, by job id and host; hosts continue with these in a new
            epoch, unless another failure has come meanwhile (`FabricController.job_epoch`).
        lost: why a job could not be rebuilt, by job id; such jobs are removed.
        cycle: a cycle of buffer dependencies in the new routes, hop by hop, in which lossless classes may deadlock;
            empty if there is none, or no class is lossless.

    """

    memberships: dict[int, dict[str, tuple[JobMembership, ...]]] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)
    cycle: str = ""
    written: Written = Written()
