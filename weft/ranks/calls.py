"""A rank's call to the others: a collective of a group, as each of its ranks must call it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from weft.ranks.errors import RanksError
from weft.traffic.aggregation_format import Operation
from weft.traffic.data_types import DataType

DTYPES = tuple(DataType)
"""Types that the fabric reduces; elements that are only moved travel as int32, whatever they are."""
COLLECTIVES = ("allreduce", "reduce", "reducescatter", "allgather", "alltoall", "broadcast", "barrier")
OPERATIONS = tuple(each.name.lower() for each in Operation)
MAX_NAME = 256


@dataclass(frozen=True)
class Call:
    """A rank's part in a collective.

    Attributes:
        stream: calls of one stream follow each other; ranks match them by their order in it.
        ranks: the fabric's rank of each of the group's, in order.
        collective: one of COLLECTIVES.
        dtype: type of the elements, one of DTYPES.
        elements: number of elements in this rank's input.
        operation: how a collective reduces, if it does; one of OPERATIONS.
        root: rank in the group, of a broadcast or a reduce.
        title: what the caller called it, for errors.
    """

    stream: str
    ranks: tuple[int, ...]
    collective: str
    dtype: str
    elements: int
    operation: str = "sum"
    root: int = 0
    title: str = ""

    def __str__(self) -> str:
        """Return it in words."""
        text = f"{self.title or self.collective} of {self.elements} {self.dtype}"
        if self.collective in ("allreduce", "reduce", "reducescatter"):
            text += f" ({self.operation})"
        return text + (f" with root {self.root}" if self.collective in ("broadcast", "reduce") else "")

    def matches(self, other: Call) -> bool:
        """Return whether two ranks ask for the same, whatever they call it."""
        return replace(self, title="") == replace(other, title="")

    def has_input(self, place: int) -> bool:
        """Return whether the rank at a place of the group gives data."""
        return self.collective != "broadcast" or place == self.root

    def input_bytes(self, place: int) -> int:
        """Return how many bytes the rank at a place of the group gives."""
        return self.elements * DataType(self.dtype).element_bytes if self.has_input(place) else 0

    @property
    def storage(self) -> str:
        """Name of the NumPy type of arrays that hold its elements."""
        return DataType(self.dtype).storage

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, found: Any, rank: int, rank_count: int) -> Call:
        """Return a call that rank `rank` has sent. Raises RanksError for what is none."""
        try:
            call = cls(**{**found, "ranks": tuple(found["ranks"])})
        except (TypeError, KeyError) as error:
            raise RanksError(f"rank {rank} sent a call that is none: {error}") from None
        for name, value, valid in (
            ("collective", call.collective, COLLECTIVES),
            ("dtype", call.dtype, DTYPES),
            ("operation", call.operation, OPERATIONS),
        ):
            if value not in valid:
                raise RanksError(f"rank {rank}: {name} {str(value)[:40]!r}", valid=valid)
        for name, text in (("stream", call.stream), ("title", call.title)):
            if not isinstance(text, str) or len(text) > MAX_NAME:
                raise RanksError(f"rank {rank}: a {name} that is no text of up to {MAX_NAME} characters")
        _check_whole(rank, "elements", call.elements, 1, 1 << 29)
        _check_whole(rank, "root", call.root, 0, len(call.ranks) - 1)
        for each in call.ranks:
            _check_whole(rank, "a rank of the group", each, 0, rank_count - 1)
        if len(set(call.ranks)) != len(call.ranks) or rank not in call.ranks:
            raise RanksError(f"rank {rank} calls in the group {list(call.ranks)[:20]}", valid="with itself, each once")
        return call


def _check_whole(rank: int, name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise RanksError(f"rank {rank}: {name} {str(value)[:40]!r}", valid=f"{least} to {most}")
