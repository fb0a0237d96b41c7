"""Collectives as a user gives and gets them: arrays in, what every rank's data must be, arrays out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import BadInputError, did_you_mean
from weft.results.run_result import CollectiveResult
from weft.results.verification import result_elements
from weft.topologies import FabricSpec
from weft.traffic.aggregation_format import Operation
from weft.traffic.schedule_nodes import ELEMENT_BYTES, DataType
from weft.traffic.schedules import (
    COLLECTIVES,
    GENERATORS,
    CollectiveSpec,
    check_algorithm,
    suitable_algorithms,
)

MAX_REPETITIONS = 1000
OPERATIONS = {operation.name.lower(): operation for operation in Operation}


@dataclass(frozen=True)
class Repetitions:
    """How often a collective is run and counts, and how often before that it is run and does not (`warmup`).

    Raises BadInputError for numbers out of range.
    """

    count: int = 1
    warmup: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, value, least in (("repetitions", self.count, 1), ("warmup", self.warmup, 0)):
            if not least <= value <= MAX_REPETITIONS:
                raise BadInputError(f"{name}: {value} (valid: {least} to {MAX_REPETITIONS})")

    def draws(self) -> Iterator[tuple[int, int]]:
        """Return every run's number, in order, and what its paths, marks and faults are drawn by.

        The runs that count have the first draws, so that their figures do not depend on the warm-up.
        """
        for number in range(self.warmup + self.count):
            yield number, (number - self.warmup) % (self.warmup + self.count)

    def is_warmup(self, number: int) -> bool:
        """Return whether a run does not count."""
        return number < self.warmup

    def label(self, number: int) -> str:
        """Return what tells a run from the others of its kind; nothing if there is none."""
        if self.is_warmup(number):
            return f", warm-up {number + 1} of {self.warmup}"
        if self.count == 1:
            return ""
        return f", repetition {number - self.warmup + 1} of {self.count}"


@dataclass(frozen=True)
class CollectiveRun:
    """A collective that has run: every rank's result, and the figures.

    Of an all-reduce, a broadcast and (on the root) a reduce a result has the inputs' shape; of an all-gather that of
    all inputs one behind the other; of a reduce-scatter and an all-to-all it is flat.
    """

    buffers: list[NDArray[Any]]
    result: CollectiveResult


def checked_buffers(buffers: Sequence[NDArray[Any]], ranks: int) -> list[NDArray[Any]]:
    """Return the ranks' arrays, contiguous. BadInputError unless they are alike and can be reduced."""
    if len(buffers) != ranks:
        raise BadInputError(f"{len(buffers)} buffers for {ranks} hosts; there must be one for each")
    arrays = [np.ascontiguousarray(each) for each in buffers]
    first = arrays[0]
    if first.dtype not in (np.int32, np.float32):
        raise BadInputError(f"buffers of {first.dtype} cannot be reduced (valid: int32, float32)")
    for rank, array in enumerate(arrays):
        if array.dtype != first.dtype or array.shape != first.shape:
            raise BadInputError(
                f"buffer {rank} is {array.dtype}{array.shape}, buffer 0 {first.dtype}{first.shape}; "
                "they must be alike"
            )
        if not np.all(np.isfinite(array)):
            raise BadInputError(
                f"buffer {rank} holds NaN or infinity, which block floating point cannot carry"
            )
    if first.size == 0:
        raise BadInputError("buffers are empty; there must be at least one element")
    return arrays


def collective_spec(
    topology: FabricSpec,
    collective: str,
    algorithm: str,
    element_count: int,
    dtype: str,
    operation: str = "sum",
    root: int = 0,
) -> CollectiveSpec:
    """Return the parameters of a collective over all hosts; `element_count` is that of every rank's data.

    Raises:
        BadInputError: unknown names, or what the algorithm cannot do.
    """
    if collective not in GENERATORS:
        raise BadInputError(f"unknown collective '{collective}'; {did_you_mean(collective, COLLECTIVES)}")
    algorithms = tuple(GENERATORS[collective])
    if algorithm not in algorithms:
        raise BadInputError(
            f"unknown algorithm '{algorithm}' of {collective}; {did_you_mean(algorithm, algorithms)}"
        )
    if operation not in OPERATIONS:
        raise BadInputError(f"unknown operation '{operation}'; {did_you_mean(operation, tuple(OPERATIONS))}")
    try:
        spec = CollectiveSpec(
            rank_count=len(topology.hosts),
            element_count=element_count,
            dtype=DataType(dtype),
            operation=OPERATIONS[operation],
            plane_rates_bps=tuple(nic.link.rate_bps for nic in topology.hosts[0].nics),
            root=root,
            ranks_per_host=topology.scale_up.ranks_per_host if topology.scale_up else 1,
            rank_stride=topology.scale_up.rank_stride if topology.scale_up else 1,
        )
        check_algorithm(collective, algorithm, spec)
    except ValueError as error:
        raise BadInputError(f"{collective} by {algorithm}: {error}") from None
    return spec


def suitable(topology: FabricSpec, collective: str) -> list[str]:
    """Return the algorithms of a collective that can run on a fabric."""
    first = next(iter(GENERATORS[collective]))
    return suitable_algorithms(collective, collective_spec(topology, collective, first, 0, "int32"))


def data_of_ranks(
    collective: str, spec: CollectiveSpec, arrays: Sequence[NDArray[Any]]
) -> list[NDArray[Any]]:
    """Return every rank's data, flat; of an all-gather that is zeros but for the rank's own chunk."""
    if collective != "allgather":
        return [each.ravel() for each in arrays]
    data = [np.zeros(spec.element_count, each.dtype) for each in arrays]
    for rank, (whole, own) in enumerate(zip(data, arrays, strict=True)):
        chunk = spec.chunk(rank)
        whole[chunk.start : chunk.stop] = own.ravel()
    return data


def results_of_ranks(
    collective: str, spec: CollectiveSpec, data: Sequence[NDArray[Any]]
) -> list[NDArray[Any]]:
    """Return what of every rank's data is its result, flat."""
    elements = [result_elements(collective, spec, rank) for rank in range(spec.rank_count)]
    return [each[where.start : where.stop] for each, where in zip(data, elements, strict=True)]


def shaped_result(collective: str, result: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a rank's result in the shape that `CollectiveRun` promises for inputs of this shape."""
    if collective in ("reducescatter", "alltoall") or not result.size:
        return result
    if collective == "allgather":
        return result.reshape(-1, *shape[1:])
    return result.reshape(shape)


def element_count_of(collective: str, elements_per_input: int, ranks: int) -> int:
    """Return the elements of every rank's data, given those of an input."""
    return elements_per_input * ranks if collective == "allgather" else elements_per_input


def input_elements_of(collective: str, size_bytes: int, ranks: int) -> int:
    """Return the elements of a rank's input for nccl-tests' size, which is that of the larger of input and result.

    As there, a size that does not part evenly among the ranks where it must is rounded down.
    """
    count = size_bytes // ELEMENT_BYTES
    if collective == "allgather":
        return count // ranks
    if collective in ("reducescatter", "alltoall"):
        return count // ranks * ranks
    return count


def nccl_count(collective: str, spec: CollectiveSpec) -> int:
    """Return nccl-tests' count: elements that a rank gives or gets of each other."""
    parted = collective in ("allgather", "reducescatter", "alltoall")
    return spec.element_count // spec.rank_count if parted else spec.element_count
