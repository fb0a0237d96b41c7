"""Allocation of a switch's aggregation slots to jobs, with quotas for tenants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weft.controller.errors import JobError, NoSlotsError


@dataclass
class SlotPool:
    """Slots of one switch, allocated as one contiguous range per job, lowest first.

    `quotas` are slots reserved for tenants, after the slots that all others share.
    """

    switch: str
    capacity: int
    quotas: Mapping[str, int] = field(default_factory=dict)
    _ranges: dict[int, range] = field(default_factory=dict)
    _tenants: dict[int, str] = field(default_factory=dict)

    def allocate(self, job_id: int, count: int, tenant: str = "") -> int:
        """Reserve `count` slots for a job and return the first.

        Raises:
            NoSlotsError: no gap is large enough; the message gives the largest gap and the jobs that hold slots.
                Tenants see only their own jobs.

        """
        gaps = self._gaps(self._region(tenant))
        for gap in gaps:
            if len(gap) >= count:
                self._take(job_id, range(gap.start, gap.start + count), tenant)
                return gap.start
        whole = len(self._region(tenant))
        raise NoSlotsError(
            f"job {job_id} wants {count} aggregation slots on {self.switch}",
            valid=f"at most {max(map(len, gaps), default=0)}, the largest free range of {whole}{self._taken(tenant)}",
        )

    def copy(self) -> SlotPool:
        """Return a copy of the pool."""
        return replace(self, _ranges=dict(self._ranges), _tenants=dict(self._tenants))

    def has_room(self, count: int, tenant: str = "") -> bool:
        """Return whether `allocate` would succeed for `count` slots."""
        return any(len(gap) >= count for gap in self._gaps(self._region(tenant)))

    def adopt(self, job_id: int, slots: range, tenant: str = "") -> None:
        """Record slots that a job already has on the switch.

        Raises:
            JobError: another job has some of the slots, or the switch has fewer slots.

        """
        if not slots or slots.start < 0 or slots.stop > self.capacity:
            raise JobError(
                f"job {job_id} has slots {slots.start} to {slots.stop - 1} on {self.switch}",
                valid=f"0 to {self.capacity - 1}",
            )
        for other, taken in self._ranges.items():
            if slots.start < taken.stop and taken.start < slots.stop:
                raise JobError(f"jobs {job_id} and {other} share slots on {self.switch}")
        self._take(job_id, slots, tenant)

    def note(self, job_id: int, slots: range) -> None:
        """Record slots that a switch reports for a job, without checking them."""
        self._take(job_id, slots, "")

    def release(self, job_id: int) -> None:
        """Free a job's slots; does nothing for a job without any."""
        self._ranges.pop(job_id, None)
        self._tenants.pop(job_id, None)

    @property
    def free(self) -> int:
        """Number of free slots."""
        return self.capacity - sum(len(slots) for slots in self._ranges.values())

    def ranges(self) -> dict[int, range]:
        """Return the slots of each job."""
        return dict(self._ranges)

    def _take(self, job_id: int, slots: range, tenant: str) -> None:
        self._ranges[job_id], self._tenants[job_id] = slots, tenant

    def gaps(self) -> list[range]:
        """Return the free ranges, split at the limits of tenants' quotas."""
        regions = [self._region(tenant) for tenant in ("", *self.quotas)]
        return [gap for region in regions for gap in self._gaps(region)]

    def _region(self, tenant: str) -> range:
        """Return the range from which a tenant's jobs get slots."""
        end = self.capacity - sum(self.quotas.values())
        if tenant not in self.quotas:
            return range(end)
        for name, quota in self.quotas.items():
            if name == tenant:
                break
            end += quota
        return range(end, end + quota)

    def _gaps(self, region: range) -> list[range]:
        """Return the free ranges of a region, in order."""
        gaps, start = [], region.start
        for taken in sorted(self._ranges.values(), key=lambda slots: slots.start):
            if taken.stop > region.start and taken.start < region.stop:
                gaps.append(range(start, max(start, taken.start)))
                start = max(start, taken.stop)
        return [gap for gap in (*gaps, range(start, max(start, region.stop))) if gap]

    def _taken(self, tenant: str) -> str:
        """Return text that lists the jobs with slots in a tenant's region."""
        region = self._region(tenant)
        within = {job: slots for job, slots in self._ranges.items() if slots.start in region}
        shown = [
            f"{len(slots)} by job {job}" for job, slots in within.items() if not tenant or self._tenants[job] == tenant
        ]
        others = sum(len(slots) for job, slots in within.items() if tenant and self._tenants[job] != tenant)
        if others:
            shown.append(f"{others} by others")
        return f"; taken: {', '.join(shown)}" if shown else ""
