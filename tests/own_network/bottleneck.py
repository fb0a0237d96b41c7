"""A queue of a port as arithmetic has it: first in, first out, at a rate."""

from __future__ import annotations

from collections.abc import Iterable


class FirstInFirstOut:
    """Frames as pairs of when they come, in picoseconds, and their bytes."""

    def __init__(self, frames: Iterable[tuple[int, int]], rate_bps: int) -> None:
        self._served: list[tuple[int, int, int]] = []
        free_ps = 0
        for came_ps, size_bytes in sorted(frames):
            begins_ps = max(came_ps, free_ps)
            free_ps = begins_ps + size_bytes * 8 * 10**12 // rate_bps
            self._served.append((came_ps, size_bytes, begins_ps))

    def met(self, came_ps: int, size_bytes: int) -> int:
        """Return how many frames wait when this one comes, without the one that is being sent."""
        place = self._place(came_ps, size_bytes)
        return sum(begins_ps > came_ps for _, _, begins_ps in self._served[:place])

    def left_behind(self, came_ps: int, size_bytes: int) -> int:
        """Return how many frames wait when this one begins to be sent."""
        place = self._place(came_ps, size_bytes)
        return sum(other_ps <= self._served[place][2] for other_ps, _, _ in self._served[place + 1 :])

    def waited_us(self, came_ps: int, size_bytes: int) -> int:
        """Return how long this frame waits, as the difference of two timestamps in whole microseconds."""
        return self._served[self._place(came_ps, size_bytes)][2] // 10**6 - came_ps // 10**6

    def _place(self, came_ps: int, size_bytes: int) -> int:
        return next(number for number, each in enumerate(self._served) if each[:2] == (came_ps, size_bytes))
