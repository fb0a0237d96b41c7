"""Dispatch of a mixture of experts: an all-to-all with sizes that depend on the experts that tokens choose."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from weft.traffic.collectives.conditions import one_rank_a_host
from weft.traffic.collectives.definition import Algorithm, Array, Collective
from weft.traffic.expert_choice import ExpertChoice
from weft.traffic.schedules.expert_dispatch import direct_dispatch, hierarchical_dispatch
from weft.traffic.schedules.spec import CollectiveSpec


def _algorithms(choice: ExpertChoice) -> tuple[Algorithm, ...]:
    return (
        Algorithm("direct", partial(direct_dispatch, choice), has_lanes=False),
        Algorithm("hierarchical", partial(hierarchical_dispatch, choice), one_rank_a_host, has_lanes=False),
    )


class MoeDispatch(Collective):
    """Every rank sends its tokens to the ranks of the experts that they have chosen.

    A rank's input is its tokens; its data have room for all that it accepts, `ExpertChoice.data_per_input` times as
    much. A subclass with another `choice` is another collective.
    """

    name = "moe_dispatch"
    title = "dispatch to experts"
    choice: ClassVar[ExpertChoice] = ExpertChoice()
    """How tokens choose."""
    algorithms = _algorithms(choice)

    def __init_subclass__(cls) -> None:
        """Have the algorithms of a subclass choose as it says."""
        super().__init_subclass__()
        cls.algorithms = _algorithms(cls.choice)

    def terms(self, spec: CollectiveSpec, inputs: Sequence[Array], rank: int) -> Sequence[Array]:
        """Return the tokens that come to the rank, and zeros."""
        dispatch = self.choice.dispatch(spec)
        result = np.zeros(spec.element_count, inputs[rank].dtype)
        for landing in dispatch.received[rank]:
            token = dispatch.tokens[landing.token]
            result[landing.begin : landing.begin + len(token)] = inputs[landing.source][token.start : token.stop]
        return [result]

    def bus_bandwidth_factor(self, ranks: int) -> float:
        """Return (n-1)/n of what a rank sends on average, over the size of its data."""
        return (ranks - 1) / ranks / self.choice.capacity

    def input_part(self, spec: CollectiveSpec, rank: int) -> range:
        """Return the tokens, which lie in front."""
        return range(spec.element_count // self.choice.data_per_input)

    def result_part(self, spec: CollectiveSpec, rank: int) -> range:
        """Return what comes to the rank."""
        return self.choice.dispatch(spec).result(rank)

    def element_count(self, input_elements: int, ranks: int) -> int:
        """Return the room for all that a rank accepts."""
        return input_elements * self.choice.data_per_input

    def input_elements(self, size_elements: int, ranks: int) -> int:
        """Return the elements of the tokens that have data of this size, rounded down."""
        return size_elements // self.choice.data_per_input

    def least_elements(self, ranks: int) -> int:
        """Return the elements of the data of a token of one element."""
        return self.choice.data_per_input

    def shaped(self, result: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return a rank's result as it is, flat."""
        return result

    def unsuitable(self, spec: CollectiveSpec) -> str:
        """Return an error if the data are no whole multiple of an input; "" if they are."""
        if spec.element_count % self.choice.data_per_input == 0:
            return ""
        return (
            f"{spec.element_count} elements (valid: a multiple of {self.choice.data_per_input}, the capacity of an "
            "expert over a rank's tokens)"
        )
