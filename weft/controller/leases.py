"""Leases of aggregation jobs: which have moved no packet for so long that others may have their slots.

Nobody tells a controller that a job's owner has died, so its slots come back when they are needed: if admission of a
job lacks slots, those that have been idle for a lease make room. An owner that still lives adds its job again. Leases
are looked at then and never otherwise; they begin anew with each epoch, and with each controller.
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
"""Of each job, by id and epoch, that its switches have counted."""
LeaseOf: TypeAlias = Callable[[int], float]
"""How long a job may move no packet, in seconds by the event loop's clock."""


class Leases:
    """Since when jobs have moved no packet, as far as anybody has looked."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], tuple[int, float]] = {}

    def idle(self, packets: Packets, now_s: float, lease_of: LeaseOf) -> list[int]:
        """Return the jobs that have moved none for their lease, given what is counted now, longest idle first."""
        unknown = (-1, now_s)
        self._seen = {
            job: self._seen[job] if self._seen.get(job, unknown)[0] == count else (count, now_s)
            for job, count in packets.items()
        }
        idle = [
            (since_s, job_id)
            for (job_id, _), (_, since_s) in self._seen.items()
            if since_s + lease_of(job_id) <= now_s
        ]
        return [job_id for _, job_id in sorted(idle)]

    async def make_room(
        self,
        jobs: JobTable,
        admit: Callable[[], Job],
        read: Callable[[], Awaitable[Packets]],
        lease_of: LeaseOf,
        keep: Collection[int] = (),
        wait: bool = True,
    ) -> list[Job]:
        """Admit a job that lacks slots in place of idle ones, but for those to `keep`; return these, which are removed.

        `admit` is tried, `read` counts packets. It waits for the longest lease if it has not looked before,
        unless it is not to `wait`.

        Raises:
            JobError: as `admit`. No job is removed then.

        """
        others = [job.job_id for job in jobs.jobs if job.job_id not in keep]
        _require_possible(jobs, others, admit)
        longest_s = max(map(lease_of, others))
        clock = asyncio.get_running_loop()
        for has_waited in (False, True):
            idle = self.idle(await read(), clock.time(), lease_of)
            known = {job.job_id for job in jobs.jobs}
            try:
                return admit_in_place_of(
                    jobs, [each for each in idle if each in known and each not in keep], admit
                )
            except NoSlotsError:
                if has_waited or not wait:
                    raise
            await asyncio.sleep(longest_s)
        raise AssertionError


def admit_in_place_of(jobs: JobTable, idle: Sequence[int], admit: Callable[[], Job]) -> list[Job]:
    """Admit a job in place of as few idle ones as need be, the first of them first; return those.

    Raises:
        JobError: as `admit`. All jobs are as they were then.

    """
    removed: list[Job] = []
    pending = list(idle)
    while True:
        try:
            admit()
            break
        except JobError as error:
            if not isinstance(error, NoSlotsError) or not pending:
                for job in removed:
                    jobs.put_back(job)
                raise
        removed.append(jobs.remove(pending.pop(0)))
    return [job for job in removed if not _fits_still(jobs, job)]


def _fits_still(jobs: JobTable, job: Job) -> bool:
    if not jobs.has_promise(job):
        return False
    try:
        jobs.put_back(job)
    except JobError:
        return False
    return True


def _require_possible(jobs: JobTable, others: Sequence[int], admit: Callable[[], Job]) -> None:
    """Raise what `admit` does even if all others make room. Changes nothing."""
    before = jobs.jobs
    admit_in_place_of(jobs, others, admit)
    after = {job.job_id: job for job in jobs.jobs}
    for job_id in after.keys() - {job.job_id for job in before}:
        jobs.remove(job_id)
    for job in before:
        if job.job_id not in after:
            jobs.put_back(job)


def counted(held: Collection[Mapping[tuple[int, int], int]]) -> Packets:
    """Return the packets of jobs, all switches together."""
    total: Counter[tuple[int, int]] = Counter()
    for of_switch in held:
        for job, packets in of_switch.items():
            total[job] += packets
    return total
