"""Operations of jobs that were repeated without packets, in results.json and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from weft.engine._core import FastForwardCounts


@dataclass(frozen=True)
class FastForwardResult:
    """Operations (collectives of groups, and messages) of all jobs over the whole run.

    Counters of hosts include the packets of repeated operations; those of ports, of switches and of the P4 program,
    and the account of packets, have only the packets that travelled.
    """

    tolerance: float
    """Operations that differ by no more, as part of the time that they take, count as equal."""
    operations: int
    """That began."""
    repeated: int
    """Repeated without packets from begin to end."""
    resumed: int
    """Begun without packets and ended with them, because another operation came to share a port."""
    disturbed: int
    """Run with packets while another operation shared a port."""
    compared: int
    """Run with packets, alone, and compared with an earlier equal one."""
    deviating: int
    """Compared ones that differed by more than the tolerance."""
    largest_deviation: float | None
    """Error bound: by how much a compared operation differed at most from what would have been repeated, at any rank,
    as part of the time that it takes; null if none was compared."""
    skipped_packets: int
    """Data packets between hosts of repeated operations."""
    skipped_bytes: int
    """Their payload."""
    data_bytes: int
    """Payload between hosts in all, skipped or not."""
    skipped_scale_up_bytes: int
    """Bytes within hosts of repeated operations."""
    scale_up_bytes: int
    """Bytes within hosts in all, skipped or not."""
    reasons: list[str] = field(default_factory=list)
    """Only if there are any: why runs had nothing repeated."""

    @property
    def sentences(self) -> list[str]:
        """What was skipped, and the bound, for people."""
        lines = [f"repeated {self.repeated:,} of {self.operations:,} operations without packets"]
        parts = [
            f"{100 * skipped / of:.1f} % of the bytes {where} hosts"
            for skipped, of, where in (
                (self.skipped_bytes, self.data_bytes, "between"),
                (self.skipped_scale_up_bytes, self.scale_up_bytes, "within"),
            )
            if of
        ]
        if parts:
            lines[0] += f": {' and '.join(parts)}"
        lines.append(
            "error bound: none, because no operation was compared"
            if self.largest_deviation is None
            else f"error bound: {100 * self.largest_deviation:.3f} % of an operation's time, from "
            f"{self.compared:,} operations compared with packets"
        )
        met = [
            (self.resumed, "went on with packets when another came to share a port"),
            (self.disturbed, "ran with packets while another shared a port"),
            (self.deviating, f"took other times than before, by more than {100 * self.tolerance:g} %"),
        ]
        lines += [f"{count:,} {what}" for count, what in met if count]
        return lines + [f"nothing was repeated in a run {reason}" for reason in self.reasons]


def fast_forward_results(
    tolerance: float | None,
    counts: FastForwardCounts | None,
    sent_bytes: tuple[int, int],
    reasons: Sequence[str],
) -> list[FastForwardResult]:
    """Return what was repeated; nothing where fast-forward is off.

    `sent_bytes` are what all hosts have sent to other hosts, and what ranks have within hosts, repeated ones included.
    """
    if tolerance is None or counts is None:
        return []
    return [
        FastForwardResult(
            tolerance=tolerance,
            operations=counts["operations"],
            repeated=counts["repeated"],
            resumed=counts["resumed"],
            disturbed=counts["disturbed"],
            compared=counts["compared"],
            deviating=counts["deviating"],
            largest_deviation=counts["largest_deviation"] if counts["compared"] else None,
            skipped_packets=counts["skipped_packets"],
            skipped_bytes=counts["skipped_bytes"],
            data_bytes=sent_bytes[0],
            skipped_scale_up_bytes=counts["skipped_scale_up_bytes"],
            scale_up_bytes=sent_bytes[1],
            reasons=list(reasons),
        )
    ]


def print_fast_forward(console: Console, found: Sequence[FastForwardResult]) -> None:
    """Print what was repeated."""
    for each in found:
        console.print("\nfast-forward: " + "; ".join(each.sentences))
