"""Ages of the queue depths that adaptive choices relied on, as counted by p4/include/queue_depths.p4."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import finsy

from weft.controller.target import TargetFacts

if TYPE_CHECKING:
    from weft.controller.session import SwitchSession

TABLE = "queue_depth_ages"


@dataclass(frozen=True)
class AgeHistogram:
    """Histogram of choices by the age of the queue depth that they relied on.

    `choices` maps the largest age of a bucket, in nanoseconds, to its count; each bucket is twice as wide as the last.
    """

    choices: dict[int, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Total number of choices."""
        return sum(self.choices.values())

    def at_most_ns(self, share: float) -> int | None:
        """Return an age that `share` of the choices did not exceed; None if there were no choices."""
        wanted, seen = share * self.count, 0
        for age_ns in sorted(self.choices):
            seen += self.choices[age_ns]
            if seen >= wanted:
                return age_ns
        return None

    def __add__(self, other: AgeHistogram) -> AgeHistogram:
        """Return the sum of two histograms."""
        ages = self.choices.keys() | other.choices.keys()
        return AgeHistogram({age: self.choices.get(age, 0) + other.choices.get(age, 0) for age in sorted(ages)})


@dataclass(frozen=True)
class DepthAges:
    """`queued` are choices of ports with packets in the queue; `empty` counts choices of empty queues."""

    queued: AgeHistogram = AgeHistogram()
    empty: int = 0

    @property
    def choices(self) -> int:
        """Total number of choices."""
        return self.queued.count + self.empty

    def __add__(self, other: DepthAges) -> DepthAges:
        """Return the sum of both."""
        return DepthAges(self.queued + other.queued, self.empty + other.empty)


async def read_depth_ages(session: SwitchSession, target: TargetFacts) -> DepthAges:
    """Read a switch's counts; empty if it made no such choices or its program has none."""
    if not session.counts(TABLE):
        return DepthAges()
    entries = await session.read([finsy.P4TableEntry(TABLE, counter_data=finsy.P4CounterData())])
    return DepthAges(AgeHistogram(_counted(entries, 1, target)), sum(_counted(entries, 0, target).values()))


def _counted(entries: Iterable[finsy.P4TableEntry], queued: int, target: TargetFacts) -> dict[int, int]:
    found: dict[int, int] = {}
    for entry in entries:
        packets = entry.counter_data.packet_count if entry.counter_data else 0
        if packets and int(entry["queued"]) == queued:
            # A prefix covers 2^n to 2^(n + 1) - 1 units: the bits below the first one are free. The entry for any
            # age has no prefix.
            least, _length = entry.match.get("age", (0, 0)) if entry.match else (0, 0)
            most = max(2 * least - 1, 0)
            found[most * target.ns_per_time_unit] = packets
    return dict(sorted(found.items()))
