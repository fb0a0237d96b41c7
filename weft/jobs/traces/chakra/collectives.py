"""Converts collectives between Chakra and Weft. Chakra's `comm_size` is a rank's input; Weft's size is nccl-tests'."""

from __future__ import annotations

from weft.errors import translated
from weft.jobs.traces.assembling import whole_call
from weft.jobs.traces.chakra.messages import CollectiveType
from weft.jobs.traces.errors import TraceError
from weft.traffic.jobs import CollectiveCall

_COLLECTIVES = {
    CollectiveType.ALL_REDUCE: "allreduce",
    CollectiveType.REDUCE: "reduce",
    CollectiveType.ALL_GATHER: "allgather",
    CollectiveType.BROADCAST: "broadcast",
    CollectiveType.ALL_TO_ALL: "alltoall",
    CollectiveType.REDUCE_SCATTER: "reducescatter",
    CollectiveType.REDUCE_SCATTER_BLOCK: "reducescatter",
    # NCCL has no barrier; torch.distributed lets it all-reduce one element instead.
    CollectiveType.BARRIER: "allreduce",
}
_GATHERED = "allgather"
"""The collective with a result as large as all inputs together."""


def call_of(number: int, input_bytes: int, members: int, place: str) -> CollectiveCall | None:
    """Return the call of a collective among `members` ranks, None if it moves nothing.

    Raises TraceError, with `place`, for types that Weft does not support and for too large sizes.
    """
    try:
        kind = CollectiveType(number)
        collective = _COLLECTIVES[kind]
    except (ValueError, KeyError):
        named = CollectiveType(number).name if number in list(CollectiveType) else str(number)
        valid = ", ".join(f"{each.name} {each.value}" for each in _COLLECTIVES)
        raise TraceError(f"comm_type {named} cannot be run", place=place, valid=valid) from None
    if kind == CollectiveType.BARRIER:
        input_bytes = CollectiveCall.dtype.element_bytes
    with translated(ValueError, TraceError, place=place):
        return whole_call(collective, input_bytes * (members if collective == _GATHERED else 1), members)


def type_and_input_bytes(call: CollectiveCall, members: int) -> tuple[CollectiveType, int]:
    """Return Chakra's type and `comm_size` of a call; a collective that Chakra lacks becomes an all-to-all."""
    for kind, collective in _COLLECTIVES.items():
        if collective == call.collective:
            return kind, call.size_bytes // (members if collective == _GATHERED else 1)
    return CollectiveType.ALL_TO_ALL, call.size_bytes
