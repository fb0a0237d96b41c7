"""Checks that the machine's memory holds the data of a scenario's traffic, before any is made."""

from __future__ import annotations

import os

from weft.errors import EnvironmentLacksError
from weft.quantities.readable import format_size
from weft.run.spec import RunSpec


def require_memory(spec: RunSpec) -> None:
    """Raise EnvironmentLacksError unless the inputs of all hosts, which exist at once, fit in memory."""
    ranks = spec.fabric.rank_count
    needed = sum(item.data_bytes(ranks) for item in spec.traffic) * ranks
    has = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > has:
        raise EnvironmentLacksError(
            f"traffic: the data of {ranks} ranks take {format_size(needed)} of memory, the machine has "
            f"{format_size(has)}; data: lengths needs none"
        )
