"""Where a program's code counts how often it passed each of its places (switch/trace/places.py).

All switches of a process that run the program count in the same memory, which lives as long as the process: code keeps
its address.
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
        """What the code calls the memory."""

    @property
    def address(self) -> int:
        """Of the memory."""
        return ctypes.addressof(self._cells)

    def by_place(self) -> dict[Place, tuple[int, ...]]:
        """How often each place had each of its outcomes."""
        cells = list(self._cells)
        return {place: tuple(cells[at] for at in self._places.counts(place)) for place in self._places}

    def clear(self) -> None:
        """Begin again at zero."""
        ctypes.memset(self._cells, 0, ctypes.sizeof(self._cells))


def counts_of(program: Program) -> Counts:
    """The counts of a program, the same for all that run it in this process."""
    with _lock:
        return _known.setdefault(program.content_hash, Counts(program))
