"""Names of communicators that ranks record: equal names with other ranks are other communicators."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from weft.jobs.traces.assembling import check_count
from weft.jobs.traces.errors import TraceError


@lru_cache(maxsize=64)
def strided(start: int, stride: int, size: int) -> tuple[int, ...]:
    """Return ranks from a start by a stride: the same tuple for the same arguments."""
    return tuple(range(start, start + stride * size, stride))


class Communicators:
    """Communicators by unique names."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, tuple[int, ...]], str] = {}
        self._ranks: dict[str, tuple[int, ...]] = {}
        self._joined: dict[tuple[str, int, int], tuple[str, int, tuple[int, ...]]] = {}
        self._message_count = 0

    @property
    def ranks(self) -> Mapping[str, tuple[int, ...]]:
        """The ranks of each, by unique name."""
        return self._ranks

    def name_of(self, name: str, ranks: tuple[int, ...]) -> str:
        """Return the unique name of a recorded communicator, which is added if it is new."""
        known = self._names.get((name, ranks))
        if known is None:
            known, number = name, 1
            while known in self._ranks:
                number += 1
                known = f"{name} ({number})"
            self._names[name, ranks] = known
            self._ranks[known] = ranks
        return known

    def joined(self, name: str, ranks: tuple[int, ...], rank: int, place: object) -> tuple[str, int]:
        """Return the unique name of a recorded communicator, and a rank's place in it.

        Readers pass the same tuple for each call of a group, so that large groups are compared once.

        Raises TraceError, with `place`, if the rank is not in it.
        """
        # The tuple is kept, so its identity belongs to no other one.
        found = self._joined.get((name, id(ranks), rank))
        if found is None:
            if rank not in ranks:
                raise TraceError(f"rank {rank} is not in process group {name!r}", place=place)
            self.count_messages(len(ranks), place)
            found = (self.name_of(name, ranks), ranks.index(rank), ranks)
            self._joined[name, id(ranks), rank] = found
        return found[:2]

    def count_messages(self, count: int, place: object) -> None:
        """Note that a call has so many messages, or a group so many ranks; too many raise TraceError, with `place`."""
        self._message_count += count
        check_count(self._message_count, 0, str(place))
