"""Shared by counters, meters and registers: arrays with cells that can only be modified."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from finsy.proto import p4i, p4r

from weft.switch.backend import SwitchBackend
from weft.switch.p4runtime.errors import OUT_OF_RANGE, RequestError, invalid
from weft.switch.p4runtime.pipeline import Pipeline, lookup


class ArrayInfo(Protocol):
    """A P4Info Counter, Meter or Register."""

    @property
    def preamble(self) -> p4i.Preamble:
        """Name and id of the array."""

    @property
    def size(self) -> int:
        """Number of cells."""


InfoT = TypeVar("InfoT", bound=ArrayInfo)


class ArrayCells:
    """Selection of arrays and cells."""

    def __init__(self, pipeline: Pipeline, backend: SwitchBackend) -> None:
        self.pipeline = pipeline
        self.backend = backend

    def find(self, arrays: Mapping[int, InfoT], number: int, what: str) -> InfoT:
        """Return the array with this id."""
        return lookup(arrays, number, what)

    def selected(self, arrays: Mapping[int, InfoT], number: int, what: str) -> list[InfoT]:
        """Return the array with this id; all for 0."""
        return list(arrays.values()) if number == 0 else [lookup(arrays, number, what)]

    def indices(
        self, info: ArrayInfo, message: p4r.CounterEntry | p4r.MeterEntry | p4r.RegisterEntry, what: str
    ) -> Iterable[int]:
        """Return the cell that `message` names, or all cells. OUT_OF_RANGE if it does not exist."""
        if not message.HasField("index"):
            return range(info.size)
        index = message.index.index
        if index < 0:
            raise invalid(f"{what} {info.preamble.name!r}: index {index} is negative")
        if index >= info.size:
            raise RequestError(
                OUT_OF_RANGE,
                f"{what} {info.preamble.name!r}: index {index} is out of range",
                valid=f"0 to {info.size - 1}",
            )
        return (index,)
