"""Output of `weft controller jobs`, `slots` and `tenants`, read from all switches, because a job uses several.

There is no separate state: a job's tenant and promised share are stored with its entries. Secrets are not shown.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from weft.controller.errors import JobError, SwitchUnavailableError
from weft.controller.features.kind import Row
from weft.controller.job import Job
from weft.controller.job_notes import JobNote
from weft.controller.lab import Lab
from weft.controller.readers import for_each_switch
from weft.controller.recovery import HeldJob, HeldJobs, read_job_entries, recovered
from weft.controller.session import SwitchSession
from weft.controller.slots import SlotPool
from weft.controller.tenants import NOBODY, Tenant, TenantSettings
from weft.topologies import FabricSpec


@dataclass(frozen=True)
class SwitchJobs:
    """A switch's number of slots and its jobs by id; `jobs` is None if the switch does not answer."""

    slot_capacity: int
    jobs: Mapping[int, HeldJob] | None


@dataclass(frozen=True)
class FabricJobs:
    """Jobs on the switches of a fabric, by switch name."""

    fabric: FabricSpec
    tenants: TenantSettings
    switches: Mapping[str, SwitchJobs]

    @property
    def held(self) -> dict[str, Mapping[int, HeldJob]]:
        """Jobs by switch, for the switches that answer."""
        return {name: each.jobs for name, each in self.switches.items() if each.jobs is not None}

    @property
    def silent(self) -> list[str]:
        """Switches that do not answer."""
        return [name for name, each in self.switches.items() if each.jobs is None]


def read_fabric_jobs(lab: Lab, fabric: FabricSpec) -> FabricJobs:
    """Read the jobs of all switches of a lab. Raises SwitchUnavailableError if none answers."""
    names = lab.select(())
    read = asyncio.run(for_each_switch(lab, names, _read_switch))
    found = FabricJobs(fabric, lab.tenants, dict(zip(names, read, strict=True)))
    if not found.held:
        raise SwitchUnavailableError(f"none of the lab's switches answers ({len(names)} asked)")
    return found


async def _read_switch(session: SwitchSession) -> SwitchJobs:
    capacity = session.pipeline.slot_capacity()
    try:
        return SwitchJobs(capacity, await read_job_entries(session))
    except SwitchUnavailableError:
        return SwitchJobs(capacity, None)


def job_rows(found: FabricJobs) -> list[Row]:
    """Return a row for each aggregation job, with whether its entries form complete trees."""
    read = recovered(found.fabric, {name: HeldJobs(jobs) for name, jobs in found.held.items()})
    whole = {job.job_id: job for job in read.jobs}
    rows = []
    for job_id in sorted({*whole, *read.lost}):
        of_job = {name: jobs[job_id] for name, jobs in found.held.items() if job_id in jobs}
        job = whole.get(job_id)
        rows.append(_job_row(job_id, of_job, job) | {"state": _state(found, read.lost.get(job_id))})
    return rows


def _job_row(job_id: int, held: Mapping[str, HeldJob], job: Job | None) -> Row:
    """Return a job's row; for an incomplete job, from the entries of its first switch."""
    first = next(iter(held.values()))
    note = _note(first)
    return {
        "job": job_id,
        "tenant": note.tenant or None,
        "epoch": first.parameters["epoch"],
        "planes": list(job.planes) if job else None,
        "workers": list(job.hosts) if job else first.parameters["worker_count"],
        "slots": first.parameters["slot_count"],
        "share": note.share or None,
        "packets": sum(each.packets for each in held.values()),
        "roots": [name for name, each in held.items() if each.parameters["is_root"]],
    }


def _state(found: FabricJobs, why_lost: str | None) -> str:
    if why_lost is None:
        return "whole"
    silent = f" (no answer from {', '.join(found.silent)})" if found.silent else ""
    return why_lost + silent


def _note(held: HeldJob) -> JobNote:
    """Return a job's note; an empty one if another program wrote the entry."""
    with suppress(JobError):
        return JobNote.of(held.note)
    return JobNote()


def slot_rows(found: FabricJobs) -> list[Row]:
    """Return a row for each switch: ranges of slots with their jobs, number of free slots, largest free range."""
    return [_slot_row(name, each, found.tenants.slots) for name, each in found.switches.items()]


def _slot_row(switch: str, held: SwitchJobs, quotas: Mapping[str, int]) -> Row:
    jobs = sorted((held.jobs or {}).items(), key=lambda item: item[1].slots.start)
    pool = SlotPool(switch, held.slot_capacity, quotas)
    for job_id, each in jobs:
        pool.note(job_id, each.slots)
    free = [len(gap) for gap in pool.gaps()]
    is_known = held.jobs is not None
    return {
        "switch": switch,
        "capacity": held.slot_capacity,
        "taken": [_taken(job_id, each) for job_id, each in jobs],
        "free": sum(free) if is_known else None,
        "largest_gap": max(free, default=0) if is_known else None,
    }


def _taken(job_id: int, held: HeldJob) -> dict[str, Any]:
    slots = held.slots
    return {"slots": f"{slots.start}-{slots.stop - 1}", "job": job_id, "tenant": _note(held).tenant or None}


def tenant_rows(found: FabricJobs) -> list[Row]:
    """Return a row for each tenant: quotas, most slots used on a switch, and largest promised share of a link.

    All entries count, even if their job is incomplete; switches that do not answer are not counted.
    """
    known = {tenant.name: tenant for tenant in found.tenants.tenants}
    held: defaultdict[str, list[_HeldAt]] = defaultdict(list)
    for switch, jobs in found.held.items():
        for job_id, each in jobs.items():
            note = _note(each)
            held[note.tenant].append(_HeldAt(switch, job_id, each, note.share))
    # Jobs without a tenant, or with one unknown to the lab, are shown as well.
    owners = [*known.values(), *(Tenant(name) for name in sorted(set(held) - set(known)))]
    return [_tenant_row(owner, held.get(owner.name, [])) | {"silent": found.silent or None} for owner in owners]


@dataclass(frozen=True)
class _HeldAt:
    """A job's entries on a switch, and the job's promised share of each link."""

    switch: str
    job_id: int
    held: HeldJob
    share: float


def _tenant_row(owner: Tenant, jobs: Iterable[_HeldAt]) -> Row:
    job_ids, slots, shares = set[int](), Counter[str](), defaultdict[tuple[str, int], float](float)
    for each in jobs:
        job_ids.add(each.job_id)
        slots[each.switch] += len(each.held.slots)
        for port in each.held.ports:
            shares[each.switch, port] += each.share
    return {
        "tenant": None if owner.name == NOBODY.name else owner.name,
        "hosts": sorted(owner.hosts) or None,
        "jobs": sorted(job_ids),
        "slots": owner.slots,
        "slots_used": max(slots.values(), default=0),
        "bandwidth": owner.bandwidth,
        "bandwidth_used": round(max(shares.values(), default=0.0), 9),
    }


@dataclass(frozen=True)
class JobView:
    """A command that shows rows of the whole fabric."""

    command: str
    title: str
    summary: str
    rows: Callable[[FabricJobs], list[Row]]


JOB_VIEWS = (
    JobView(
        command="jobs",
        title="Aggregation jobs",
        summary="Aggregation jobs: tenant, workers, slots, share of links, and whether their trees are whole.",
        rows=job_rows,
    ),
    JobView(
        command="slots",
        title="Aggregation slots",
        summary="Aggregation slots of each switch: their jobs, how many are free, the largest gap.",
        rows=slot_rows,
    ),
    JobView(
        command="tenants",
        title="Tenants",
        summary="Tenants: their quotas, and what their jobs use of them.",
        rows=tenant_rows,
    ),
)
