"""Generators of collectives' schedules: (what, rank) in, that rank's lanes out.

Every generator is called alike on all ranks and needs no communication: what one rank writes is what its
peer waits for, because both derive the same chunks and immediates. One algorithm a file; which collective has which of
them is defined in `weft.traffic.collectives`.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.traffic.lane_schedule import Schedule
from weft.traffic.schedule_nodes import Channel
from weft.traffic.schedules.spec import DEFAULT_PIECE_BYTES, MAX_RANKS, CollectiveSpec


def peers_of(schedules: Sequence[Schedule]) -> list[tuple[int, Channel]]:
    """Return every (rank, channel) pair that the schedules of all ranks use, each once."""
    used = ((schedule.rank, channel) for schedule in schedules for channel in schedule.channels())
    return list(dict.fromkeys(used))


__all__ = ["DEFAULT_PIECE_BYTES", "MAX_RANKS", "CollectiveSpec", "peers_of"]
