"""Tells packets that a switch took in, such as contributions that it added up, from packets that it lost.

Both are marked to be dropped. Programs say no more about it, so only Weft's own program is known to absorb packets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from weft.quantities.program_sources import ABSORBING_SOURCES
from weft.switch.bmv2json import PrimitiveCall, Program

ABSORBED = "absorbed: its data are in the switch's registers, so nothing goes out"


def absorbs(call: PrimitiveCall) -> bool:
    """Return whether a primitive marks a packet as absorbed."""
    file = (call.source or "").partition(":")[0]
    return call.name == "mark_to_drop" and PurePath(file).name in ABSORBING_SOURCES


def absorbing_calls(program: Program) -> Iterator[PrimitiveCall]:
    """Yield the primitives of a program that mark packets as absorbed."""
    for action in program.actions.values():
        yield from filter(absorbs, action.primitives)
