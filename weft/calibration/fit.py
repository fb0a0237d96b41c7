"""The fit: values of keys with which the model's times come nearest to the measured ones.

Errors are logarithms of modelled over measured time, so a small size counts as much as a large one. A coarse search
along each key comes first, because a key may have no effect over part of its range: an overhead shorter than a
packet's time on the link is hidden by it. Levenberg–Marquardt steps with differences follow (Marquardt, "An algorithm
for least-squares estimation of nonlinear parameters", SIAM J. Appl. Math. 11(2), 1963), within bounds. Nothing is
random, so the same logs give the same values.

Sizes up to which protocols are taken are no such keys: times change at measured sizes only. They are chosen among all
measured sizes at once, first together with coarse latencies of each protocol; then the other keys are fitted, until
neither changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, combinations_with_replacement
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.calibration.held_out import EVERY_THIRD, HoldOut
from weft.calibration.keys import Key, Scale, chosen_keys, round_significant
from weft.calibration.logs import MeasuredTable
from weft.calibration.runs import ComparedTable, Model, Values, matched
from weft.errors import BadInputError
from weft.quantities.units import PS_PER_US, shortest_size
from weft.scenario import Scenario, parse_scenario
from weft.scenario.dotted import plain
from weft.traffic.protocols import NONE, PROTOCOLS

POOR_FIT = 0.2
"""Residual, as part of the measured time, above which a fit is called poor."""
_SCAN_SIZES = 4
_SCAN_ROUNDS = 2
_SHARED_OUT_SIZES = 8
_COARSE_LATENCIES_PS = (0, PS_PER_US // 10, PS_PER_US, 3 * PS_PER_US, 10 * PS_PER_US, 30 * PS_PER_US)
"""Of a protocol's steps, with which a fit of thresholds begins."""
_LATENCIES_BETWEEN = 60
_MOST_STEPS = 12
_MOST_DAMPINGS = 6
_STEP = 0.08
"""Difference on a key's scale from which slopes are computed: large against the rounding of values."""
_SMALLEST_GAIN = 1e-3
"""Part of the sum of squares that a step must save for another one to follow."""
_MOST_SWITCHES = 4
"""Times that thresholds are chosen anew."""
_NO_EFFECT = 0.01
"""Root-mean-square relative change of times for a change of a key by its e-fold: below, it is not fitted."""
_PROBE_PS = PS_PER_US
_PROBE_BYTES = 2**14
_COLLINEAR = 0.98
"""Cosine of the effects of two keys above which the sizes do not tell them apart."""
_SMALL_SINGULAR = 0.1
"""Part of the largest singular value of the unit effects below which a combination of keys is undetermined."""
_OF_COMBINATION = 0.3
"""Weight of a key in such a combination from which it is named."""


@dataclass(frozen=True)
class Row:
    """A size: times in ps; residuals are parts of the measured time."""

    size_bytes: int
    measured_ps: float
    before_ps: int
    after_ps: int
    held_out: bool
    protocol: str = NONE
    """NCCL's protocol after the fit, "" for none."""

    @property
    def residual_before(self) -> float:
        """How much longer the scenario as it was takes."""
        return self.before_ps / self.measured_ps - 1

    @property
    def residual(self) -> float:
        """How much longer the fitted scenario takes."""
        return self.after_ps / self.measured_ps - 1


@dataclass(frozen=True)
class KeyFit:
    """A key's value before and after a fit.

    Attributes:
        key: which.
        before: the scenario's value; None: no limit.
        after: the fitted value; None: the fitted sizes do not depend on the key, which keeps the scenario's value.
        effect: root-mean-square relative change of the fitted sizes' times per e-fold of the key; of a time that is
            near 0, where no e-fold changes anything: for a microsecond more; of a threshold: for twice the size.
        at_bound: whether the value is the least or the largest that the fit tries.
    """

    key: Key
    before: int | None
    after: int | None
    effect: float
    at_bound: bool


@dataclass(frozen=True)
class Calibration:
    """A fit and its residuals.

    Attributes:
        tables: what was compared, each with its rows.
        keys: what was found for each key.
        undetermined: groups of keys that the fitted sizes do not tell apart.
        runs: how many times the scenario ran.
    """

    tables: tuple[tuple[ComparedTable, tuple[Row, ...]], ...]
    keys: tuple[KeyFit, ...]
    undetermined: tuple[tuple[str, ...], ...]
    runs: int

    def residuals(self, held_out: bool) -> list[float]:
        """Return the sizes of the residuals of fitted or of held-out sizes."""
        return [abs(row.residual) for _, rows in self.tables for row in rows if row.held_out == held_out]

    def summary(self, held_out: bool) -> tuple[float, float] | None:
        """Return the median and the largest residual of fitted or held-out sizes; None without such sizes."""
        found = self.residuals(held_out)
        return (median(found), max(found)) if found else None

    def summary_of(self, protocol: str, held_out: bool) -> tuple[float, float] | None:
        """Return the same of the sizes that travel in a protocol."""
        found = [
            abs(row.residual)
            for _, rows in self.tables
            for row in rows
            if row.held_out == held_out and row.protocol == protocol
        ]
        return (median(found), max(found)) if found else None

    @property
    def protocols(self) -> list[str]:
        """Return the protocols after the fit, each once, in the order of the sizes."""
        return list(dict.fromkeys(row.protocol for _, rows in self.tables for row in rows if row.protocol))

    @property
    def poor(self) -> list[tuple[ComparedTable, Row]]:
        """Return the sizes with a residual above `POOR_FIT`."""
        return [(table, row) for table, rows in self.tables for row in rows if abs(row.residual) > POOR_FIT]

    def fitted(self) -> dict[str, str]:
        """Return the values that a scenario gets, as it has them; keys without effect keep their values."""
        return {each.key.name: each.key.written(each.after) for each in self.keys if each.after is not None}

    def as_dict(self) -> dict[str, Any]:
        """Return plain data: times in ps, rates in b/s, sizes in bytes, residuals as parts of the measured time."""
        return {
            "keys": [
                {
                    "key": each.key.name,
                    "before": each.before,
                    "after": each.after,
                    "effect": each.effect,
                    "at_bound": each.at_bound,
                }
                for each in self.keys
            ],
            "undetermined": [list(group) for group in self.undetermined],
            "tables": [
                {
                    "log": compared.table.path,
                    "collective": compared.table.collective,
                    "algorithm": compared.algorithm,
                    "ranks": compared.table.ranks,
                    "nodes": compared.table.nodes,
                    "left_out": {reason: list(sizes) for reason, sizes in compared.left_out.items()},
                    "rows": [
                        {
                            "size_bytes": row.size_bytes,
                            "measured_ps": row.measured_ps,
                            "before_ps": row.before_ps,
                            "after_ps": row.after_ps,
                            "residual": row.residual,
                            "held_out": row.held_out,
                            **({"protocol": row.protocol} if row.protocol else {}),
                        }
                        for row in rows
                    ],
                }
                for compared, rows in self.tables
            ],
            "runs": self.runs,
        }


def calibrate(
    tables: Sequence[MeasuredTable],
    tree: Mapping[str, Any],
    place: str = "scenario",
    *,
    keys: Sequence[str] = (),
    hold_out: HoldOut = EVERY_THIRD,
    least_bytes: int = 1,
    most_bytes: int = 16 * 2**20,
    progress: Callable[[str], None] = lambda _: None,
) -> Calibration:
    """Fit keys of a scenario to measured tables.

    Args:
        tables: what was measured; each is compared with the item of the same collective and number of ranks.
        tree: the scenario's keys.
        place: the scenario's file, for errors.
        keys: names of the keys; by default overheads of NICs, and scale-up links if the fabric has them, or what the
            tables tell of protocols.
        hold_out: sizes that the fit does not see.
        least_bytes: smallest size that is compared.
        most_bytes: largest size that is compared.
        progress: called with each run, in words.

    Raises:
        BadInputError: tables and scenario do not belong together, or there are fewer sizes to fit than keys.
        CheckFailedError: a run did not end.
    """
    scenario: Scenario = parse_scenario(plain(tree), place, units_required=True)
    compared = matched(tables, scenario, least_bytes, most_bytes)
    chosen = chosen_keys(keys, scenario, compared)
    hold_out.require_measured({size for each in compared for size in each.sizes})
    held_out = [hold_out.of_table(each.sizes) for each in compared]
    fitted = sum(len(each.sizes) - len(held) for each, held in zip(compared, held_out, strict=True))
    if fitted < len(chosen):
        raise BadInputError(
            f"{fitted} sizes are too few to fit {len(chosen)} keys: hold out fewer, or name fewer with --keys"
        )
    model = Model(tree, place, chosen, compared, progress)
    before = model.times_ps((None,) * len(chosen), [each.sizes for each in compared])
    search = _Search(model, compared, held_out)
    found = search.found(tuple(key.start(scenario) for key in chosen))
    effects = search.probed(found, search.effects(found))
    values = search.without_idle(found, effects)
    all_sizes = [each.sizes for each in compared]
    after, protocols = model.times_ps(values, all_sizes), model.protocols(values, all_sizes)
    return Calibration(
        tuple(
            (each, tuple(_rows(each, old, new, held, names)))
            for each, old, new, held, names in zip(compared, before, after, held_out, protocols, strict=True)
        ),
        tuple(
            KeyFit(key, key.held_by(scenario), value, strength, value in key.bounds and not key.is_threshold)
            for key, value, strength in zip(chosen, values, _strengths(effects).tolist(), strict=True)
        ),
        undetermined(*_smooth([key.name for key in chosen], chosen, effects)),
        model.runs,
    )


def _smooth(
    names: Sequence[str], keys: Sequence[Key], effects: NDArray[np.float64]
) -> tuple[list[str], NDArray[np.float64]]:
    """Return the names and effects of keys that are no thresholds."""
    places = [place for place, key in enumerate(keys) if not key.is_threshold]
    return [names[place] for place in places], effects[:, places]


def _rows(
    compared: ComparedTable,
    before: Sequence[int],
    after: Sequence[int],
    held_out: set[int],
    protocols: Sequence[str],
) -> list[Row]:
    measured = {each.size_bytes: each.time_ps for each in compared.table.measurements}
    return [
        Row(size, measured[size], old, new, size in held_out, protocol)
        for size, old, new, protocol in zip(compared.sizes, before, after, protocols, strict=True)
    ]


_Found = tuple[int, ...]
"""A value of each key."""


@dataclass(frozen=True)
class _Part:
    """Squares of errors if all sizes travel in a protocol: a row for each of its latencies (none: as they are)."""

    places: list[int]
    latencies_ps: tuple[int, ...]
    squares: NDArray[np.float64]


class _Search:
    """Finds the best values; errors are logarithms of modelled over measured time, of the fitted sizes."""

    def __init__(self, model: Model, tables: Sequence[ComparedTable], held_out: Sequence[set[int]]) -> None:
        self._model = model
        self._keys = model.keys
        self._tables = tables
        self._sizes = [
            [size for size in each.sizes if size not in held] for each, held in zip(tables, held_out, strict=True)
        ]
        self._few = [_spread(sizes, _SCAN_SIZES) for sizes in self._sizes]
        self._thresholds = sorted(
            (place for place, key in enumerate(self._keys) if key.is_threshold),
            key=lambda place: PROTOCOLS.index(self._keys[place].protocol),
        )

    def found(self, values: _Found) -> _Found:
        """Return the best values that a fit from these finds."""
        if not self._thresholds:
            return self.best(self.scanned(values))
        values = self.best(self.shared_out(values))
        for _ in range(_MOST_SWITCHES):
            if (switched := self.switched(values)) == values:
                break
            values = self.best(switched)
        return values

    def shared_out(self, values: _Found) -> _Found:
        """Return the best values of a coarse search of thresholds and all else, with some of the sizes.

        A wrong latency makes a protocol look slow for sizes that travel in it, so that no single key leads to the
        right one: latencies and thresholds are tried together, for each value of one key after the other that all
        protocols share.
        """
        sizes = [_spread(mine, _SHARED_OUT_SIZES) for mine in self._sizes]
        best = self._divided(values, sizes, _COARSE_LATENCIES_PS)
        for place, key in enumerate(self._keys):
            if key.protocol:
                continue
            for trials in (key.trials, key.neighbours):
                for trial in trials(best[1][place]):
                    start = _replaced(best[1], [place], [trial])
                    best = min(best, self._divided(start, sizes, _COARSE_LATENCIES_PS), key=lambda each: each[0])
        return best[1]

    def switched(self, values: _Found) -> _Found:
        """Return values with the best thresholds, of all fitted sizes."""
        _, switched = self._divided(values, self._sizes, ())
        return switched if self._squares(switched, self._sizes) < self._squares(values, self._sizes) else values

    def _divided(
        self, values: _Found, sizes: Sequence[Sequence[int]], latencies_ps: Sequence[int]
    ) -> tuple[float, _Found]:
        """Return the best division of sizes among protocols, and its squares.

        A size travels by one protocol whatever the others do, so a run with one protocol for all sizes tells the times
        for all divisions. Runs with these latencies tell those with latencies in between, too: times are a sum of
        steps, or where links are busy do not depend on them. Without any, protocols keep theirs.
        """
        # The first threshold that is not below a size takes it; the last part is of sizes above all.
        own = [self._keys[place].protocol for place in self._thresholds]
        parts = [
            self._part(number, protocols, values, sizes, latencies_ps)
            for number, protocols in enumerate([*({name} for name in own), set(PROTOCOLS) - set(own)])
        ]
        measured = np.array([size for mine in sizes for size in mine])
        best, least_squares = values, math.inf
        bounds = [self._keys[place].bounds for place in self._thresholds]
        for sizes_up_to in combinations_with_replacement([0, *sorted(set(measured.tolist()))], len(self._thresholds)):
            thresholds = [min(max(size, low), high) for size, (low, high) in zip(sizes_up_to, bounds, strict=True)]
            taken_by = np.sum(measured[:, None] > np.array(thresholds), axis=1)
            total, trial = 0.0, _replaced(values, self._thresholds, thresholds)
            for number, part in enumerate(parts):
                sums = part.squares[:, taken_by == number].sum(axis=1)
                chosen = int(np.argmin(sums))
                total += float(sums[chosen])
                if part.places:
                    trial = _replaced(trial, part.places, [part.latencies_ps[chosen]] * len(part.places))
            if total < least_squares:
                best, least_squares = trial, total
        return least_squares, best

    def _part(
        self,
        number: int,
        protocols: set[str],
        values: _Found,
        sizes: Sequence[Sequence[int]],
        latencies_ps: Sequence[int],
    ) -> _Part:
        """Return how well sizes travel in the protocols of part `number`."""
        bounds = [self._keys[place].bounds for place in self._thresholds]
        ends = [most if at >= number else least for at, (least, most) in enumerate(bounds)]
        values = _replaced(values, self._thresholds, ends)
        places = [place for place, key in enumerate(self._keys) if key.protocol in protocols and not key.is_threshold]
        if not latencies_ps or not places:
            return _Part([], (), self._errors(values, sizes)[None, :] ** 2)
        tried = [_replaced(values, places, [latency] * len(places)) for latency in latencies_ps]
        factors = np.exp([self._errors(trial, sizes) for trial in tried])
        between = np.geomspace(latencies_ps[1], latencies_ps[-1], _LATENCIES_BETWEEN)
        found = np.stack([np.interp(between, latencies_ps, column) for column in factors.T], axis=1)
        return _Part(places, tuple(round_significant(each) for each in between.tolist()), np.log(found) ** 2)

    def scanned(self, values: _Found) -> _Found:
        """Return the best values of a coarse search along one key after the other, with a few sizes."""
        for _ in range(_SCAN_ROUNDS):
            before = values
            for place, key in enumerate(self._keys):
                trials = [(*values[:place], value, *values[place + 1 :]) for value in key.trials(values[place])]
                # The first of several that are equally good is the one at hand.
                values = min(trials, key=lambda trial: self._squares(trial, self._few))
            if values == before:
                break
        return values

    def best(self, values: _Found) -> _Found:
        """Return the best values near these."""
        squares = self._squares(values, self._sizes)
        damping = 1e-2
        for _ in range(_MOST_STEPS):
            errors, slopes = self._errors(values, self._sizes), self.effects(values)
            gradient, curvature = slopes.T @ errors, slopes.T @ slopes
            scale = np.diag(curvature) + 1e-9
            gain = 0.0
            for _ in range(_MOST_DAMPINGS):
                step = np.linalg.solve(curvature + damping * np.diag(scale), -gradient)
                trial = self._moved(values, np.clip(step, -2.0, 2.0))
                if trial != values and (found := self._squares(trial, self._sizes)) < squares:
                    gain = 1 - found / squares
                    values, squares, damping = trial, found, damping / 5
                    break
                damping *= 5
            if gain < _SMALLEST_GAIN:
                break
        return values

    def effects(self, values: _Found) -> NDArray[np.float64]:
        """Return the change of each fitted size's error per unit of each key's scale: a column for each key."""
        columns = []
        for place, key in enumerate(self._keys):
            if key.is_threshold:
                columns.append(np.zeros(sum(map(len, self._sizes))))
                continue
            position = key.position(values[place])
            ends = [key.value(position - _STEP), key.value(position + _STEP)]
            positions = [key.position(end) for end in ends]
            low, high = (self._errors((*values[:place], end, *values[place + 1 :]), self._sizes) for end in ends)
            columns.append((high - low) / (positions[1] - positions[0]))
        return np.stack(columns, axis=1)

    def probed(self, values: _Found, effects: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return effects, of times near 0 for a microsecond more, and of thresholds for twice the size.

        There, slopes on the scale say nothing.
        """
        found = effects.copy()
        for place, key in enumerate(self._keys):
            probe = _PROBE_PS if key.scale is Scale.TIME else values[place] or _PROBE_BYTES
            if key.scale is not Scale.RATE and _strengths(effects)[place] < _NO_EFFECT:
                more = self._ordered((*values[:place], key.rounded(values[place] + probe), *values[place + 1 :]))
                found[:, place] = self._errors(more, self._sizes) - self._errors(values, self._sizes)
        return found

    def without_idle(self, values: _Found, effects: NDArray[np.float64]) -> Values:
        """Return values with None for keys that change nothing between the scenario's value and this one."""
        kept: Values = values
        for place, strength in enumerate(_strengths(effects).tolist()):
            trial = (*kept[:place], None, *kept[place + 1 :])
            # A key that came to the end of its range may have no effect there, and much at the scenario's value.
            if strength < _NO_EFFECT and self._are_alike(trial, kept):
                kept = trial
        return kept

    def _are_alike(self, trial: Values, kept: Values) -> bool:
        try:
            errors = self._errors(trial, self._sizes)
        except BadInputError:
            # The scenario's own threshold may be out of order with the fitted one of another protocol.
            return False
        return np.allclose(errors, self._errors(kept, self._sizes), rtol=0, atol=_NO_EFFECT)

    def _ordered(self, values: _Found) -> _Found:
        """Return values with no threshold below a smaller size's protocol's, which scenarios refuse."""
        ordered = list(accumulate((values[place] for place in self._thresholds), max))
        return _replaced(values, self._thresholds, ordered)

    def _moved(self, values: _Found, step: NDArray[np.float64]) -> _Found:
        return tuple(
            key.value(key.position(value) + float(change))
            for key, value, change in zip(self._keys, values, step, strict=True)
        )

    def _squares(self, values: Values, sizes: Sequence[Sequence[int]]) -> float:
        try:
            return float(np.sum(self._errors(values, sizes) ** 2))
        except BadInputError:
            # The fabric refuses some combinations; others are left.
            return math.inf

    def _errors(self, values: Values, sizes: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        found = self._model.times_ps(values, sizes)
        return np.array(
            [
                math.log(max(1, time) / measured[size])
                for each, mine, times in zip(self._tables, sizes, found, strict=True)
                for measured in [{one.size_bytes: one.time_ps for one in each.table.measurements}]
                for size, time in zip(mine, times, strict=True)
            ]
        )


def _replaced(values: _Found, places: Sequence[int], others: Sequence[int]) -> _Found:
    """Return values with others at some places."""
    found = list(values)
    for place, value in zip(places, others, strict=True):
        found[place] = value
    return tuple(found)


def _strengths(effects: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the root mean square of each key's effects."""
    strengths: NDArray[np.float64] = np.sqrt(np.mean(effects**2, axis=0))
    return strengths


def _spread(sizes: Sequence[int], most: int) -> list[int]:
    """Return a few of the sizes, with the smallest and the largest."""
    if len(sizes) <= most:
        return list(sizes)
    return [sizes[round(place * (len(sizes) - 1) / (most - 1))] for place in range(most)]


def undetermined(names: Sequence[str], effects: NDArray[np.float64]) -> tuple[tuple[str, ...], ...]:
    """Return groups of keys with effects (a column for each) that differ too little to be told apart.

    Keys without an effect are in none: their own line says so.
    """
    norms = np.linalg.norm(effects, axis=0)
    strong = np.flatnonzero(_strengths(effects) >= _NO_EFFECT).tolist()
    if len(strong) < 2:
        return ()
    unit = effects[:, strong] / norms[strong]
    groups: list[tuple[str, ...]] = [
        (names[strong[one]], names[strong[other]])
        for one, other in combinations(range(len(strong)), 2)
        if abs(float(unit[:, one] @ unit[:, other])) > _COLLINEAR
    ]
    paired = [set(group) for group in groups]
    _, singular, directions = np.linalg.svd(unit, full_matrices=False)
    for value, direction in zip(singular, directions, strict=True):
        group = tuple(names[strong[at]] for at in np.flatnonzero(np.abs(direction) > _OF_COMBINATION).tolist())
        is_new = len(group) > 1 and not any(pair <= set(group) for pair in paired)
        if value < _SMALL_SINGULAR * singular[0] and is_new:
            groups.append(group)
    return tuple(groups)


def described(table: MeasuredTable, row: Row) -> str:
    """Return a size in words: `allreduce of 8 ranks, 64KiB`."""
    return f"{table.collective} of {table.ranks} ranks, {shortest_size(row.size_bytes)}"
