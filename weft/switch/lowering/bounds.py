"""Checks of every memory access of generated code, for tests and fuzzing (`WEFT_CHECKED_PIPELINES=1`).

Sanitizers do not see machine code made at run time. So a checked program is lowered with a known extent for every
address: its object, the object's size, and the offset in it. An access with constant offset and size is checked
while lowering, any other by a call before it, which aborts the process and names the place. An address without an
extent is refused, so that no access goes unchecked.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llvmlite import ir

if TYPE_CHECKING:
    from weft.switch.lowering.emitter import Emitter, Value

VARIABLE = "WEFT_CHECKED_PIPELINES"
_I64 = ir.IntType(64)


def requested() -> bool:
    """Whether the environment asks for checked programs."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


class BoundsError(AssertionError):
    """A bug in the lowering: generated code would access memory outside an object, or in an unknown object."""


@dataclass(frozen=True, slots=True)
class _Extent:
    """`offset` in an object of `size` bytes; both are integers or i64 values."""

    name: str
    size: int | Value
    offset: int | Value


class BoundsChecks:
    """The extents of one function's addresses."""

    def __init__(self, emit: Emitter) -> None:
        self._emit = emit
        self._extents: dict[int, tuple[Value, _Extent]] = {}

    def declare(self, address: Value, size: int | Value, name: str) -> None:
        """Declare `address` as the start of an object."""
        self._extents[id(address)] = address, _Extent(name, size, 0)

    def derive(self, address: Value, base: Value, offset: int | Value) -> None:
        """Declare `address` as `base` plus `offset` bytes."""
        known = self._extents.get(id(base))
        if known is not None:
            extent = known[1]
            moved = _Extent(extent.name, extent.size, self._sum(extent.offset, offset))
            self._extents[id(address)] = address, moved

    def check(self, address: Value, size: int | Value) -> None:
        """Check an access of `size` bytes from `address` on, which follows."""
        known = self._extents.get(id(address))
        where = f"{self._emit.place}: {address}" if known is None else f"{self._emit.place}: {known[1].name}"
        if known is None:
            raise BoundsError(f"{where}: an access through an address of unknown extent")
        extent = known[1]
        if isinstance(extent.offset, int) and isinstance(size, int) and isinstance(extent.size, int):
            if not 0 <= extent.offset <= extent.size - size:
                raise BoundsError(f"{where}: {size} bytes at {extent.offset} of {extent.size}")
            return
        self.check_numbers(extent.offset, size, extent.size, where)

    def check_numbers(self, offset: int | Value, size: int | Value, limit: int | Value, where: str) -> None:
        """Emit a check that `offset + size` is at most `limit`."""
        emit = self._emit
        text = emit.shared.constant_bytes(where.encode() + b"\0")
        emit.call_runtime("weft_check_bounds", ir.VoidType(), _value(offset), _value(size), _value(limit), text)

    def _sum(self, one: int | Value, other: int | Value) -> int | Value:
        if isinstance(one, int) and isinstance(other, int):
            return one + other
        return self._emit.builder.add(_value(one), _value(other))


def _value(number: int | Value) -> Value:
    return _I64(number) if isinstance(number, int) else number
