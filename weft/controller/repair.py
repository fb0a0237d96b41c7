"""What the controller has written, and what a failure did to the jobs."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.controller.memberships import JobMembership


@dataclass(frozen=True)
class Written:
    """What was written: how many updates of entries in all, and to which switches."""

    entries: int = 0
    switches: tuple[str, ...] = ()

    def __add__(self, other: Written) -> Written:
        switches = dict.fromkeys((*self.switches, *other.switches))
        return Written(self.entries + other.entries, tuple(switches))


@dataclass(frozen=True)
class Repair:
    """What a failure did to the jobs.

    Attributes:
        written: what the new plan took.
        memberships: of every rebuilt job, by job id and host; the hosts go on with these, in a new epoch, unless
            another failure has come meanwhile (`FabricController.job_epoch`).
        lost: why a job could not be rebuilt, by job id; such jobs are removed.
        cycle: a cycle of buffers that the new routes make, hop by hop, in which lossless classes may deadlock; empty
            if there is none, or no class is lossless.

    """

    memberships: dict[int, dict[str, tuple[JobMembership, ...]]] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)
    cycle: str = ""
    written: Written = Written()
