"""Counters of how often a program's code passed each place (switch/trace/places.py).

All switches in a process that run the program share the memory. It lives as long as the process, as code keeps its
address.
"""

from __future__ import annotations

import ctypes
import threading

from weft.switch.bmv2json import Program
from weft.switch.trace.places import Place, Places

_known: dict[str, Counts] = {}
_lock = threading.Lock()


class Counts:
    """Counts of one program; use `counts_of`."""

    def __init__(self, program: Program) -> None:
        self._places = Places(program)
        self._cells = (ctypes.c_uint64 * self._places.count)()
        self.symbol = f"weft_coverage_{program.content_hash}"
        """Symbol of the memory in the code."""

    @property
    def address(self) -> int:
        """Address of the memory."""
        return ctypes.addressof(self._cells)

    def by_place(self) -> dict[Place, tuple[int, ...]]:
        """Return how often each place had each of its outcomes."""
        cells = list(self._cells)
        return {place: tuple(cells[at] for at in self._places.counts(place)) for place in self._places}

    def clear(self) -> None:
        """Reset all counts to zero."""
        ctypes.memset(self._cells, 0, ctypes.sizeof(self._cells))


def counts_of(program: Program) -> Counts:
    """Return the counts of a program, shared by all switches that run it in this process."""
    with _lock:
        return _known.setdefault(program.content_hash, Counts(program))
