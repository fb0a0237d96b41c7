"""When switches of a virtual run get code for the contents of their tables (`weft.switch.native.specialised`)."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from weft.engine import Partitions
from weft.switch.native import NativeSwitch
from weft.switch.native.specialised import specialise

FIRST_LOOK_EVENTS = 200_000
"""A short run is over before that."""
EVENTS_WORTH_COMPILING = 3_000_000
"""To serve these takes about as long as compiling a large program does."""
MOST_COMPILATIONS = 4
"""Limit for a run in which writes go on and on."""


class SpecialisedCode:
    """Looks now and then for switches with general code that nobody has written to since the last look.

    Outcomes do not depend on it, nor on when it looks.
    """

    def __init__(self, partitions: Partitions, switches: Sequence[NativeSwitch]) -> None:
        self._partitions = partitions
        self._switches = switches
        self._writes = [0] * len(switches)
        self._served = 0
        self._compilations = 0

    def begin(self) -> None:
        """Look for the first time soon."""
        self._writes = [each.code.writes for each in self._switches]
        self._look_after(FIRST_LOOK_EVENTS)

    def now(self) -> None:
        """Compile code for all switches that have none, whatever it takes."""
        specialise([each for each in self._switches if not each.code.is_specialised])

    def _look_after(self, events: int) -> None:
        # Weakly, because the engine keeps the call and does not take part in garbage collection.
        here = weakref.ref(self)

        def look() -> None:
            code = here()
            if code is not None:
                code._served += events
                code._look()
                # Seldom, once it is known that the run is long.
                code._look_after(min(code._served, EVENTS_WORTH_COMPILING))

        self._partitions.after_events(events, look)

    def _look(self) -> None:
        codes = [each.code for each in self._switches]
        quiet = [
            switch
            for switch, code, writes in zip(self._switches, codes, self._writes, strict=True)
            if not code.is_specialised and code.writes == writes
        ]
        self._writes = [each.writes for each in codes]
        if not quiet:
            return
        compiles = self._served >= EVENTS_WORTH_COMPILING and self._compilations < MOST_COMPILATIONS
        specialise(quiet, only_cached=not compiles)
        self._compilations += compiles
