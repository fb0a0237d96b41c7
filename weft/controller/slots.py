"""Quotas of aggregation slots: which slots of a switch belong to which job."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.controller.errors import JobError


@dataclass
class SlotPool:
    """Slots of one switch, handed out as one contiguous range per job, lowest first."""

    switch: str
    capacity: int
    _ranges: dict[int, range] = field(default_factory=dict)

    def allocate(self, job_id: int, count: int) -> int:
        """Reserve `count` slots for a job and return the first.

        Raises:
            JobError: no gap is large enough; the message says how large the largest is.

        """
        largest = 0
        start = 0
        for taken in [
            *sorted(self._ranges.values(), key=lambda slots: slots.start),
            range(self.capacity, self.capacity),
        ]:
            gap = taken.start - start
            if gap >= count:
                self._ranges[job_id] = range(start, start + count)
                return start
            largest = max(largest, gap)
            start = taken.stop
        raise JobError(
            f"job {job_id} wants {count} aggregation slots on {self.switch} "
            f"(valid: at most {largest}, the largest free range of {self.capacity})"
        )

    def release(self, job_id: int) -> None:
        """Free a job's slots; does nothing for a job without any."""
        self._ranges.pop(job_id, None)

    @property
    def free(self) -> int:
        """Slots that no job has."""
        return self.capacity - sum(len(slots) for slots in self._ranges.values())

    def ranges(self) -> dict[int, range]:
        """Return the slots of each job."""
        return dict(self._ranges)
