"""The fit: values of keys with which the model's times come nearest to the measured ones.

Errors are logarithms of modelled over measured time, so a small size counts as much as a large one. A coarse search
along each key comes first, because a key may have no effect over part of its range: an overhead shorter than a
packet's time on the link is hidden by it. Levenberg–Marquardt steps with differences follow (Marquardt, "An algorithm
for least-squares estimation of nonlinear parameters", SIAM J. Appl. Math. 11(2), 1963), within bounds. Nothing is
random, so the same logs give the same values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.calibration.held_out import EVERY_THIRD, HoldOut
from weft.calibration.keys import Key, Scale, chosen_keys
from weft.calibration.logs import MeasuredTable
from weft.calibration.runs import ComparedTable, Model, Values, matched
from weft.errors import BadInputError
from weft.quantities.units import PS_PER_US, shortest_size
from weft.scenario import Scenario, parse_scenario
from weft.scenario.dotted import plain

POOR_FIT = 0.2
"""Residual, as part of the measured time, above which a fit is called poor."""
_SCAN_SIZES = 4
_SCAN_ROUNDS = 2
_MOST_STEPS = 12
_MOST_DAMPINGS = 6
_STEP = 0.08
"""Difference on a key's scale from which slopes are computed: large against the rounding of values."""
_SMALLEST_GAIN = 1e-3
"""Part of the sum of squares that a step must save for another one to follow."""
_NO_EFFECT = 0.01
"""Root-mean-square relative change of times for a change of a key by its e-fold: below, it is not fitted."""
_PROBE_PS = PS_PER_US
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
            near 0, where no e-fold changes anything: for a microsecond more.
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
        keys: names of the keys; by default overheads of NICs, and scale-up links if the fabric has them.
        hold_out: sizes that the fit does not see.
        least_bytes: smallest size that is compared.
        most_bytes: largest size that is compared.
        progress: called with each run, in words.

    Raises:
        BadInputError: tables and scenario do not belong together, or there are fewer sizes to fit than keys.
        CheckFailedError: a run did not end.
    """
    scenario: Scenario = parse_scenario(plain(tree), place, units_required=True)
    chosen = chosen_keys(keys, scenario)
    compared = matched(tables, scenario, least_bytes, most_bytes)
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
    found = search.best(search.scanned(tuple(key.start(scenario) for key in chosen)))
    effects = search.probed(found, search.effects(found))
    values = search.without_idle(found, effects)
    after = model.times_ps(values, [each.sizes for each in compared])
    return Calibration(
        tuple(
            (each, tuple(_rows(each, old, new, held)))
            for each, old, new, held in zip(compared, before, after, held_out, strict=True)
        ),
        tuple(
            KeyFit(key, key.held_by(scenario), value, strength, value in key.bounds)
            for key, value, strength in zip(chosen, values, _strengths(effects).tolist(), strict=True)
        ),
        undetermined([key.name for key in chosen], effects),
        model.runs,
    )


def _rows(compared: ComparedTable, before: Sequence[int], after: Sequence[int], held_out: set[int]) -> list[Row]:
    measured = {each.size_bytes: each.time_ps for each in compared.table.measurements}
    return [
        Row(size, measured[size], old, new, size in held_out)
        for size, old, new in zip(compared.sizes, before, after, strict=True)
    ]


_Found = tuple[int, ...]
"""A value of each key."""


class _Search:
    """Finds the best values; errors are logarithms of modelled over measured time, of the fitted sizes."""

    def __init__(self, model: Model, tables: Sequence[ComparedTable], held_out: Sequence[set[int]]) -> None:
        self._model = model
        self._keys = model.keys
        self._tables = tables
        self._sizes = [
            [size for size in each.sizes if size not in held] for each, held in zip(tables, held_out, strict=True)
        ]
        self._few = [_spread(sizes) for sizes in self._sizes]

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
            position = key.position(values[place])
            ends = [key.value(position - _STEP), key.value(position + _STEP)]
            positions = [key.position(end) for end in ends]
            low, high = (self._errors((*values[:place], end, *values[place + 1 :]), self._sizes) for end in ends)
            columns.append((high - low) / (positions[1] - positions[0]))
        return np.stack(columns, axis=1)

    def probed(self, values: _Found, effects: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return effects with those of times near 0 for a microsecond more: there, slopes on the scale say nothing."""
        found = effects.copy()
        for place, key in enumerate(self._keys):
            if key.scale is Scale.TIME and _strengths(effects)[place] < _NO_EFFECT:
                more = (*values[:place], key.rounded(values[place] + _PROBE_PS), *values[place + 1 :])
                found[:, place] = self._errors(more, self._sizes) - self._errors(values, self._sizes)
        return found

    def without_idle(self, values: _Found, effects: NDArray[np.float64]) -> Values:
        """Return values with None for keys that change nothing between the scenario's value and this one."""
        kept: Values = values
        for place, strength in enumerate(_strengths(effects).tolist()):
            trial = (*kept[:place], None, *kept[place + 1 :])
            # A key that came to the end of its range may have no effect there, and much at the scenario's value.
            if strength < _NO_EFFECT and np.allclose(
                self._errors(trial, self._sizes), self._errors(kept, self._sizes), rtol=0, atol=_NO_EFFECT
            ):
                kept = trial
        return kept

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


def _strengths(effects: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the root mean square of each key's effects."""
    strengths: NDArray[np.float64] = np.sqrt(np.mean(effects**2, axis=0))
    return strengths


def _spread(sizes: Sequence[int]) -> list[int]:
    """Return a few of the sizes, with the smallest and the largest."""
    if len(sizes) <= _SCAN_SIZES:
        return list(sizes)
    return [sizes[round(place * (len(sizes) - 1) / (_SCAN_SIZES - 1))] for place in range(_SCAN_SIZES)]


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
