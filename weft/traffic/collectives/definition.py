"""The definition of a collective: its buffers, the results that ranks must hold, its figures and its algorithms."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.errors import InvalidValueError
from weft.quantities.arrays import Integers
from weft.quantities.units import shown
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives.conditions import scale_up_domain
from weft.traffic.costs import CostOf, plain_cost
from weft.traffic.data_types import DataType
from weft.traffic.lane_schedule import LaneSchedule, Schedule
from weft.traffic.schedules.spec import CollectiveSpec

Array = NDArray[np.generic]
Generator = Callable[[CollectiveSpec, int], Schedule]
"""Returns a rank's schedule. All ranks derive their own alike, without communication."""


AVERAGE_NEEDS_LANES = "an average"
"""For `lanes_for` of `Collective.check`."""


def _any(_: CollectiveSpec) -> str:
    return ""


class SaysIfScaleUp(Protocol):
    """A fabric, or what is described of one."""

    @property
    def is_scale_up(self) -> bool:
        """Whether the fabric is a scale-up domain."""


@dataclass(frozen=True)
class Algorithm:
    """A way to run a collective.

    Args:
        name: its name in scenarios, commands and results.
        generator: makes every rank's schedule.
        unsuitable: returns why the algorithm cannot do what a spec asks and what is valid, "" if it can.
        in_network: whether switches reduce. The hosts then join an aggregation job before the run, and the errors of
            float32 sums are those of block floating point.
        by_rail: whether switches reduce separately for the ranks of the same number on all hosts.
        has_lanes: whether its schedules are lanes, as averages and training steps need, rather than graphs.
        cost: predicts its time for a spec over given links, by which `auto` chooses.
        inside_hosts: takes its place on all fabrics that are no scale-up domains.
        general_name: the algorithm that does the same under another name, on fabrics that this one does not suit, too;
            "" if there is none.
    """

    name: str
    generator: Generator
    unsuitable: Callable[[CollectiveSpec], str] = _any
    in_network: bool = False
    by_rail: bool = False
    has_lanes: bool = True
    cost: CostOf = plain_cost
    general_name: str = ""
    inside_hosts: Algorithm | None = None

    def on_scale_up(self, inside_hosts: Algorithm) -> Algorithm:
        """Return the same algorithm under the name that it has on scale-up domains alone.

        `inside_hosts` has that name on other fabrics, where it is by the switches inside hosts.
        """
        return replace(
            self,
            name=inside_hosts.name,
            unsuitable=scale_up_domain,
            general_name=self.name,
            inside_hosts=inside_hosts,
        )

    def on(self, fabric: SaysIfScaleUp | None) -> Algorithm:
        """Return what the algorithm is on a fabric, or a spec's fabric; None: where switches of fabrics reduce."""
        return self if self.inside_hosts is None or fabric is None or fabric.is_scale_up else self.inside_hosts


class Collective(abc.ABC):
    """A kind of collective. Ranks work on data of `CollectiveSpec.element_count` elements each, in place.

    Users write classes of their own, which scenarios and `Fabric.collective` name as path/to/file.py:Class.
    """

    name: ClassVar[str]
    """Its name in scenarios, commands and results."""
    title: ClassVar[str] = ""
    """Its name in headings; by default `name`."""
    algorithms: ClassVar[tuple[Algorithm, ...]]
    """The first one runs on any fabric."""
    reduces: ClassVar[bool] = False
    """Whether elements of different ranks are combined by an operation, rather than only moved."""
    has_root: ClassVar[bool] = False
    """Whether one rank, the spec's root, is unlike the others."""
    is_parted: ClassVar[bool] = False
    """Whether each rank contributes or receives a part of its own, `CollectiveSpec.chunk`, of at least one element."""
    has_size: ClassVar[bool] = True
    """Whether it works on as much data as users ask for."""
    is_same_on_all_ranks: ClassVar[bool] = False
    """Whether all ranks end with the same result, to the bit."""
    reference: str = ""
    """The name by which another process finds it: `name`, with `:` and parameters behind it where it has some, or a
    user's path/to/file.py:Class."""

    def with_parameters(self, parameters: str) -> Collective:
        """Return the collective with parameters that a reference has behind its name. Raises ValueError."""
        raise InvalidValueError(f"{self.name} has no parameters: {shown(parameters)}", valid=self.name)

    @abc.abstractmethod
    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return the terms from which NumPy computes a rank's data: arrays of `spec.element_count` elements each.

        Combined element by element with the spec's operation they are the rank's expected data; for a
        collective that only moves data, the one term is that data. Only `result_part` of it counts. Where several
        ranks have the same terms, return the same object: it is reduced once.

        Args:
            spec: what was run.
            inputs: every rank's data beforehand, in which `input_part` counts.
            rank: the rank of the data to return.
        """

    @abc.abstractmethod
    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return busbw / algbw, which makes figures comparable with the links' rate.

        It is the share of the data that the busiest link must carry (nccl-tests, doc/PERFORMANCE.md).
        """

    def pair_bytes(self, spec: CollectiveSpec) -> Integers | None:
        """Return the bytes from each rank to each if these are what the collective is about; None for others."""
        return None

    def input_part(self, spec: CollectiveSpec, rank: int) -> range:
        """Return which elements of a rank's data are its input."""
        return range(spec.element_count)

    def result_part(self, spec: CollectiveSpec, rank: int) -> range:
        """Return which elements of a rank's data are its result."""
        return range(spec.element_count)

    def element_count(self, input_elements: int, ranks: int) -> int:
        """Return the elements of every rank's data, given an input's."""
        return input_elements

    def input_elements(self, size_elements: int, ranks: int) -> int:
        """Return the elements of a rank's input for nccl-tests' size: of input or result, whichever is larger.

        The size is in elements, too. As in nccl-tests, a size to be split evenly among the ranks is rounded down.
        """
        return size_elements // ranks * ranks if self.is_parted else size_elements

    def nccl_count(self, spec: CollectiveSpec) -> int:
        """Return nccl-tests' count: elements that a rank sends to or receives from each other rank."""
        return spec.element_count // spec.rank_count if self.is_parted else spec.element_count

    def least_elements(self, ranks: int) -> int:
        """Return the smallest of nccl-tests' sizes, in elements, that leaves no rank without anything to do."""
        return ranks if self.is_parted else 1

    def shaped(self, result: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return a rank's flat result in the shape that users get for inputs of `shape`."""
        return result if self.is_parted or not result.size else result.reshape(shape)

    def unsuitable(self, spec: CollectiveSpec) -> str:
        """Return why no algorithm can do what a spec asks and what is valid, "" if one may."""
        return ""

    def algorithm(self, name: str) -> Algorithm:
        """Return one of the algorithms by name. Raises ValueError."""
        for each in self.algorithms:
            if each.name == name:
                return each
        valid = ", ".join(each.name for each in self.algorithms)
        raise InvalidValueError(f"{self.name} has no algorithm {name!r}", valid=valid)

    def check(self, algorithm: str, spec: CollectiveSpec, lanes_for: str = "") -> Algorithm:
        """Return an algorithm by name.

        `lanes_for` names what needs lanes, such as "a training step". Raises ValueError if there is no such algorithm,
        or it cannot do what the spec asks.
        """
        found = self.algorithm(algorithm).on(spec)
        why_not = self._objection(found, spec, lanes_for)
        if why_not:
            raise ValueError(why_not)
        return found

    def suitable(self, spec: CollectiveSpec, lanes_for: str = "") -> list[str]:
        """Return the names of the algorithms that can do what the spec asks, each algorithm once.

        `lanes_for`: as of `check`.
        """
        found = [each for known in self.algorithms if not self._objection(each := known.on(spec), spec, lanes_for)]
        general = {each.general_name for each in found}
        return [each.name for each in found if each.name not in general]

    def _objection(self, algorithm: Algorithm, spec: CollectiveSpec, lanes_for: str) -> str:
        return (
            self.objection_to_operation(spec.operation, spec.dtype)
            or self._objection_to_graph(algorithm, lanes_for or (AVERAGE_NEEDS_LANES if spec.divisor > 1 else ""))
            or algorithm.unsuitable(spec)
            or self.unsuitable(spec)
        )

    def _objection_to_graph(self, algorithm: Algorithm, lanes_for: str) -> str:
        if algorithm.has_lanes or not lanes_for:
            return ""
        valid = ", ".join(each.name for each in self.algorithms if each.has_lanes)
        return f"{algorithm.name} has no lanes, which {lanes_for} needs (valid: {valid})"

    def objection_to_operation(self, operation: Operation, dtype: DataType) -> str:
        """Return why elements of a type cannot be combined so, "" if they can."""
        name = operation.name.lower()
        if operation is Operation.AVERAGE and not self.reduces:
            return f"{name} of what is only moved (valid: sum)"
        if operation.is_bitwise and dtype.is_float:
            return f"{name} of {dtype} (valid: sum, max, min, average; and, or, xor are of integers)"
        return ""

    def schedule(self, algorithm: str, spec: CollectiveSpec, rank: int) -> Schedule:
        """Return a rank's schedule.

        Raises ValueError for an unknown algorithm, an unknown rank, and what the algorithm cannot do.
        """
        found = self.check(algorithm, spec)
        if not 0 <= rank < spec.rank_count:
            raise InvalidValueError(f"rank {rank}", valid=f"0 to {spec.rank_count - 1}")
        schedule = found.generator(spec, rank)
        if spec.divisor > 1 and not isinstance(schedule, LaneSchedule):
            raise InvalidValueError(f"{algorithm} has no lanes, which an average needs", valid="sum, max, min")
        return schedule
