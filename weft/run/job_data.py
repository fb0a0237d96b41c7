"""Random data for a job's collectives, compared with NumPy afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.results.verification import Verdict, verify
from weft.run.collectives import random_elements, results_of_ranks
from weft.traffic.collectives import collective_named
from weft.traffic.jobs.placing import PlacedRanks, RankCollective


class JobData:
    """Elements drawn from a seed for every collective of a job.

    `inputs` are the bytes of each rank: the data of all its collectives, concatenated.
    """

    def __init__(self, placed: PlacedRanks, seed: int) -> None:
        # By group and number: each rank's part, in order of the group's ranks.
        self._collectives: dict[tuple[int, int], dict[int, tuple[int, RankCollective]]] = {}
        for rank in range(len(placed.ranks)):
            for each in placed.collectives(rank):
                members = self._collectives.setdefault((each.group, each.number), {})
                members[each.group_rank] = rank, each
        self.inputs = [np.zeros(placed.data_bytes(rank), np.uint8) for rank in range(len(placed.ranks))]
        for (group, number), members in self._collectives.items():
            generator = np.random.default_rng([seed, group, number])
            for rank, each in (members[place] for place in sorted(members)):
                spec = each.call.spec
                elements = random_elements(generator, spec.dtype, spec.element_count)
                _elements_of(self.inputs[rank], each)[:] = elements

    def verify(self, outputs: Sequence[NDArray[Any]]) -> Verdict:
        """Return how all collectives' results compare with NumPy's, with the errors of the worst one."""
        verdicts = [
            self._verdict(members, outputs)
            for members in self._collectives.values()
            if members[0][1].call.spec.element_count
        ]
        if not verdicts:
            return Verdict(wrong=0, identical=True, largest_error=0.0, bound=0.0)
        return replace(
            max(verdicts, key=lambda verdict: verdict.largest_error),
            wrong=sum(verdict.wrong for verdict in verdicts),
            identical=all(verdict.identical for verdict in verdicts),
        )

    def _verdict(self, members: dict[int, tuple[int, RankCollective]], outputs: Sequence[NDArray[Any]]) -> Verdict:
        call = members[0][1].call
        collective = collective_named(call.collective)
        inputs, results = (
            [_elements_of(data[rank], each) for rank, each in (members[place] for place in sorted(members))]
            for data in (self.inputs, outputs)
        )
        return verify(
            collective,
            collective.algorithm(call.algorithm).on(call.spec),
            call.spec,
            inputs,
            results_of_ranks(collective, call.spec, results),
        )


def _elements_of(data: NDArray[Any], collective: RankCollective) -> NDArray[Any]:
    spec = collective.call.spec
    first = collective.offset_bytes
    return data[first : first + spec.size_bytes].view(spec.dtype.storage)
