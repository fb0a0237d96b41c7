"""The process group: PyTorch's collectives as calls that meet the calls of other ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch.distributed as dist
from numpy.typing import NDArray

from weft.errors import InvalidValueError
from weft.torch import tensors
from weft.torch.group_calls import GroupCalls, operation_of
from weft.torch.member import Member, forget, member_of
from weft.torch.settings import Settings
from weft.torch.work import WeftWork


class NamedGroup(dist.ProcessGroup):
    """A process group in Python, by name; the methods have the names of PyTorch's C++ class."""

    def __init__(self, rank: int, count: int, name: str) -> None:
        super().__init__(rank, count)
        self._group_name, self._description = name, ""

    def getBackendName(self) -> str:
        """Return "weft"."""
        return "weft"

    def setGroupName(self, name: str) -> None:
        """Note the name by which PyTorch knows the group."""
        self._group_name = name

    def getGroupName(self) -> str:
        """Return that name."""
        return self._group_name

    def setGroupDesc(self, description: str) -> None:
        """Note what the group is for."""
        self._description = description

    def getGroupDesc(self) -> str:
        """Return that."""
        return self._description


_NO_OPTIONS: Any = None


def created(options: Any, settings: Any) -> WeftProcessGroup:
    """Return a group, as PyTorch asks for it; the first one, of all ranks, connects this process to the fabric."""
    if settings is not None and not isinstance(settings, Settings):
        raise InvalidValueError(f"weft: pg_options is a {type(settings).__name__}", valid="weft.torch.Settings")
    rank, count = options.group_rank, options.group_size
    timeout_s = options.timeout.total_seconds()

    def make() -> Member:
        return Member(rank, count, options.store, settings or Settings.of_environment(), timeout_s)

    member = member_of(make)
    ranks = tuple(options.global_ranks_in_group) or tuple(range(count))
    return WeftProcessGroup(rank, ranks, options.group_id, member)


class WeftProcessGroup(NamedGroup):
    """Ranks of a fabric. Each method returns a `WeftWork`; the fabric carries calls in the order of a group.

    Methods and arguments are as in PyTorch's process groups.
    """

    def __init__(self, rank: int, ranks: tuple[int, ...], name: str, member: Member) -> None:
        super().__init__(rank, len(ranks), name)
        self._calls = GroupCalls(rank, ranks, name, member)

    def shutdown(self) -> None:
        """Leave the fabric, with the group of all ranks."""
        if len(self._calls.ranks) == self._calls.member.client.rank_count:
            forget()

    def abort(self) -> None:
        """Leave the fabric, as `shutdown`."""
        self.shutdown()

    def allreduce(self, inputs: Sequence[Any], opts: Any = _NO_OPTIONS) -> WeftWork:
        """Reduce each tensor over all ranks, in place."""
        operation = operation_of(opts, inputs, "all_reduce")
        calls = [self._calls.reduce("all_reduce", each, operation) for each in inputs if each.numel()]
        outputs = [each for each in inputs if each.numel()]

        def finish(results: list[NDArray[Any]]) -> None:
            for tensor, result in zip(outputs, results, strict=True):
                self._calls.put_reduced(tensor, result, operation)

        return self._calls.work(calls, finish, list(inputs))

    def allreduce_coalesced(self, inputs: Sequence[Any], opts: Any = _NO_OPTIONS) -> WeftWork:
        """Reduce tensors, as `allreduce`."""
        return self.allreduce(inputs, opts)

    def reduce(self, inputs: Sequence[Any], opts: Any) -> WeftWork:
        """Reduce a tensor, at the root alone."""
        (tensor,) = inputs
        operation, root = operation_of(opts, inputs, "reduce"), opts.rootRank
        if not tensor.numel():
            return self._calls.work([], _nothing, list(inputs))
        call = self._calls.reduce("reduce", tensor, operation, root)

        def finish(results: list[NDArray[Any]]) -> None:
            if self._calls.rank == root:
                self._calls.put_reduced(tensor, results[0], operation)

        return self._calls.work([call], finish, list(inputs))

    def broadcast(self, tensors_: Sequence[Any], opts: Any) -> WeftWork:
        """Give the root's tensors to all ranks."""
        moved = [each for each in tensors_ if each.numel()]
        calls = [self._calls.moved("broadcast", "broadcast", each, opts.rootRank) for each in moved]

        def finish(results: list[NDArray[Any]]) -> None:
            if self._calls.rank != opts.rootRank:
                for tensor, words in zip(moved, results, strict=True):
                    tensors.put(tensor, words)

        return self._calls.work(calls, finish, list(tensors_))

    def allgather(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any = None) -> WeftWork:
        """Give every rank's tensor to all ranks."""
        (own,), (into,) = inputs, outputs
        return self._gather("all_gather", own, into, outputs)

    def all_gather_single(self, output: Any, own: Any, opts: Any = None) -> WeftWork:
        """Give every rank's tensor to all ranks, one behind the other."""
        return self._gather("all_gather_into_tensor", own, self._calls.chunks(output), output)

    def all_gather_single_coalesced(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any = None) -> WeftWork:
        """Gather tensors, as `all_gather_single`."""
        pairs = zip(outputs, inputs, strict=True)
        return self._calls.together([self.all_gather_single(output, own, opts) for output, own in pairs], outputs)

    def allgather_coalesced(
        self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any = None
    ) -> WeftWork:
        """Gather tensors; `outputs` are lists of each rank's."""
        works = [
            self._gather("all_gather_coalesced", own, [each[place] for each in outputs], outputs)
            for place, own in enumerate(inputs)
        ]
        return self._calls.together(works, outputs)

    def gather(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any) -> WeftWork:
        """Give every rank's tensor to the root; the fabric carries an all-gather."""
        (own,) = inputs
        return self._gather("gather", own, outputs[0] if self._calls.rank == opts.rootRank else (), outputs)

    def scatter(self, outputs: Sequence[Any], inputs: Sequence[Sequence[Any]], opts: Any) -> WeftWork:
        """Give a tensor of the root's to each rank; the fabric carries a broadcast of all of them."""
        (own,) = outputs
        count = tensors.word_count(own.numel(), own.dtype)
        if not count:
            return self._calls.work([], _nothing, outputs)
        words = np.zeros(len(self._calls.ranks) * count, np.int32)
        if self._calls.rank == opts.rootRank:
            words = np.concatenate([tensors.words_of(each) for each in inputs[0]])
        call = self._calls.call("scatter", "broadcast", words, root=opts.rootRank)

        def finish(results: list[NDArray[Any]]) -> None:
            tensors.put(own, results[0][self._calls.rank * count :])

        return self._calls.work([call], finish, outputs)

    def reduce_scatter(self, outputs: Sequence[Any], inputs: Sequence[Sequence[Any]], opts: Any = None) -> WeftWork:
        """Reduce tensors, each at one rank."""
        (own,), (parts,) = outputs, inputs
        return self._reduce_scatter("reduce_scatter", own, list(parts), opts)

    def reduce_scatter_single(self, output: Any, own: Any, opts: Any = None) -> WeftWork:
        """Reduce a tensor, a chunk of it at each rank."""
        return self._reduce_scatter("reduce_scatter_tensor", output, self._calls.chunks(own), opts)

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any = None
    ) -> WeftWork:
        """Reduce tensors, as `reduce_scatter_single`."""
        pairs = zip(outputs, inputs, strict=True)
        return self._calls.together([self.reduce_scatter_single(output, own, opts) for output, own in pairs], outputs)

    def alltoall(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any = None) -> WeftWork:
        """Give a tensor to each rank. Tensors of different sizes all travel as large as the largest."""
        return self._all_to_all("all_to_all", list(outputs), list(inputs), outputs)

    def all_to_all_single(
        self, output: Any, own: Any, output_sizes: Sequence[int], input_sizes: Sequence[int], opts: Any = None
    ) -> WeftWork:
        """Give rows of a tensor to each rank, as many to each or as `input_sizes` says."""
        into = list(output.split(list(output_sizes))) if output_sizes else self._calls.chunks(output)
        parts = list(own.split(list(input_sizes))) if input_sizes else self._calls.chunks(own)
        return self._all_to_all("all_to_all_single", into, parts, output)

    def barrier(self, opts: Any = None) -> WeftWork:
        """Wait for all ranks; the fabric carries an all-reduce of one number."""
        return self._calls.work([self._calls.call("barrier", "allreduce", np.zeros(1, np.int32))], _nothing, [])

    def send(self, tensors_: Sequence[Any], destination: int, tag: int) -> WeftWork:
        """Send a tensor to a rank of the group."""
        return self._message("send", tensors_, self._calls.rank, destination, tag)

    def recv(self, tensors_: Sequence[Any], source: int, tag: int) -> WeftWork:
        """Receive a tensor from a rank of the group."""
        return self._message("recv", tensors_, source, self._calls.rank, tag)

    def recv_anysource(self, tensors_: Sequence[Any], tag: int) -> WeftWork:
        """Refuse: which rank sends first is no matter of the program alone."""
        raise InvalidValueError("weft: recv from any rank is not supported", valid="with src")

    def _message(self, title: str, tensors_: Sequence[Any], source: int, destination: int, tag: int) -> WeftWork:
        (tensor,) = tensors_
        if source == destination:
            raise InvalidValueError(f"weft: {title} of rank {source} with itself", valid="another rank")
        tensors.check(tensor, title)
        if not tensor.numel():
            return self._calls.work([], _nothing, list(tensors_))
        ranks = self._calls.ranks[source], self._calls.ranks[destination]
        call = self._calls.call(
            title, "broadcast", tensors.words_of(tensor), ranks=ranks, stream=f"{self._calls.name}/{tag}"
        )

        def finish(results: list[NDArray[Any]]) -> None:
            if title == "recv":
                tensors.put(tensor, results[0])

        return self._calls.work([call], finish, list(tensors_))

    def _gather(self, title: str, own: Any, into: Sequence[Any], outputs: Any) -> WeftWork:
        tensors.check(own, title)
        for each in into:
            if each.numel() != own.numel() or each.dtype != own.dtype:
                raise InvalidValueError(
                    f"weft: {title} of {own.numel()} {own.dtype} into {each.numel()} {each.dtype}",
                    valid="the same",
                )
        if not own.numel():
            return self._calls.work([], _nothing, outputs)
        call = self._calls.moved(title, "allgather", own)

        def finish(results: list[NDArray[Any]]) -> None:
            parts = np.split(results[0], len(self._calls.ranks))
            for tensor, words in zip(into, parts, strict=bool(into)):
                tensors.put(tensor, words)

        return self._calls.work([call], finish, outputs)

    def _reduce_scatter(self, title: str, own: Any, parts: list[Any], opts: Any) -> WeftWork:
        operation = operation_of(opts, [own, *parts], title)
        if {(each.numel(), each.dtype) for each in parts} != {(own.numel(), own.dtype)}:
            raise InvalidValueError(f"weft: {title} of tensors of different sizes or types", valid="all alike")
        if not own.numel():
            return self._calls.work([], _nothing, [own])
        if own.dtype in tensors.REDUCED_BY_FABRIC:
            data = np.concatenate([tensors.elements_of(each) for each in parts])
            call = self._calls.call(title, "reducescatter", data, operation=operation)
        else:
            call = self._calls.call(title, "alltoall", np.concatenate([tensors.words_of(each) for each in parts]))

        def finish(results: list[NDArray[Any]]) -> None:
            self._calls.put_reduced(own, results[0], operation)

        return self._calls.work([call], finish, [own])

    def _all_to_all(self, title: str, into: list[Any], parts: list[Any], outputs: Any) -> WeftWork:
        count = len(self._calls.ranks)
        if len(into) != count or len(parts) != count:
            raise InvalidValueError(f"weft: {title} of {len(parts)} into {len(into)} tensors", valid=f"{count} each")
        for each in (*into, *parts):
            tensors.check(each, title)
        words = [tensors.words_of(each) for each in parts]
        # Ranks need not know how much others exchange with each other.
        largest = self._calls.call(
            f"{title}'s sizes", "allreduce", np.array([max(map(len, words))], np.int32), operation="max"
        )
        width = int(largest.wait()[0])
        self._calls.member.wait_until(largest.ended_ps)
        if not width:
            return self._calls.work([], _nothing, outputs)
        call = self._calls.call(title, "alltoall", np.concatenate([_padded(each, width) for each in words]))

        def finish(results: list[NDArray[Any]]) -> None:
            for tensor, part in zip(into, np.split(results[0], count), strict=True):
                tensors.put(tensor, part)

        return self._calls.work([call], finish, outputs)


def _padded(words: NDArray[Any], width: int) -> NDArray[Any]:
    return np.concatenate([words, np.zeros(width - len(words), np.int32)])


def _nothing(_: list[Any]) -> None:
    """Fill nothing."""


_DEPRECATED: dict[str, Callable[..., WeftWork]] = {
    "_allgather_base": WeftProcessGroup.all_gather_single,
    "allgather_into_tensor_coalesced": WeftProcessGroup.all_gather_single_coalesced,
    "_reduce_scatter_base": WeftProcessGroup.reduce_scatter_single,
    "reduce_scatter_tensor_coalesced": WeftProcessGroup.reduce_scatter_single_coalesced,
    "alltoall_base": WeftProcessGroup.all_to_all_single,
}
for _name, _method in _DEPRECATED.items():
    # What PyTorch up to 2.10 calls them.
    setattr(WeftProcessGroup, _name, _method)
