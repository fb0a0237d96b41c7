"""Machine code specialised to what the tables of several switches have in common.

A fabric uses few of its program's tables. Code that takes this for granted is smaller and looks up less, with the same
outcome for every packet: before a write that breaks an assumption, the engine returns to the general code.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.engine import _core
from weft.switch.bmv2json import Program
from weft.switch.lowering import Assumptions, compile_program, is_compiled
from weft.switch.native.switch import NativeSwitch


def specialise(switches: Sequence[NativeSwitch], *, only_cached: bool = False) -> int:
    """Give switches code for the contents of their tables, one variant for each program; return how many took it.

    With `only_cached`, nothing is compiled. Switches without a program, or in which packets are traced or coverage is
    counted, keep their code, and so does one that is written to meanwhile, if what is written breaks the assumptions.
    """
    by_program: dict[str, list[NativeSwitch]] = {}
    for switch in switches:
        if switch.program is not None:
            by_program.setdefault(switch.program.content_hash, []).append(switch)
    return sum(_specialise(members, only_cached) for members in by_program.values())


def _specialise(switches: Sequence[NativeSwitch], only_cached: bool) -> int:
    program = switches[0].program
    assert program is not None
    assumed = assumptions_of(program, switches)
    if only_cached and not is_compiled(program.content_hash, assumed):
        return 0
    code = compile_program(program, assumed=assumed)
    return sum(switch.native.specialise(code.native) for switch in switches)


def assumptions_of(program: Program, switches: Sequence[NativeSwitch]) -> Assumptions:
    """Return what the tables of switches that run the program have in common."""
    contents = _core.CommonContents([], {})
    for switch in switches:
        switch.native.add_contents_to(contents)
    return Assumptions.of_contents(program, contents)
