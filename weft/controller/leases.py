"""Leases of aggregation jobs: a job that has been idle for a lease may lose its slots to others.

Nobody tells a controller that a job's owner has died, so slots are reclaimed when needed: if a new job lacks slots,
jobs that have been idle for a lease are removed. An owner that is still alive adds its job again. Leases are only
checked at admissions; they restart with each epoch and each controller.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from weft.controller.errors import JobError, NoSlotsError
from weft.controller.job import Job
from weft.controller.jobs import JobTable

Packets: TypeAlias = Mapping[tuple[int, int], int]
"""Packets of each job that its switches counted, by id and epoch."""
LeaseOf: TypeAlias = Callable[[int], float]
"""Returns how long a job may be idle, in seconds of the event loop's clock."""

Admit: TypeAlias = Callable[[JobTable], Job]
"""Admits a job to a table."""


class Leases:
    """Tracks since when jobs have been idle, as of the checks so far."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], tuple[int, float]] = {}

    def idle(self, packets: Packets, now_s: float, lease_of: LeaseOf) -> list[tuple[int, int]]:
        """Return the jobs without new packets for their lease, given the present counts, longest idle first.

        Jobs are identified by id and epoch, because another job may have got the id since.
        """
        unknown = (-1, now_s)
        self._seen = {
            job: self._seen[job] if self._seen.get(job, unknown)[0] == count else (count, now_s)
            for job, count in packets.items()
        }
        idle = [(since_s, job) for job, (_, since_s) in self._seen.items() if since_s + lease_of(job[0]) <= now_s]
        return [job for _, job in sorted(idle)]

    async def make_room(
        self,
        table: Callable[[], JobTable],
        admit: Admit,
        read: Callable[[], Awaitable[Packets]],
        lease_of: LeaseOf,
        keep: Collection[int] = (),
        wait: bool = True,
    ) -> list[Job]:
        """Admit a job that lacks slots by removing idle jobs, except those in `keep`; return the removed jobs.

        `admit` is tried on the present `table`; `read` counts packets. If too few jobs are idle and `wait` is set,
        check again whenever the lease of a possibly idle job ends, until the last.

        Raises:
            JobError: as `admit`; no job is removed.

        """
        others = [job.job_id for job in table().jobs if job.job_id not in keep]
        # Try on a copy before waiting or removing any job.
        admit_in_place_of(table().copy(), others, admit)  # raises if even all of them are not enough
        clock = asyncio.get_running_loop()
        due_s = clock.time()
        ends_s: list[float] | None = None
        while True:
            packets = await read()
            now_s = max(clock.time(), due_s)  # a loop's timers may fire a moment early
            idle = self.idle(packets, now_s, lease_of)
            jobs = table()
            # A job may have been added again while packets were read; in its new epoch it is not idle.
            free = [each for each, epoch in idle if jobs.epoch(each) == epoch and each not in keep]
            try:
                return admit_in_place_of(jobs, free, admit)
            except NoSlotsError:
                if ends_s is None:
                    ends_s = self._ends_s(others, now_s, lease_of) if wait else []
                if not ends_s:
                    raise
            due_s = ends_s.pop(0)
            await asyncio.sleep(due_s - clock.time())

    def _ends_s(self, others: Collection[int], now_s: float, lease_of: LeaseOf) -> list[float]:
        """Return when the running leases of other jobs end if those jobs stay idle."""
        ends_s = {since_s + lease_of(job_id) for (job_id, _), (_, since_s) in self._seen.items() if job_id in others}
        return sorted(each for each in ends_s if each > now_s)


def admit_in_place_of(jobs: JobTable, idle: Sequence[int], admit: Admit) -> list[Job]:
    """Admit a job by removing as few idle jobs as necessary, in the given order; return the removed jobs.

    Raises:
        JobError: as `admit`; all jobs are unchanged.

    """
    removed: list[Job] = []
    pending = list(idle)
    while True:
        try:
            admit(jobs)
            break
        except JobError as error:
            if not isinstance(error, NoSlotsError) or not pending:
                for job in removed:
                    jobs.put_back(job)
                raise
        removed.append(jobs.remove(pending.pop(0)))
    # Slots are ranges, so one job may need the removal of several others, some of which may then fit again.
    return [job for job in removed if not _fits_still(jobs, job)]


def _fits_still(jobs: JobTable, job: Job) -> bool:
    if not jobs.has_promise(job):
        return False
    try:
        jobs.put_back(job)
    except JobError:
        return False
    return True


def counted(held: Collection[Mapping[tuple[int, int], int]]) -> Packets:
    """Return each job's packets, summed over all switches."""
    total: Counter[tuple[int, int]] = Counter()
    for of_switch in held:
        for job, packets in of_switch.items():
            total[job] += packets
    return total
