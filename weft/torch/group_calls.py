"""Calls of a process group: tensors become calls of the fabric, and results become tensors again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch.autograd import Variable

from weft.errors import InvalidValueError
from weft.ranks.calls import Call
from weft.ranks.client import Pending
from weft.torch import tensors
from weft.torch.member import Member
from weft.torch.work import Finish, WeftWork
from weft.traffic.data_types import data_type_of

_OPERATIONS = {
    dist.ReduceOp.RedOpType.SUM: "sum",
    dist.ReduceOp.RedOpType.AVG: "average",
    dist.ReduceOp.RedOpType.MIN: "min",
    dist.ReduceOp.RedOpType.MAX: "max",
    dist.ReduceOp.RedOpType.BAND: "and",
    dist.ReduceOp.RedOpType.BOR: "or",
    dist.ReduceOp.RedOpType.BXOR: "xor",
}
_OF_BITS = ("and", "or", "xor")


def operation_of(opts: Any, inputs: Sequence[Any], title: str) -> str:
    """Return how to reduce. Raises ValueError for what cannot be."""
    kind = dist.ReduceOp.RedOpType.SUM if opts is None else opts.reduceOp.op
    if kind not in _OPERATIONS:
        raise InvalidValueError(f"weft: {title} by {kind.name}", valid=(each.name for each in _OPERATIONS))
    for each in inputs:
        tensors.check(each, title)
        if not _can_be_reduced(each.dtype, _OPERATIONS[kind]):
            raise InvalidValueError(
                f"weft: {title} of {each.dtype} by {kind.name}",
                valid="SUM, AVG, MIN, MAX of integers and floats; "
                "BAND, BOR, BXOR of integers and bool; SUM, MIN, MAX of bool",
            )
    return _OPERATIONS[kind]


def _can_be_reduced(dtype: torch.dtype, operation: str) -> bool:
    if dtype.is_complex or (dtype.is_floating_point and operation in _OF_BITS):
        return False
    return dtype != torch.bool or operation != "average"


@dataclass(frozen=True)
class GroupCalls:
    """Calls of this rank in a group: its rank there, the fabric's rank of each, the group's name."""

    rank: int
    ranks: tuple[int, ...]
    name: str
    member: Member

    def reduce(self, title: str, tensor: Any, operation: str, root: int | None = None) -> Pending:
        """Call a reduction by the fabric, or an all-gather of types that the fabric does not reduce."""
        if tensor.dtype not in tensors.REDUCED_BY_FABRIC:
            return self.moved(title, "allgather", tensor)
        elements = tensors.elements_of(tensor)
        if root is None:
            return self.call(title, "allreduce", elements, operation=operation)
        return self.call(title, "reduce", elements, operation=operation, root=root)

    def put_reduced(self, tensor: Any, result: NDArray[Any], operation: str) -> None:
        """Fill a tensor with what the fabric has reduced, or gathered for ranks to reduce."""
        if tensor.dtype in tensors.REDUCED_BY_FABRIC:
            tensors.put(tensor, result)
        else:
            parts = np.split(result, len(self.ranks))
            own = [tensors.first_of(each, tensor.numel(), tensor.dtype) for each in parts]
            tensor.copy_(tensors.reduced(own, operation).view(tensor.shape))

    def moved(self, title: str, collective: str, tensor: Any, root: int = 0) -> Pending:
        """Call a collective that moves a tensor's bytes."""
        tensors.check(tensor, title)
        return self.call(title, collective, tensors.words_of(tensor), root=root)

    def call(
        self,
        title: str,
        collective: str,
        data: NDArray[Any],
        *,
        operation: str = "sum",
        root: int = 0,
        ranks: tuple[int, ...] | None = None,
        stream: str | None = None,
    ) -> Pending:
        """Call a collective of the fabric, by default in this group, at the rank's present time."""
        dtype = data_type_of(data.dtype)
        assert dtype is not None, "words, or elements that the fabric reduces"
        self.member.compute()
        call = Call(
            stream or self.name,
            ranks or self.ranks,
            collective,
            dtype,
            data.size,
            operation,
            root,
            title,
        )
        return self.member.client.call(call, data)

    def work(self, calls: Sequence[Pending], finish: Finish, outputs: Any) -> WeftWork:
        """Return calls as work that PyTorch can wait for; a backward pass waits for them at its end."""
        work = WeftWork(calls, finish, outputs, self.member.wait_until)
        if torch._C._current_graph_task_id() != -1:
            # DistributedDataParallel waits for futures, when the backward pass is through.
            Variable._execution_engine.queue_callback(partial(work.wait))
        return work

    def together(self, works: Sequence[WeftWork], outputs: Sequence[Any]) -> WeftWork:
        """Return the work that is done when all given works are done."""
        return WeftWork.of_all(works, outputs, self.member.wait_until)

    def chunks(self, tensor: Any) -> list[Any]:
        """Return a tensor's elements cut into one part for each rank. Raises ValueError if they cannot be."""
        count = len(self.ranks)
        if tensor.numel() % count:
            raise InvalidValueError(f"weft: {tensor.numel()} elements for {count} ranks", valid="a multiple")
        if not tensor.is_contiguous():
            raise InvalidValueError("weft: a tensor that is not contiguous", valid="tensor.contiguous()")
        return list(tensor.view(-1).split(tensor.numel() // count)) if tensor.numel() else [tensor] * count
