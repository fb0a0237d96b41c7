"""Reports of the oracle to a trace: the same places, values and order as instrumented code."""

from __future__ import annotations

from weft.switch.backend import TableKey
from weft.switch.bmv2json import PrimitiveCall
from weft.switch.oracle.expressions import Environment, evaluate
from weft.switch.oracle.state import PacketState
from weft.switch.trace.events import Event, Step
from weft.switch.trace.places import Place, primitive_place, value_bits


def add_event(packet: PacketState, event: Event) -> None:
    """Add an event of the switch itself."""
    if packet.trace is not None:
        packet.trace.add(event)


def report(
    packet: PacketState,
    place: Place,
    values: tuple[int, ...] = (),
    data: bytes = b"",
    match: tuple[TableKey, int] | None = None,
) -> None:
    """Add the report of a program's place, with values truncated to their widths."""
    if packet.trace is not None:
        cut = tuple(value & ((1 << width) - 1) for value, width in zip(values, value_bits(place), strict=True))
        packet.trace.add(Step(place, cut, data, match))


class PrimitiveReport:
    """The report of a primitive: create it before the primitive runs, call `finish` after."""

    def __init__(self, env: Environment, call: PrimitiveCall) -> None:
        self._env = env
        self._place = None
        self._values: list[int] = []
        if env.packet.trace is None or call.name == "_jump":
            return
        self._place = primitive_place(env.packet.program, call)
        self._values = [int(evaluate(operand, env)) for operand, _ in self._place.operands]

    def finish(self) -> None:
        """Report the operands from before the primitive, and the result after it."""
        if self._place is None:
            return
        if self._place.result is not None:
            self._values.append(int(evaluate(self._place.result, self._env)))
        report(self._env.packet, self._place, tuple(self._values))
