"""Chooses a collective's algorithm by size: runs a short probe of each candidate and takes the fastest.

An algorithm's file has a cost model of latency and transfer on idle links (`weft.traffic.costs`), which only selects
the candidates. It ignores links shared by several ranks' messages, as by a ring's neighbours over a torus, and
contention multiplies only part of the time. So predictions use measured probes: of the size itself, or interpolated
linearly between the nearest smaller and the nearest larger size.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.clocks.lab import Progress
from weft.errors import BadInputError, CheckFailedError
from weft.quantities.units import PS_PER_US
from weft.results.choices import AlgorithmChoice
from weft.run.algorithms import objections, placed_group
from weft.run.collectives import collective_spec, data_type
from weft.run.fabric_links import fabric_links
from weft.run.group_collectives import collective_call
from weft.scenario import FabricOptions
from weft.topologies import FabricSpec
from weft.traffic.collectives import Collective
from weft.traffic.costs import Cost
from weft.traffic.jobs import CollectiveCall
from weft.traffic.schedules import CollectiveSpec

_HOPELESS = 4.0
"""Algorithms predicted to take this many times as long as the fastest are not probed, except the second best."""
_FIRST_PROBE_BYTES, _PROBE_FACTOR = 64, 2
"""Sizes of probes. If a time is constant up to some size and proportional beyond, interpolation between two probes
overestimates it: by at most 17 % with a factor of 2, 33 % with 4."""
_PROBE_BYTES = {"virtual": 128 << 20, "real": 1 << 19}
"""Most data of a probe over all ranks, in bytes, by clock."""


@dataclass(frozen=True)
class Question:
    """A collective and the parameters that its time depends on, except the size.

    `ranks` is a group of the fabric's ranks; None: all. `tenant` is charged for in-network reductions, "" for none.
    `lanes_for` as of `Collective.check`.
    """

    collective: Collective
    dtype: str
    operation: str
    root: int
    ranks: tuple[int, ...] | None = None
    tenant: str = ""
    lanes_for: str = ""

    def rank_count(self, topology: FabricSpec) -> int:
        """Return how many ranks take part."""
        return topology.rank_count if self.ranks is None else len(self.ranks)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return data_type(self.dtype).element_bytes

    def element_count(self, size_bytes: int, topology: FabricSpec) -> int:
        """Return the elements of each rank's data for nccl-tests' size; 0 without ranks, or if they share too few."""
        ranks = self.rank_count(topology)
        if not ranks:
            return 0
        return self.collective.element_count(
            self.collective.input_elements(size_bytes // self.element_bytes, ranks), ranks
        )

    def call(self, algorithm: str, element_count: int) -> CollectiveCall:
        """Return the call in a group; errors as `collective_call`."""
        return collective_call(self.collective, element_count, algorithm, self.dtype, self.operation, self.root)

    def spec(self, topology: FabricSpec, algorithm: str, element_count: int) -> CollectiveSpec:
        """Return the parameters over all hosts; errors as `collective_spec`."""
        return collective_spec(
            topology,
            self.collective,
            algorithm,
            element_count,
            self.dtype,
            self.operation,
            self.root,
            self.lanes_for,
        )


Probe = Callable[[Question, str, int], int]
"""Runs a collective of a size with an algorithm; returns its time in ps. Raises CheckFailedError."""


@dataclass(frozen=True)
class Point:
    """A probe: number of elements and time measured."""

    element_count: int
    measured_ps: int


@dataclass(frozen=True)
class _Prediction:
    algorithm: str
    cost: Cost
    """Measured time, divided into parts as in the model."""

    def __str__(self) -> str:
        cost = self.cost
        return (
            f"{self.algorithm} {cost.total_ps / PS_PER_US:.1f} µs ({cost.steps} steps "
            f"{cost.latency_ps / PS_PER_US:.1f}, transfer {cost.transfer_ps / PS_PER_US:.1f})"
        )


class Tuner:
    """Chooses algorithms for a fabric; each probe runs once, when first needed."""

    def __init__(
        self,
        topology: FabricSpec,
        options: FabricOptions,
        probe: Probe,
        progress: Progress,
        aggregates: Callable[[], bool] = lambda: True,
    ) -> None:
        # `aggregates` returns whether the switches' programs aggregate, once these are known.
        self._aggregates = aggregates
        self._topology, self._options = topology, options
        self._probe, self._progress = probe, progress
        self._links = fabric_links(topology, options)
        self._probed: dict[tuple[object, ...], int | None] = {}
        self._suitable: dict[tuple[object, ...], list[str]] = {}

    def choose(self, question: Question, element_count: int) -> AlgorithmChoice:
        """Return the algorithm predicted to be fastest for data of `element_count` elements.

        Raises BadInputError if none can run, CheckFailedError if no probe ended.
        """
        guesses = self._guesses(question, element_count)
        by_guess = sorted(guesses, key=lambda name: guesses[name].total_ps)
        most_ps = _HOPELESS * guesses[by_guess[0]].total_ps
        # The second always: a choice says what it is better than.
        candidates = by_guess[:2] + [name for name in by_guess[2:] if guesses[name].total_ps <= most_ps]
        found = [self._fitted(question, name, element_count, guesses[name]) for name in candidates]
        ranked = sorted(filter(None, found), key=lambda each: each.cost.total_ps)
        if not ranked:
            raise CheckFailedError(f"no probe of {question.collective.name} has ended, so auto cannot choose")
        best, *others = ranked
        second = others[0] if others else None
        choice = AlgorithmChoice(
            best.algorithm,
            round(best.cost.total_ps),
            second.algorithm if second else None,
            round(second.cost.total_ps) if second else None,
            "; ".join(map(str, ranked[:2])),
        )
        self._progress(f"auto: {choice.algorithm} for {element_count * question.element_bytes} B: {choice.reason}")
        return choice

    def _guesses(self, question: Question, element_count: int) -> dict[str, Cost]:
        """Return the model's cost of each algorithm that can run."""
        guesses, reasons = {}, []
        for name in self._algorithms(question):
            try:
                guesses[name] = self._cost(question, name, element_count)
            except BadInputError as error:
                reasons.append(str(error))
        if not guesses:
            raise BadInputError(f"auto: no algorithm of {question.collective.name} can run: {'; '.join(reasons)}")
        return guesses

    def _algorithms(self, question: Question) -> list[str]:
        collective = question.collective
        key = collective.reference, question.ranks, question.lanes_for
        if key not in self._suitable:
            found = objections(self._topology, collective, question.ranks, question.lanes_for)
            self._suitable[key] = [
                name
                for name, objection in found.items()
                if not objection
                and not (collective.algorithm(name).on(self._topology).in_network and not self._may_reduce)
            ]
        return self._suitable[key]

    @property
    def _may_reduce(self) -> bool:
        return self._aggregates() and not self._options.fidelity.has_segments

    def _cost(self, question: Question, algorithm: str, element_count: int) -> Cost:
        spec = self._spec(question, algorithm, element_count)
        return question.collective.algorithm(algorithm).on(spec).cost(spec, self._links)

    def _spec(self, question: Question, algorithm: str, element_count: int) -> CollectiveSpec:
        if question.ranks is not None:
            call = question.call(algorithm, element_count)
            return placed_group(call, question.ranks, self._topology).spec
        return question.spec(self._topology, algorithm, element_count)

    def _fitted(self, question: Question, algorithm: str, element_count: int, guess: Cost) -> _Prediction | None:
        """Return the prediction for an algorithm; None if its probes have failed."""
        points = []
        for probe_bytes in self._probe_sizes(question, element_count):
            measured_ps = self._measured(question, algorithm, probe_bytes)
            if measured_ps is None:
                return None
            points.append(Point(question.element_count(probe_bytes, self._topology), measured_ps))
        if element_count > points[-1].element_count:
            return _Prediction(algorithm, extended(points, guess, element_count))
        return _Prediction(algorithm, between(points, guess, element_count))

    def _probe_sizes(self, question: Question, element_count: int) -> Sequence[int]:
        """Return the size of a probe with exactly this number of elements, else the nearest one or two sizes."""
        ranks = question.rank_count(self._topology)
        least = question.collective.least_elements(ranks) * question.element_bytes
        most = max(least * _PROBE_FACTOR, _PROBE_BYTES[self._options.clock or "virtual"] // ranks)
        powers = (_FIRST_PROBE_BYTES * _PROBE_FACTOR**power for power in itertools.count())
        sizes = [
            least,
            *(size for size in itertools.takewhile(lambda each: each <= most, powers) if size > least),
        ]
        counts = [question.element_count(size, self._topology) for size in sizes]
        if element_count <= counts[0] or len(sizes) == 1:
            return sizes[:1]
        if element_count in counts:
            return [sizes[counts.index(element_count)]]
        above = next((number for number, each in enumerate(counts) if each > element_count), len(sizes) - 1)
        return sizes[above - 1 : above + 1]

    def _measured(self, question: Question, algorithm: str, size_bytes: int) -> int | None:
        key = (
            question.collective.reference,
            question.dtype,
            question.operation,
            question.root,
            question.ranks,
            question.tenant,
            algorithm,
            size_bytes,
        )
        if key not in self._probed:
            self._progress(f"auto: probing {question.collective.name} of {size_bytes} B, {algorithm}")
            try:
                self._probed[key] = self._probe(question, algorithm, size_bytes)
            except CheckFailedError as error:
                self._progress(f"auto: {algorithm} left out: {error}")
                self._probed[key] = None
        return self._probed[key]


def between(points: Sequence[Point], guess: Cost, element_count: int) -> Cost:
    """Return the cost interpolated linearly between one or two probes, divided into parts as in the model."""
    first, last = points[0], points[-1]
    elements = last.element_count - first.element_count
    share = (element_count - first.element_count) / elements if elements else 0.0
    measured_ps = first.measured_ps + max(0.0, share) * (last.measured_ps - first.measured_ps)
    if not guess.total_ps:
        return Cost(guess.steps, measured_ps, 0.0)
    factor = measured_ps / guess.total_ps
    return Cost(guess.steps, guess.latency_ps * factor, guess.transfer_ps * factor)


def extended(points: Sequence[Point], guess: Cost, element_count: int) -> Cost:
    """Return the cost of more elements than the largest probe has, extrapolated from the last two probes.

    Ranks' messages meet in queues only from some size on, which these probes show but the model ignores.
    """
    before, last = points[-2:] if len(points) > 1 else (Point(0, 0), points[-1])
    slope_ps = max(0, last.measured_ps - before.measured_ps) / (last.element_count - before.element_count)
    transfer_ps = slope_ps * element_count
    latency_ps = max(0.0, last.measured_ps - slope_ps * last.element_count)
    return Cost(guess.steps, latency_ps, transfer_ps)
