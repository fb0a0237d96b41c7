"""Which cells of registers a packet read and wrote, by its trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.switch.bmv2json import Program, RegisterArrayRef
from weft.switch.trace.events import Copied, CopyTrace, PacketTrace, Step
from weft.switch.trace.places import PrimitiveRun
from weft.switch.trace.values import number


@dataclass
class RegisterUse:
    """A cell: what it held when the packet first used it, and what the packet wrote last; None: it only read it."""

    register: str
    index: int
    width_bits: int
    before: int
    after: int | None = None

    @property
    def text(self) -> str:
        """As a line of a trace."""
        before = number(self.before, self.width_bits)
        held = (
            f"{before} (read)" if self.after is None else f"{before} → {number(self.after, self.width_bits)}"
        )
        return f"{self.register}[{self.index}]: {held}"


def register_uses(program: Program, trace: PacketTrace) -> list[RegisterUse]:
    """The cells that a packet and its copies used, in the order of their first use; none out of an array's range."""
    found: dict[tuple[str, int], RegisterUse] = {}
    # Copies use registers beside each other.
    for _, step in sorted(_primitives(trace.root), key=lambda timed: timed[0]):
        assert isinstance(step.place, PrimitiveRun)
        call = step.place.call
        is_write = call.name == "register_write"
        if not is_write and call.name != "register_read":
            continue
        array = call.arguments[0 if is_write else 1]
        assert isinstance(array, RegisterArrayRef)
        register, index = program.register_arrays[array.name], step.values[0]
        if index >= register.size:
            continue
        before = step.values[2 if is_write else 1]
        use = found.setdefault(
            (array.name, index), RegisterUse(register.name, index, register.width_bits, before)
        )
        if is_write:
            use.after = step.values[1]
    return list(found.values())


def _primitives(trace: CopyTrace) -> Iterator[tuple[int, Step]]:
    for event, time_ps in zip(trace.events, trace.times_ps, strict=True):
        if isinstance(event, Copied):
            yield from _primitives(event.copy)
        elif isinstance(event, Step) and isinstance(event.place, PrimitiveRun):
            yield time_ps, event
