"""Parser value sets of the native switch."""

from __future__ import annotations

from collections.abc import Sequence

from weft.engine import _core
from weft.switch.backend.checks import check_value, named
from weft.switch.bmv2json import Program
from weft.switch.lowering.layout import bytes_for
from weft.switch.native.running import RunningProgram


class ValueSets:
    """Writes the members of value sets."""

    def __init__(self, native: _core.Switch, running: RunningProgram) -> None:
        self._native = native
        self._running = running

    def write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        """Replace the members, (value, mask) pairs laid out like a `Transition`'s value."""
        program = self._running.program
        named(program.value_sets, value_set, "value set")
        size = _value_bytes(program, value_set)
        native = []
        for value, mask in members:
            check_value(f"value set {value_set!r}", value, size * 8)
            check_value(f"value set {value_set!r}, mask", mask, size * 8)
            native.append((value.to_bytes(size, "big"), mask.to_bytes(size, "big")))
        self._native.value_set_write(list(program.value_sets).index(value_set), native)


def _value_bytes(program: Program, value_set: str) -> int:
    """Size of the values of a set: the key of the parser state that uses it."""
    for parser in program.parsers.values():
        for state in parser.states.values():
            if any(item.value_set == value_set for item in state.transitions):
                return state.key_width_bits // 8
    return bytes_for(program.value_sets[value_set].width_bits)
