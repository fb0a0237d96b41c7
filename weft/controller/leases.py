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

Admit: TypeAlias = Callable[[JobTable], Job]
"""Admits a job to a table."""


class Leases:
    """Since when jobs have moved no packet, as far as anybody has looked."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], tuple[int, float]] = {}

    def idle(self, packets: Packets, now_s: float, lease_of: LeaseOf) -> list[tuple[int, int]]:
        """Return the jobs that have moved none for their lease, given what is counted now, longest idle first.

        They are named by id and epoch: another job may have got the id since.
        """
        unknown = (-1, now_s)
        self._seen = {
            job: self._seen[job] if self._seen.get(job, unknown)[0] == count else (count, now_s)
            for job, count in packets.items()
        }
        idle = [
            (since_s, job) for job, (_, since_s) in self._seen.items() if since_s + lease_of(job[0]) <= now_s
        ]
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
        """Admit a job that lacks slots in place of idle ones, but for those to `keep`; return these, which are removed.

        `admit` is tried on the present `table`, `read` counts packets. Where the idle ones are too few and it
        is to `wait`, it looks again as each lease ends of those that might be idle, until the last.

        Raises:
            JobError: as `admit`. No job is removed then.

        """
        others = [job.job_id for job in table().jobs if job.job_id not in keep]
        # On a copy, before anybody waits or is removed.
        admit_in_place_of(table().copy(), others, admit)  # raises if even all of them are not enough
        clock = asyncio.get_running_loop()
        due_s = clock.time()
        ends_s: list[float] | None = None
        while True:
            packets = await read()
            now_s = max(clock.time(), due_s)  # a loop's timers may fire a moment early
            idle = self.idle(packets, now_s, lease_of)
            jobs = table()
            # A job may have been added again while packets were read: its new life is not idle.
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
        """Return when the leases of others end that have not yet, should they move no packet until then."""
        ends_s = {
            since_s + lease_of(job_id) for (job_id, _), (_, since_s) in self._seen.items() if job_id in others
        }
        return sorted(each for each in ends_s if each > now_s)


def admit_in_place_of(jobs: JobTable, idle: Sequence[int], admit: Admit) -> list[Job]:
    """Admit a job in place of as few idle ones as need be, the first of them first; return those.

    Raises:
        JobError: as `admit`. All jobs are as they were then.

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
    # Slots are ranges, so room for one job may need several gone, of which some may then fit again.
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
    """Return the packets of jobs, all switches together."""
    total: Counter[tuple[int, int]] = Counter()
    for of_switch in held:
        for job, packets in of_switch.items():
            total[job] += packets
    return total
