"""Chooses a collective's algorithm by size: each one's cost on the fabric's links, fitted to short probes.

An algorithm's file says how its time divides into latency and transfer (`weft.traffic.costs`). Both are taken from the
topology, then scaled by two factors, which the algorithm's probes of the two nearest sizes give.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weft.clocks.lab import Progress
from weft.errors import BadInputError, CheckFailedError
from weft.results.choices import AlgorithmChoice
from weft.run.algorithms import objections, placed_group
from weft.run.collectives import collective_spec, data_type
from weft.run.fabric_links import fabric_links
from weft.run.group_collectives import collective_call
from weft.scenario import FabricOptions
from weft.topologies import FabricSpec
from weft.traffic.collectives import Collective
from weft.traffic.costs import Cost
from weft.traffic.schedules import CollectiveSpec

_HOPELESS = 4.0
"""Algorithms that the topology says to take so many times as long as the fastest are not probed, but for the second."""
_FIRST_PROBE_BYTES, _PROBE_FACTOR = 64, 4
_PROBE_BYTES = {"virtual": 128 << 20, "real": 1 << 19}
"""What all ranks' data of a probe may be at most, by clock."""


@dataclass(frozen=True)
class Question:
    """What an algorithm is wanted for: a collective, and what besides its size a run depends on.

    `ranks` are those of a group, by their numbers in the fabric; None: all. `tenant` is whose quotas a reduction in the
    network has, "" nobody's.
    """

    collective: Collective
    dtype: str
    operation: str
    root: int
    ranks: tuple[int, ...] | None = None
    tenant: str = ""

    def rank_count(self, topology: FabricSpec) -> int:
        """Return how many ranks take part."""
        return topology.rank_count if self.ranks is None else len(self.ranks)

    @property
    def element_bytes(self) -> int:
        """Size of an element."""
        return data_type(self.dtype).element_bytes


Probe = Callable[[Question, str, int], int]
"""Runs a collective of a size by an algorithm; returns how long it took. Raises CheckFailedError."""


@dataclass(frozen=True)
class Point:
    """A probe: its elements, the model's cost and the time measured."""

    element_count: int
    cost: Cost
    measured_ps: int


@dataclass(frozen=True)
class _Prediction:
    algorithm: str
    cost: Cost
    """The model's, scaled by the fit."""

    def __str__(self) -> str:
        cost = self.cost
        return (
            f"{self.algorithm} {cost.total_ps / 1e6:.1f} µs ({cost.steps} steps {cost.latency_ps / 1e6:.1f}, "
            f"transfer {cost.transfer_ps / 1e6:.1f})"
        )


class Tuner:
    """Chooses algorithms for one fabric; probes run when they are first needed, once each."""

    def __init__(
        self,
        topology: FabricSpec,
        options: FabricOptions,
        probe: Probe,
        progress: Progress,
        aggregates: Callable[[], bool] = lambda: True,
    ) -> None:
        # `aggregates`: whether switches' programs do, once these are known.
        self._aggregates = aggregates
        self._topology, self._options = topology, options
        self._probe, self._progress = probe, progress
        self._links = fabric_links(topology, options)
        self._probed: dict[tuple[object, ...], int | None] = {}
        self._suitable: dict[tuple[str, tuple[int, ...] | None], list[str]] = {}

    def choose(self, question: Question, element_count: int) -> AlgorithmChoice:
        """Return the algorithm that is predicted to be the fastest for data of so many elements.

        Raises BadInputError if none can run.
        """
        guesses = self._guesses(question, element_count)
        by_guess = sorted(guesses, key=lambda name: guesses[name].total_ps)
        most_ps = _HOPELESS * guesses[by_guess[0]].total_ps
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
        self._progress(
            f"auto: {choice.algorithm} for {element_count * question.element_bytes} B: {choice.reason}"
        )
        return choice

    def _guesses(self, question: Question, element_count: int) -> dict[str, Cost]:
        """Return by algorithm what the topology alone says, of those that can run."""
        guesses, reasons = {}, []
        for name in self._algorithms(question):
            try:
                guesses[name] = self._cost(question, name, element_count)
            except BadInputError as error:
                reasons.append(str(error))
        if not guesses:
            raise BadInputError(
                f"auto: no algorithm of {question.collective.name} can run: {'; '.join(reasons)}"
            )
        return guesses

    def _algorithms(self, question: Question) -> list[str]:
        collective = question.collective
        key = collective.reference, question.ranks
        if key not in self._suitable:
            found = objections(self._topology, collective, question.ranks)
            self._suitable[key] = [
                name
                for name, objection in found.items()
                if not objection and not (collective.algorithm(name).in_network and not self._may_reduce)
            ]
        return self._suitable[key]

    @property
    def _may_reduce(self) -> bool:
        return self._aggregates() and not self._options.fidelity.has_segments

    def _cost(self, question: Question, algorithm: str, element_count: int) -> Cost:
        return question.collective.algorithm(algorithm).cost(
            self._spec(question, algorithm, element_count), self._links
        )

    def _spec(self, question: Question, algorithm: str, element_count: int) -> CollectiveSpec:
        if question.ranks is not None:
            call = collective_call(
                question.collective,
                element_count,
                algorithm,
                question.dtype,
                question.operation,
                question.root,
            )
            return placed_group(call, question.ranks, self._topology).spec
        return collective_spec(
            self._topology,
            question.collective,
            algorithm,
            element_count,
            question.dtype,
            question.operation,
            question.root,
        )

    def _fitted(
        self, question: Question, algorithm: str, element_count: int, guess: Cost
    ) -> _Prediction | None:
        """Return the prediction for an algorithm; None if its probes have failed."""
        points = []
        for size_bytes in self._probe_sizes(question, element_count * question.element_bytes):
            measured_ps = self._measured(question, algorithm, size_bytes)
            if measured_ps is None:
                return None
            count = self._elements(question, size_bytes)
            points.append(Point(count, self._cost(question, algorithm, count), measured_ps))
        if element_count > points[-1].element_count:
            return _Prediction(algorithm, extended(points, guess, element_count))
        latency, transfer = fit(points)
        return _Prediction(
            algorithm, Cost(guess.steps, guess.latency_ps * latency, guess.transfer_ps * transfer)
        )

    def _elements(self, question: Question, size_bytes: int) -> int:
        collective, size_elements = question.collective, size_bytes // question.element_bytes
        ranks = question.rank_count(self._topology)
        return collective.element_count(collective.input_elements(size_elements, ranks), ranks)

    def _probe_sizes(self, question: Question, size_bytes: int) -> Sequence[int]:
        """Return the two sizes of probes on both sides of a size, or nearest to it."""
        ranks = question.rank_count(self._topology)
        least = question.collective.least_elements(ranks) * question.element_bytes
        most = max(least * _PROBE_FACTOR, _PROBE_BYTES[self._options.clock or "virtual"] // ranks)
        powers = (_FIRST_PROBE_BYTES * _PROBE_FACTOR**power for power in itertools.count())
        sizes = [
            least,
            *(size for size in itertools.takewhile(lambda each: each <= most, powers) if size > least),
        ]
        if len(sizes) == 1:
            return sizes
        above = next((number for number, size in enumerate(sizes) if size >= size_bytes), len(sizes) - 1)
        return sizes[max(0, above - 1) : max(0, above - 1) + 2]

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


def fit(points: Sequence[Point]) -> tuple[float, float]:
    """Return the factors of latency and transfer, neither negative, that fit the times measured.

    Where one would be negative, both are the one factor of the least relative errors.
    """
    parts = np.array([[each.cost.latency_ps, each.cost.transfer_ps] for each in points], float)
    times = np.array([each.measured_ps for each in points], float)
    if not times.all():
        return 1.0, 1.0
    parts /= times[:, None]
    wanted = np.ones(len(points))
    both, _, rank, _ = np.linalg.lstsq(parts, wanted, rcond=1e-9)
    if rank == 2 and (both >= 0).all():
        return float(both[0]), float(both[1])
    whole = parts.sum(axis=1)
    factor = float(whole @ wanted / (whole @ whole)) if whole.any() else 1.0
    return factor, factor


def extended(points: Sequence[Point], guess: Cost, element_count: int) -> Cost:
    """Return the cost of more elements than the largest probe has: each takes as long as between the last two probes.

    What all ranks send meets in queues only from some size on, which the model does not know; these probes do.
    """
    before, last = points[-2:] if len(points) > 1 else (Point(0, guess, 0), points[-1])
    slope_ps = max(0, last.measured_ps - before.measured_ps) / (last.element_count - before.element_count)
    transfer_ps = slope_ps * element_count
    latency_ps = max(0.0, last.measured_ps - slope_ps * last.element_count)
    return Cost(guess.steps, latency_ps, transfer_ps)
