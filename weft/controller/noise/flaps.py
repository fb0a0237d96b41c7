"""Links that fail again and again: failures of each link, tested against the other links'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from weft.controller.noise.evidence import Evidence
from weft.controller.noise.limits import FAILURES_FLOOR, NoiseLimits
from weft.controller.noise.tails import log_poisson_tail

_Name = TypeVar("_Name")


def flapping_links(failures: Mapping[_Name, int], links: int, limits: NoiseLimits) -> Iterator[tuple[_Name, Evidence]]:
    """Yield the links that have failed more often than links do, given the failures of those that have failed.

    A link's failures are tested with each one. All links of a switch that fails at once have one failure each.
    """
    total = sum(failures.values())
    for name, count in failures.items():
        usual = max(FAILURES_FLOOR, (total - count) / max(1, links - 1))
        if log_poisson_tail(count, usual) <= limits.log_chance(links, count):
            yield (
                name,
                Evidence("flapping", float(count), usual, f"failed {count} times, {usual:.2g} times would be usual"),
            )
