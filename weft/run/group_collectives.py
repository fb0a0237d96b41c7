"""A collective of some of a fabric's ranks: a job of a single operation, with a collective's data and result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import BadInputError
from weft.hints import did_you_mean
from weft.results.choices import AlgorithmChoice
from weft.results.collectives import CollectiveResult, asked_for, collective_result
from weft.results.verification import Verdict, verify
from weft.run.collectives import OPERATIONS, Repetitions, data_of_ranks, data_type, results_of_ranks
from weft.run.task import Ended
from weft.traffic.collectives import Collective
from weft.traffic.jobs import CollectiveCall
from weft.traffic.jobs.placing import PlacedRanks
from weft.traffic.nccl import NcclChoice
from weft.traffic.schedules import CollectiveSpec


def collective_call(
    collective: Collective, elements: int, algorithm: str, dtype: str, operation: str, root: int
) -> CollectiveCall:
    """Return the call of a collective over `elements`. Raises BadInputError for unknown names."""
    if operation not in OPERATIONS:
        raise BadInputError(f"unknown operation '{operation}'; {did_you_mean(operation, tuple(OPERATIONS))}")
    names = [each.name for each in collective.algorithms]
    if algorithm not in names:
        raise BadInputError(f"unknown algorithm '{algorithm}' of {collective.name}; {did_you_mean(algorithm, names)}")
    return CollectiveCall(
        collective.reference,
        elements * data_type(dtype).element_bytes,
        algorithm,
        data_type(dtype),
        OPERATIONS[operation],
        root,
    )


@dataclass(frozen=True)
class GroupCollective:
    """A collective, its call and its ranks; `choice` is the choice of `auto` or `nccl`, if used."""

    collective: Collective
    call: CollectiveCall
    placed: PlacedRanks
    choice: AlgorithmChoice | NcclChoice | None = None

    @property
    def name(self) -> str:
        """Name of its phase."""
        ranks = len(self.placed.ranks)
        return f"{self.collective.name} {self.call.size_bytes} B, {self._asked_for}, {ranks} ranks"

    @property
    def _asked_for(self) -> str:
        return asked_for(self.choice) or self.call.algorithm

    @property
    def _spec(self) -> CollectiveSpec:
        return next(self.placed.collectives(0)).call.spec

    def inputs(self, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the bytes of every rank's data. Raises BadInputError for arrays that do not divide among the ranks."""
        for rank, each in enumerate(arrays):
            if each.size != len(self.collective.input_part(self._spec, rank)):
                ranks = self._spec.rank_count
                raise BadInputError(
                    f"{each.size} elements do not divide among the {ranks} ranks of a group",
                    place=self.collective.name,
                    valid=f"a multiple of {ranks}",
                )
        data = data_of_ranks(self.collective, self._spec, arrays)
        return [np.ascontiguousarray(each).view(np.uint8) for each in data]

    def verify(self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> Verdict:
        """Return how the ranks' bytes after a run compare with NumPy's results."""
        chosen = self.collective.algorithm(self.call.algorithm).on(self._spec)
        return verify(self.collective, chosen, self._spec, self._elements(inputs), self._results(outputs))

    def arrays(self, shape: tuple[int, ...], outputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the results in the form for users, given the inputs' shape."""
        return [self.collective.shaped(each, shape) for each in self._results(outputs)]

    def result(self, ended: Sequence[Ended], repetitions: Repetitions, data: str) -> CollectiveResult:
        """Return the figures of all runs together."""
        counting = [each for number, each in enumerate(ended) if not repetitions.is_warmup(number)]
        return collective_result(
            self.collective,
            self._asked_for,
            self._spec,
            [each.outcome.duration_ps for each in counting],
            [each.counted for each in counting],
            [each.verdict for each in ended if each.verdict is not None],
            warmup=repetitions.warmup,
            data=data,
            choice=self.choice,
        )

    def _results(self, outputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return results_of_ranks(self.collective, self._spec, self._elements(outputs))

    def _elements(self, data: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return [each[: self._spec.size_bytes].view(self._spec.dtype.storage) for each in data]
