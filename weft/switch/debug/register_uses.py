"""Finds the register cells that a packet read and wrote, from its trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.switch.bmv2json import Program, RegisterArrayRef
from weft.switch.trace.events import Copied, CopyTrace, PacketTrace, Step
from weft.switch.trace.places import PrimitiveRun
from weft.switch.trace.values import number


@dataclass
class RegisterUse:
    """A cell: its value when the packet first used it, and the last value written; None if it was only read."""

    register: str
    index: int
    width_bits: int
    before: int
    after: int | None = None

    @property
    def name(self) -> str:
        """Name of the cell, with its index."""
        return f"{self.register}[{self.index}]"

    @property
    def text(self) -> str:
        """The use as a line of a trace."""
        before = number(self.before, self.width_bits)
        held = f"{before} (read)" if self.after is None else f"{before} → {number(self.after, self.width_bits)}"
        return f"{self.name}: {held}"


def register_use(program: Program, step: Step) -> RegisterUse | None:
    """Return a step's use of a register; None without one, or if its index is out of range."""
    place = step.place
    if not isinstance(place, PrimitiveRun) or place.call.name not in ("register_read", "register_write"):
        return None
    is_write = place.call.name == "register_write"
    array = place.call.arguments[0 if is_write else 1]
    assert isinstance(array, RegisterArrayRef)
    register, index = program.register_arrays[array.name], step.values[0]
    if index >= register.size:
        return None
    # A write has the values index, new value and old value; a read has index and value.
    before, after = (step.values[2], step.values[1]) if is_write else (step.values[1], None)
    return RegisterUse(register.name, index, register.width_bits, before, after)


def register_uses(program: Program, trace: PacketTrace) -> list[RegisterUse]:
    """Return the cells that a packet and its copies used, in order of first use."""
    found: dict[str, RegisterUse] = {}
    # Copies use registers concurrently.
    for _, step in sorted(_steps(trace.root), key=lambda timed: timed[0]):
        use = register_use(program, step)
        if use is not None:
            known = found.setdefault(use.name, use)
            known.after = known.after if use.after is None else use.after
    return list(found.values())


def _steps(trace: CopyTrace) -> Iterator[tuple[int, Step]]:
    for event, time_ps in zip(trace.events, trace.times_ps, strict=True):
        if isinstance(event, Copied):
            yield from _steps(event.copy)
        elif isinstance(event, Step):
            yield time_ps, event
