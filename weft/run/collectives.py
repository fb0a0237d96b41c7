"""Converts between users' arrays and every rank's data in a collective, and checks arrays and names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import BadInputError, translated
from weft.hints import did_you_mean
from weft.quantities.definitions import MESSAGE_SIZE
from weft.quantities.units import shown
from weft.results.collectives import CollectiveResult
from weft.topologies import FabricSpec
from weft.traffic.aggregation_format import Operation
from weft.traffic.class_reference import absolute_reference, is_class_reference
from weft.traffic.clear_to_send import ClearToSend
from weft.traffic.collectives import COLLECTIVE_KINDS, Collective, collective_named
from weft.traffic.data_types import DataType, data_type_of, elements_of, numbers
from weft.traffic.protocols import NONE
from weft.traffic.schedules import CollectiveSpec

MAX_REPETITIONS = 1000
OPERATIONS = {operation.name.lower(): operation for operation in Operation}


@dataclass(frozen=True)
class Repetitions:
    """How often a collective is run and counted, and how often it is run before without counting (`warmup`).

    Raises BadInputError for numbers out of range.
    """

    count: int = 1
    warmup: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, value, least in (("repetitions", self.count, 1), ("warmup", self.warmup, 0)):
            if not least <= value <= MAX_REPETITIONS:
                raise BadInputError(f"{value}", place=name, valid=f"{least} to {MAX_REPETITIONS}")

    @property
    def is_one(self) -> bool:
        """Whether there is one run in total."""
        return self.warmup + self.count == 1

    def draws(self) -> Iterator[tuple[int, int]]:
        """Yield every run's number, in order, and the number that seeds its paths, marks and faults.

        Counted runs have the first of these, so that their figures do not depend on the warm-up.
        """
        for number in range(self.warmup + self.count):
            yield number, (number - self.warmup) % (self.warmup + self.count)

    def is_warmup(self, number: int) -> bool:
        """Return whether a run is a warm-up."""
        return number < self.warmup

    def label(self, number: int) -> str:
        """Return a label that distinguishes a run from other warm-ups or repetitions; "" for a single repetition."""
        if self.is_warmup(number):
            return f", warm-up {number + 1} of {self.warmup}"
        if self.count == 1:
            return ""
        return f", repetition {number - self.warmup + 1} of {self.count}"


@dataclass(frozen=True, eq=False)
class CollectiveRequest:
    """A collective to run.

    Args:
        collective: one of `weft.traffic.collectives.COLLECTIVE_KINDS`, such as "allreduce", or
            path/to/file.py:Class, a `weft.Collective` of yours, or path/to/file.xml:COLLECTIVE, an algorithm of MSCCL.
        inputs: every rank's input, all of one shape and of one of the types in `weft.traffic.data_types`, of which
            uint16 holds bfloat16; they are not changed. A reduce-scatter's and an all-to-all's are cut into a chunk
            for each host (`CollectiveSpec.chunk`). Or nccl-tests' size in bytes: packets then carry lengths in place of
            data, and nothing is verified. Reductions in the network carry data all the same, zeros.
        algorithm: one of the collective's, see `weft.traffic.collectives`; "auto": the one that is predicted to be the
            fastest (docs/traffic.md).
        dtype: type of the elements of lengths; arrays have their own.
        operation: reduces the elements, if the collective reduces: "sum", "average", "max" or "min"; for integers
            "and", "or" or "xor", too.
        root: rank of a broadcast's or a reduce's root.
        ranks: the fabric's ranks that take part, with an input each; by default all.
        tenant: pays for a reduction in the network with its quotas, a name of the option `tenants`; "" for nobody.
        data: describes the inputs in the result's table.
        repetitions: how often it runs. Times are the runs' mean, least and largest; buffers are the last run's.
        warmup: runs before these, which are verified but not counted.
        protocol: NCCL's in which messages travel: "simple", "ll", "ll128", or "auto", by size; "" for none.
        clear_to_send: how much receivers clear; None: senders do not wait for them.
    """

    collective: str
    inputs: Sequence[NDArray[Any]] | int
    algorithm: str = "ring"
    _: KW_ONLY
    dtype: str = "float32"
    operation: str = "sum"
    root: int = 0
    ranks: Sequence[int] | None = None
    tenant: str = ""
    data: str = "given"
    repetitions: int = 1
    warmup: int = 0
    protocol: str = NONE
    clear_to_send: ClearToSend | None = None

    @property
    def buffers(self) -> Sequence[NDArray[Any]] | None:
        """The inputs; None if a size stands for them."""
        return self.inputs if isinstance(self.inputs, Sequence | np.ndarray) else None

    @property
    def size_bytes(self) -> int:
        """The size that stands for the inputs. Raises BadInputError if it is not one, or out of range."""
        size_bytes = self.inputs
        if not isinstance(size_bytes, int | np.integer):
            raise BadInputError(
                f"inputs: {shown(size_bytes)}", valid="every rank's array, or a size in bytes such as 65536"
            )
        MESSAGE_SIZE.check(int(size_bytes), "a collective's size")
        return int(size_bytes)


@dataclass(frozen=True)
class CollectiveRun:
    """A finished collective: every rank's result, and the figures.

    A result has the inputs' shape; after an all-gather the shape of all inputs concatenated; after a reduce-scatter or
    all-to-all it is flat (`Collective.shaped`). There are none if lengths stood for the data.
    """

    buffers: list[NDArray[Any]]
    result: CollectiveResult


def data_type(name: str) -> DataType:
    """Return an element type by its name. Raises BadInputError for unknown names."""
    if name not in list(DataType):
        raise BadInputError(f"unknown data type '{name}'; {did_you_mean(name, tuple(DataType))}")
    return DataType(name)


def checked_buffers(buffers: Sequence[NDArray[Any]], ranks: int) -> tuple[list[NDArray[Any]], DataType]:
    """Return the ranks' arrays, made contiguous, and their element type.

    Raises:
        BadInputError: shapes or types differ, or elements cannot be reduced.
    """
    if len(buffers) != ranks:
        raise BadInputError(f"{len(buffers)} buffers for {ranks} hosts; there must be one for each")
    arrays = [np.ascontiguousarray(each) for each in buffers]
    first = arrays[0]
    dtype = data_type_of(first.dtype)
    if dtype is None:
        valid = ", ".join(DataType)
        raise BadInputError(
            f"buffers of {first.dtype} cannot be reduced", valid=f"{valid}; uint16 holds the bits of bfloat16"
        )
    for rank, array in enumerate(arrays):
        if array.dtype != first.dtype or array.shape != first.shape:
            raise BadInputError(
                f"buffer {rank} is {array.dtype}{array.shape}, buffer 0 {first.dtype}{first.shape}; they must be alike"
            )
        if dtype.is_float and not np.all(np.isfinite(numbers(array.view(dtype.storage), dtype))):
            raise BadInputError(f"buffer {rank} holds NaN or infinity, which block floating point cannot carry")
    if first.size == 0:
        raise BadInputError("buffers are empty; there must be at least one element")
    return [array.view(dtype.storage) for array in arrays], dtype


def found_collective(name: str) -> Collective:
    """Return a collective by its name, or by a user's path/to/file.py:Class below the working directory.

    Raises:
        BadInputError: unknown name. ExtensionError: the user's class cannot be used.
    """
    if is_class_reference(name):
        return collective_named(absolute_reference(name, Path()))
    if name.partition(":")[0] not in COLLECTIVE_KINDS:
        raise BadInputError(f"unknown collective '{name}'; {did_you_mean(name, COLLECTIVE_KINDS)}")
    with translated(ValueError, BadInputError):
        return collective_named(name)


def collective_spec(
    topology: FabricSpec,
    collective: Collective,
    algorithm: str,
    element_count: int,
    dtype: str,
    operation: str = "sum",
    root: int = 0,
    lanes_for: str = "",
) -> CollectiveSpec:
    """Return the parameters of a collective over all hosts; `element_count` counts each rank's data.

    `lanes_for` as of `Collective.check`.

    Raises:
        BadInputError: unknown names, or parameters that the algorithm does not support.
    """
    algorithms = [each.name for each in collective.algorithms]
    if algorithm not in algorithms:
        raise BadInputError(
            f"unknown algorithm '{algorithm}' of {collective.name}; {did_you_mean(algorithm, algorithms)}"
        )
    if operation not in OPERATIONS:
        raise BadInputError(f"unknown operation '{operation}'; {did_you_mean(operation, tuple(OPERATIONS))}")
    try:
        spec = CollectiveSpec(
            rank_count=topology.rank_count,
            element_count=element_count,
            dtype=data_type(dtype),
            operation=OPERATIONS[operation],
            plane_rates_bps=topology.nic_rates_bps(topology.training_planes),
            root=root,
            ranks_per_host=topology.ranks_per_host,
            rank_stride=topology.scale_up.rank_stride if topology.scale_up else 1,
            is_scale_up=topology.is_scale_up,
            host_reductions=topology.host_reductions,
        )
        collective.check(algorithm, spec, lanes_for)
    except ValueError as error:
        raise BadInputError(error, place=f"{collective.name} by {algorithm}") from None
    return spec


def data_of_ranks(collective: Collective, spec: CollectiveSpec, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return every rank's data, flat: its input in its place, and zeros elsewhere."""
    parts = [collective.input_part(spec, rank) for rank in range(spec.rank_count)]
    if all(len(part) == spec.element_count for part in parts):
        return [each.ravel() for each in arrays]
    data = [np.zeros(spec.element_count, each.dtype) for each in arrays]
    for whole, own, part in zip(data, arrays, parts, strict=True):
        whole[part.start : part.stop] = own.ravel()
    return data


def results_of_ranks(collective: Collective, spec: CollectiveSpec, data: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the part of every rank's data that is its result, flat."""
    parts = [collective.result_part(spec, rank) for rank in range(spec.rank_count)]
    return [each[part.start : part.stop] for each, part in zip(data, parts, strict=True)]


def random_elements(generator: np.random.Generator, dtype: DataType, count: int) -> NDArray[Any]:
    """Return random elements: integers over the whole range, or normally distributed floats."""
    if dtype.is_float:
        return elements_of(generator.standard_normal(count), dtype)
    half = 2 ** (8 * dtype.element_bytes - 1)
    return generator.integers(-half, half, count, dtype=np.int64).astype(dtype.storage)
