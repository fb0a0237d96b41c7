"""Finds runs of equal statements on adjacent fields and registers, which P4 programs repeat for lack of loops.

A program that adds 64 lanes repeats a statement 64 times. Statements that differ only in consecutive fields of a header
and in interleaved register arrays become one loop (`lane_loops`), which LLVM vectorises. Names of fields and registers
do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.switch.bmv2json import VALID_FIELD, Constant, Expression, FieldRef, PrimitiveCall, RegisterArrayRef
from weft.switch.lowering.effects import names_in
from weft.switch.lowering.layout import BlockLayout
from weft.switch.lowering.register_layout import RegisterLayout
from weft.switch.lowering.statement_forms import JUMPS, Moving, Place, alike, form_of

FEWEST_REPETITIONS = 8
"""Fewest repetitions for a loop; a shorter one would cost more than it saves."""

LONGEST_PERIOD = 48
"""Most statements per lane."""


@dataclass(frozen=True, slots=True)
class Run:
    """`count` repetitions of the `period` calls from `start` on.

    `body` are the first repetition's calls, with jump targets relative to its start. `strides` has the bytes by which
    fields and arrays advance from one repetition to the next.
    """

    start: int
    period: int
    count: int
    body: tuple[PrimitiveCall, ...]
    strides: Mapping[Moving, int]

    @property
    def end(self) -> int:
        """Index of the call after it."""
        return self.start + self.period * self.count

    def registers(self) -> Iterator[tuple[str, Expression]]:
        """Yield each array that is read or written, and its index, which is the same in all repetitions."""
        for call in self.body:
            match call.name, call.arguments:
                case "register_read", (_, RegisterArrayRef(name), index):
                    yield name, index  # type: ignore[misc]
                case "register_write", (RegisterArrayRef(name), index, _):
                    yield name, index  # type: ignore[misc]

    def written(self) -> Iterator[FieldRef]:
        """Yield the fields that the first repetition writes."""
        for call in self.body:
            if call.name not in JUMPS and isinstance(call.arguments[0], FieldRef):
                yield call.arguments[0]


def find_runs(
    calls: Sequence[PrimitiveCall], blocks: Mapping[str, BlockLayout], arrays: Mapping[str, RegisterLayout]
) -> dict[int, Run]:
    """Return the runs among an action's calls, by index of their first call. They do not overlap."""
    if len(calls) < FEWEST_REPETITIONS:
        return {}
    search = _Search(calls, blocks, arrays)
    runs: dict[int, Run] = {}
    index = 0
    while index + FEWEST_REPETITIONS <= len(calls):
        run = search.run_at(index)
        if run is not None:
            runs[index] = run
        index = run.end if run is not None else index + 1
    return runs


class _Search:
    def __init__(
        self,
        calls: Sequence[PrimitiveCall],
        blocks: Mapping[str, BlockLayout],
        arrays: Mapping[str, RegisterLayout],
    ) -> None:
        self._calls = calls
        self._blocks = blocks
        self._forms = [form_of(call, index, blocks, arrays) for index, call in enumerate(calls)]
        self._jumps = [
            (index, target.value)
            for index, call in enumerate(calls)
            if call.name in JUMPS and isinstance(target := call.arguments[-1], Constant)
        ]

    def run_at(self, start: int) -> Run | None:
        """Return the run with the shortest period that begins with this call."""
        longest = min(LONGEST_PERIOD, (len(self._calls) - start) // FEWEST_REPETITIONS)
        for period in range(1, longest + 1):
            if self._forms[start + period - 1] is None:
                return None
            run = self._run(start, period)
            if run is not None:
                return run
        return None

    def _run(self, start: int, period: int) -> Run | None:
        strides = self._strides(start, period)
        if strides is None:
            return None
        count = 2
        while self._repeats(start, period, count, strides):
            count += 1
        count = self._undisturbed(start, period, count)
        if count < FEWEST_REPETITIONS:
            return None
        moving = self._moving(start, strides)
        if not moving:
            return None
        body = tuple(_moved(call, start) for call in self._calls[start : start + period])
        run = Run(start, period, count, body, moving)
        return None if self._changes_indices(run) else run

    def _changes_indices(self, run: Run) -> bool:
        """Return whether a repetition writes a field used in a register index."""
        written = [
            (place.header, byte + number * run.strides.get(place, 0))
            for place in run.written()
            for byte in self._bytes(place.header, place.field)
            for number in range(run.count if place in run.strides else 1)
        ]
        read = {
            (header, byte)
            for _, index in run.registers()
            for header, name in names_in(index)
            for byte in self._bytes(header, name)
        }
        return not read.isdisjoint(written)

    def _bytes(self, header: str, name: str) -> range:
        """Return the bytes of a field in its header; for a metadata field, a unique number."""
        block = self._blocks[header]
        if name == VALID_FIELD:
            return range(block.valid_offset, block.valid_offset + 1)
        slot = block.fields[name]
        if not block.wire:
            number = block.field_order.index(name)
            return range(number, number + 1)
        return range(slot.bit_offset // 8, (slot.bit_offset + slot.width_bits - 1) // 8 + 1)

    def _places(self, index: int) -> tuple[Place, ...]:
        form = self._forms[index]
        return form.places if form is not None else ()

    def _strides(self, start: int, period: int) -> list[tuple[int, ...]] | None:
        """Return the stride of each place of each call from the first repetition to the second."""
        strides = []
        for index in range(start, start + period):
            first, second = self._forms[index], self._forms[index + period]
            if first is None or second is None or not alike(first, second):
                return None
            if first.jumps_by and index + first.jumps_by > start + period:
                return None
            strides.append(tuple(b[1] - a[1] for a, b in zip(first.places, second.places, strict=True)))
        return strides

    def _repeats(self, start: int, period: int, count: int, strides: list[tuple[int, ...]]) -> bool:
        """Return whether `count` repetitions are followed by one more."""
        ahead = period * count
        if start + ahead + period > len(self._calls):
            return False
        for index, by in zip(range(start, start + period), strides, strict=True):
            first, this = self._forms[index], self._forms[index + ahead]
            if first is None or this is None or not alike(first, this):
                return False
            for a, b, stride in zip(first.places, this.places, by, strict=True):
                if b[1] - a[1] != stride * count:
                    return False
        return True

    def _undisturbed(self, start: int, period: int, count: int) -> int:
        """Return how many of `count` repetitions come before the first that a jump from elsewhere enters."""
        for source, target in self._jumps:
            if not start < target < start + period * count:
                continue
            at = (source - start) // period
            own = start + at * period
            if not (0 <= at < count and own < target <= own + period):
                count = min(count, (target - start) // period)
        return count

    def _moving(self, start: int, strides: list[tuple[int, ...]]) -> dict[Moving, int] | None:
        """Return the stride of each operand that moves; None if the first repetition has one with two strides."""
        known: dict[Moving, int] = {}
        for index, by in enumerate(strides):
            for place, stride in zip(self._places(start + index), by, strict=True):
                if known.setdefault(place[2], stride) != stride:
                    return None
        return {place: stride for place, stride in known.items() if stride}


def _moved(call: PrimitiveCall, start: int) -> PrimitiveCall:
    """Return the call with its jump target relative to `start`."""
    if call.name not in JUMPS:
        return call
    *arguments, target = call.arguments
    assert isinstance(target, Constant)
    return PrimitiveCall(call.name, (*arguments, Constant(target.value - start)), call.source)
