"""Where calls of ranks meet: a collective is ready when the last rank of its group has called it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weft.ranks.calls import Call
from weft.ranks.errors import RanksError


@dataclass
class Met:
    """A collective of a group: what each rank, by its rank in the group, has called so far, and with what.

    `issued_ps` are the ranks' clocks when they called, `since_s` is when the first one did, by the machine's clock.
    """

    call: Call
    number: int
    first: int
    since_s: float
    issued_ps: dict[int, int] = field(default_factory=dict)
    data: dict[int, NDArray[np.generic]] = field(default_factory=dict)

    @property
    def missing(self) -> list[int]:
        """Return the fabric's ranks that have not called."""
        return [rank for place, rank in enumerate(self.call.ranks) if place not in self.data]

    def __str__(self) -> str:
        """Return it in words."""
        ranks = self.call.ranks
        group = f"ranks {ranks[0]} to {ranks[-1]}" if len(ranks) > 3 else f"ranks {', '.join(map(str, ranks))}"
        return f"{self.call}, number {self.number} of {group}"


class Meeting:
    """Calls that wait until other ranks call, too."""

    def __init__(self, rank_count: int) -> None:
        self._rank_count = rank_count
        self._waiting: dict[tuple[str, tuple[int, ...], int], Met] = {}
        self._numbers: dict[tuple[str, tuple[int, ...], int], int] = defaultdict(int)

    def add(self, rank: int, call: Call, issued_ps: int, data: bytearray, now_s: float) -> Met | None:
        """Note a rank's next call in a stream; return the collective if it was the last rank's.

        Raises RanksError if another rank has called something else, or for data of another size.
        """
        place = call.ranks.index(rank)
        if len(data) != call.input_bytes(place):
            raise RanksError(f"rank {rank}: {call}, with {len(data)} B", valid=f"{call.input_bytes(place)}")
        own = (call.stream, call.ranks, rank)
        number = self._numbers[own]
        self._numbers[own] += 1
        # Matched by order alone, as MPI and NCCL do: calls carry no tags, so different calls under one number are a
        # mistake.
        key = (call.stream, call.ranks, number)
        met = self._waiting.setdefault(key, Met(call, number, rank, now_s))
        if not met.call.matches(call):
            raise RanksError(
                f"ranks {met.first} and {rank} do not call the same, as number {number} of their group: "
                f"rank {met.first} {met.call}; rank {rank} {call}"
            )
        given = np.frombuffer(data, call.storage) if data else np.zeros(call.elements, call.storage)
        met.issued_ps[place], met.data[place] = issued_ps, given
        return self._waiting.pop(key) if not met.missing else None

    def waiting(self) -> list[Met]:
        """Return the collectives that not all ranks have called, the oldest first."""
        return sorted(self._waiting.values(), key=lambda met: met.since_s)

    def waiting_for(self, rank: int) -> Met | None:
        """Return the oldest collective that waits for a rank; None if none does."""
        return next((met for met in self.waiting() if rank in met.missing), None)
