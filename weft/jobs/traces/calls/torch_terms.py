"""PyTorch's names of collectives and types of elements, and calls from what PyTorch records of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from weft.errors import InvalidValueError, translated
from weft.jobs.traces.calls.communicators import Communicators
from weft.jobs.traces.calls.recorded import (
    EXCHANGE,
    MAX_COUNT,
    RECEIVE,
    SEND,
    Place,
    RecordedCall,
    rooted_exchange,
)
from weft.jobs.traces.errors import TraceError
from weft.quantities.units import shown
from weft.traffic.collectives import COLLECTIVE_KINDS

BARRIER, GATHER, SCATTER, ALL_TO_ALL_V = "barrier", "gather", "scatter", "alltoallv"
_OPERATIONS = {
    "allreduce": "allreduce", "allreducecoalesced": "allreduce", "broadcast": "broadcast",
    "broadcastoop": "broadcast", "reduce": "reduce", "reduceoop": "reduce", "allgather": "allgather",
    "allgatherbase": "allgather", "allgatherintotensor": "allgather", "allgatherintotensorcoalesced": "allgather",
    "allgathercoalesced": "allgather", "reducescatter": "reducescatter", "reducescatterbase": "reducescatter",
    "reducescattertensor": "reducescatter", "reducescattertensorcoalesced": "reducescatter", "alltoall": "alltoall",
    "alltoallbase": "alltoall", "alltoallsingle": "alltoall", "alltoallv": ALL_TO_ALL_V, "barrier": BARRIER,
    "allreducebarrier": BARRIER, "gather": GATHER, "scatter": SCATTER, "send": SEND, "isend": SEND, "recv": RECEIVE,
    "irecv": RECEIVE,
}  # fmt: skip
_SKIPPED = frozenset({"wait", "init", "coalesced", "batchisendirecv", "startcoalescing", "endcoalescing"})
"""Records that are no transfers: batches list their members, too."""
_DATATYPES = {
    "float": "float32", "float32": "float32", "double": "float64", "float64": "float64", "half": "float16",
    "float16": "float16", "bfloat16": "bfloat16", "long": "int64", "longint": "int64", "int64": "int64",
    "int": "int32", "int32": "int32", "short": "int16", "shortint": "int16", "int16": "int16", "char": "int8",
    "signedchar": "int8", "int8": "int8", "byte": "uint8", "unsignedchar": "uint8", "uint8": "uint8",
    "bool": "bool", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "float8e4m3fn": "float8e4m3",
    "float8e4m3fnuz": "float8e4m3", "float8e5m2": "float8e5m2", "float8e5m2fnuz": "float8e5m2",
    "complexfloat": "complex64", "complex64": "complex64", "complexdouble": "complex128", "complex128": "complex128",
}  # fmt: skip
_UNSPELLED = re.compile(r"[\s_]+")


def torch_operation(name: str) -> str | None:
    """Return what PyTorch's name of an operation stands for, None for what moves nothing. Raises ValueError."""
    known = _UNSPELLED.sub("", name.lower().rpartition(":")[2])
    if known in _SKIPPED:
        return None
    if known not in _OPERATIONS:
        raise InvalidValueError(f"operation {shown(name)}", valid=sorted({*_OPERATIONS.values()}))
    return _OPERATIONS[known]


def torch_datatype(name: str) -> str:
    """Return the type that PyTorch names. Raises ValueError."""
    known = _UNSPELLED.sub("", name.lower().rpartition(":")[2].removeprefix("torch."))
    if known not in _DATATYPES:
        raise InvalidValueError(f"type {shown(name)}", valid=sorted({*_DATATYPES.values()}))
    return _DATATYPES[known]


@dataclass(frozen=True)
class TorchRecord:
    """An operation as PyTorch records it.

    Attributes:
        operation: a result of `torch_operation`.
        in_elements: elements of all its inputs.
        out_elements: elements of all its outputs.
        datatype: a result of `torch_datatype`.
        own: the rank's place in the group.
        size: ranks of the group.
        root: the root, or a message's peer, as a place in the group.
        in_split: shares of the input for each rank of the group; empty if equal.
        out_split: shares of the output from each rank of the group; empty if equal.
    """

    operation: str
    in_elements: int
    out_elements: int
    datatype: str
    own: int
    size: int
    root: int = 0
    in_split: tuple[int, ...] = ()
    out_split: tuple[int, ...] = ()


def call_of_record(record: TorchRecord, communicator: str, place: Place, communicators: Communicators) -> RecordedCall:
    """Return the call, without stream and times. Raises TraceError for splits that do not fit."""
    operation, count = record.operation, record.in_elements
    if operation in ("reducescatter", RECEIVE):
        count = record.out_elements
    if operation == BARRIER:
        # torch.distributed lets NCCL, which has no barrier, all-reduce one element instead.
        return RecordedCall("allreduce", 1, record.datatype, communicator, place)
    root = record.root if operation in (SEND, RECEIVE, GATHER, SCATTER) or _has_root(operation) else 0
    if not 0 <= root < record.size:
        raise TraceError(f"rank {root} of a group of {record.size}", place=place, valid=f"0 to {record.size - 1}")
    if operation in (GATHER, SCATTER, ALL_TO_ALL_V) or record.in_split or record.out_split:
        communicators.count_messages(record.size, place)
    if operation in (GATHER, SCATTER):
        # Only the root of a scatter has all inputs, and only the root of a gather all outputs.
        share = record.in_elements if operation == GATHER else record.out_elements
        call = RecordedCall(EXCHANGE, share, record.datatype, communicator, place, root)
        return rooted_exchange(call, record.own, record.size, to_root=operation == GATHER)
    if operation == ALL_TO_ALL_V or (operation == "alltoall" and (record.in_split or record.out_split)):
        call = RecordedCall(EXCHANGE, 0, record.datatype, communicator, place)
        return replace(
            call,
            sent=_shares(record.in_elements, record.in_split, record.size, place),
            received=_shares(record.out_elements, record.out_split, record.size, place),
        )
    if operation == "alltoall":
        count = -(-count // record.size)
    if count > MAX_COUNT:
        raise TraceError(f"{count} elements", place=place, valid=f"0 to {MAX_COUNT}")
    return RecordedCall(operation, count, record.datatype, communicator, place, root)


def _has_root(operation: str) -> bool:
    return operation in COLLECTIVE_KINDS and COLLECTIVE_KINDS[operation].has_root


def _shares(elements: int, split: tuple[int, ...], size: int, place: Place) -> tuple[int, ...]:
    """Return the elements of each rank; PyTorch splits along the first dimension, so shares are rows."""
    split = split or (1,) * size
    rows = sum(split)
    if len(split) != size:
        raise TraceError(f"{len(split)} shares of a group of {size}", place=place, valid=f"{size}")
    if elements % (rows or 1) or (elements and not rows):
        raise TraceError(f"{elements} elements in {rows} rows", place=place, valid="a multiple of the rows")
    return tuple(share * (elements // (rows or 1)) for share in split)


def record_of(
    name: str, datatype: str, place: Place, *, in_elements: int, out_elements: int, own: int, size: int
) -> TorchRecord | None:
    """Return a record of an operation that PyTorch names, None if it moves nothing. Raises TraceError."""
    with translated(ValueError, TraceError, place=str(place)):
        operation = torch_operation(name)
        if operation is None:
            return None
        known = "float32" if operation == BARRIER else torch_datatype(datatype)
    return TorchRecord(operation, in_elements, out_elements, known, own, size)
