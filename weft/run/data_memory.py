"""How much memory the data of a scenario's traffic takes, held to the machine's before any of it is made."""

from __future__ import annotations

import os

from weft.errors import EnvironmentLacksError
from weft.quantities.readable import format_size
from weft.run.spec import RunSpec


def require_memory(spec: RunSpec) -> None:
    """Check that every host's inputs, which exist at once, fit. Raises EnvironmentLacksError."""
    ranks = spec.fabric.rank_count
    needed = sum(item.data_bytes(ranks) for item in spec.traffic) * ranks
    has = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > has:
        raise EnvironmentLacksError(
            f"traffic: the data of {ranks} ranks take {format_size(needed)} of memory, the machine has "
            f"{format_size(has)}; data: lengths needs none"
        )
