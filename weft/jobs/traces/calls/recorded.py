"""A recorded call of a communication library, in NCCL's terms."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft.errors import InvalidValueError
from weft.quantities.units import shown

MAX_COUNT = 1 << 46
NCCL_DATATYPES = (
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16", "float8e4m3",
    "float8e5m2",
)  # fmt: skip
"""Types of elements; NCCL prints the index in this list (ncclDataType_t)."""
ELEMENT_BYTES = {
    **dict(zip(NCCL_DATATYPES, (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1), strict=True)),
    "bool": 1, "int16": 2, "uint16": 2, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""Bytes of an element of NCCL's types and of PyTorch's others."""
COLLECTIVES = {
    "allreduce": "allreduce",
    "allgather": "allgather",
    "reducescatter": "reducescatter",
    "broadcast": "broadcast",
    "bcast": "broadcast",
    "reduce": "reduce",
    "alltoall": "alltoall",
}
"""Weft's collectives by NCCL's names in lower case."""
PER_RANK = ("allgather", "reducescatter", "alltoall")
"""Collectives for which NCCL counts the elements for or from each rank."""
SEND, RECEIVE = "send", "recv"
EXCHANGE = "exchange"
"""Messages of different sizes to and from a communicator's ranks: all-to-all-v, gather, scatter."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call was read, as shown in messages: a file and a term for its parts, and the part's number."""

    source: str
    number: int

    def __str__(self) -> str:
        """Return the place in words."""
        return f"{self.source} {self.number}"


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call by one rank.

    Attributes:
        operation: a value of `COLLECTIVES`, or SEND, RECEIVE, EXCHANGE.
        count: elements, as NCCL counts them: for or from each rank in `PER_RANK`.
        datatype: a key of `ELEMENT_BYTES`.
        communicator: its name.
        place: where it was read.
        root: a broadcast's or a reduce's root, the peer of a message; a rank of the communicator.
        stream: calls of a stream follow each other.
        group: consecutive calls of a stream with the same non-empty group start together.
        start_ps: earliest start, counted from the job's start.
        ran_ps: when it was recorded to begin and end on the rank's clock; None if not recorded.
        follows: places of the rank's earlier calls that end before it starts.
        sent: of EXCHANGE, the elements for each rank of the communicator.
        received: of EXCHANGE, the elements from each rank of the communicator.
    """

    operation: str
    count: int
    datatype: str
    communicator: str
    place: Place
    root: int = 0
    stream: str = ""
    group: str = ""
    start_ps: int = 0
    ran_ps: tuple[int, int] | None = None
    follows: tuple[int, ...] = ()
    sent: tuple[int, ...] = ()
    received: tuple[int, ...] = ()

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return ELEMENT_BYTES[self.datatype]


def datatype_of(text: str) -> str:
    """Return the name of a type, from its name or NCCL's number. Raises ValueError."""
    name = text.lower().removeprefix("nccl")
    if name.isascii() and name.isdigit() and len(name) < 3 and int(name) < len(NCCL_DATATYPES):
        return NCCL_DATATYPES[int(name)]
    if name in NCCL_DATATYPES:
        return name
    raise InvalidValueError(f"{shown(text)}", valid=f"{', '.join(NCCL_DATATYPES)}, or NCCL's number")


def operation_of(text: str) -> str:
    """Return the operation of NCCL's name for it. Raises ValueError."""
    name = text.lower().removeprefix("nccl")
    if name in (SEND, RECEIVE):
        return name
    if name in COLLECTIVES:
        return COLLECTIVES[name]
    raise InvalidValueError(f"{shown(text)}", valid=(*COLLECTIVES, SEND, RECEIVE))


def rooted_exchange(call: RecordedCall, rank: int, ranks: int, *, to_root: bool) -> RecordedCall:
    """Return what a rank sends and receives in a gather (`to_root`) or a scatter of `call.count` elements of each."""
    others = tuple(call.count if each != rank else 0 for each in range(ranks))
    alone = tuple(call.count if each == call.root and rank != call.root else 0 for each in range(ranks))
    nothing = (0,) * ranks
    gathered = others if rank == call.root else nothing
    sent, received = (alone, gathered) if to_root else (gathered, alone)
    return replace(call, operation=EXCHANGE, root=0, sent=sent, received=received)
