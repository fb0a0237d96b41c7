"""Runs a scenario's collectives at measured sizes with values of keys, and keeps the times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.calibration.keys import Key
from weft.calibration.logs import MeasuredTable
from weft.errors import BadInputError
from weft.quantities.units import shortest_size
from weft.results.collectives import LENGTHS, CollectiveResult
from weft.run.runner import run_scenario
from weft.run.traffic_kinds.collective import CollectiveTraffic
from weft.scenario import Scenario, parse_scenario
from weft.scenario.dotted import plain, set_at
from weft.traffic.collectives import collective_named
from weft.traffic.data_types import DataType
from weft.traffic.protocols import NONE

Values = tuple[int | None, ...]
"""A value of each key, in their order; None leaves the scenario's own."""


@dataclass(frozen=True)
class ComparedTable:
    """A measured table, and the item of the scenario's traffic that is compared with it.

    Attributes:
        table: the measurements.
        item: the item's position in the traffic.
        algorithm: the one algorithm of the item.
        protocol: the item's, "" for none.
        sizes: the sizes in bytes that both have, in ascending order.
        left_out: sizes that are not compared, with the reason.
    """

    table: MeasuredTable
    item: int
    algorithm: str
    sizes: tuple[int, ...]
    left_out: Mapping[str, tuple[int, ...]]
    protocol: str = NONE


def matched(
    tables: Sequence[MeasuredTable], scenario: Scenario, least_bytes: int, most_bytes: int
) -> list[ComparedTable]:
    """Return each table with the scenario's item of the same collective and number of ranks.

    Raises:
        BadInputError: no item, or several, are alike; an item has several algorithms; a table has no size to compare.
    """
    items = [(number, item) for number, item in enumerate(scenario.traffic) if isinstance(item, CollectiveTraffic)]
    if not items:
        raise BadInputError("the traffic has no collective", place=scenario.places.of(["traffic"]))
    return [_matched(table, items, scenario, least_bytes, most_bytes) for table in tables]


def _matched(
    table: MeasuredTable,
    items: Sequence[tuple[int, CollectiveTraffic]],
    scenario: Scenario,
    least_bytes: int,
    most_bytes: int,
) -> ComparedTable:
    counts = {number: len(item.ranks) if item.ranks else scenario.fabric.rank_count for number, item in items}
    alike = [
        (number, item)
        for number, item in items
        if item.collective == table.collective and counts[number] == table.ranks
    ]
    what = f"{table.collective} of {table.ranks} ranks"
    if not alike:
        raise BadInputError(
            f"{what} was measured, which the scenario's traffic lacks",
            place=table.path,
            valid=dict.fromkeys(f"{item.collective} of {counts[number]} ranks" for number, item in items),
            hint="an item with ranks: [0, 1, …] runs on some of the fabric's ranks",
        )
    if len(alike) > 1:
        keys = ", ".join(f"traffic[{number}]" for number, _ in alike)
        raise BadInputError(f"{what} was measured, which {keys} all are: keep one", place=table.path)
    [(number, item)] = alike
    if item.algorithms is None or len(item.algorithms) != 1:
        raise BadInputError(
            "needs one algorithm, the one that ran where the log was made",
            place=f"traffic[{number}].algorithms",
            hint=f"for example --set 'traffic[{number}].algorithms=[ring]'",
        )
    sizes, left_out = _compared_sizes(table, item, least_bytes, most_bytes)
    if not sizes:
        raise BadInputError(
            f"no size of {what} can be compared: {_reasons(left_out)}",
            place=table.path,
        )
    return ComparedTable(table, number, item.algorithms[0], sizes, left_out, item.protocol or NONE)


def _reasons(left_out: Mapping[str, Sequence[int]]) -> str:
    return "; ".join(f"{len(sizes)} {reason}" for reason, sizes in left_out.items())


def _compared_sizes(
    table: MeasuredTable, item: CollectiveTraffic, least_bytes: int, most_bytes: int
) -> tuple[tuple[int, ...], dict[str, tuple[int, ...]]]:
    element_bytes = DataType(item.dtype).element_bytes
    few_bytes = collective_named(item.collective).least_elements(table.ranks) * element_bytes
    left_out: dict[str, list[int]] = {}
    sizes = []
    for measurement in table.measurements:
        size = measurement.size_bytes
        reason = (
            f"below {shortest_size(least_bytes)} (--least)"
            if size < least_bytes
            else f"above {shortest_size(most_bytes)} (--most)"
            if size > most_bytes
            else f"not a multiple of {element_bytes} B, the size of {item.dtype}"
            if size % element_bytes
            else f"too small for {table.ranks} ranks"
            if size < few_bytes
            else ""
        )
        if reason:
            left_out.setdefault(reason, []).append(size)
        else:
            sizes.append(size)
    return tuple(sizes), {reason: tuple(each) for reason, each in left_out.items()}


class Model:
    """Times of the scenario's collectives under the virtual clock, by values of keys; a time is never computed twice.

    Sizes run with lengths in place of data, which take the same time, and once: repetitions and warm-up are for
    results that vary.
    """

    def __init__(
        self,
        tree: Mapping[str, Any],
        place: str,
        keys: Sequence[Key],
        tables: Sequence[ComparedTable],
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Make the model of a scenario's tree, of which `place` is the file."""
        self._tree = plain(tree)
        self._tree["clock"] = "virtual"
        self._place = place
        self.keys = tuple(keys)
        self.tables = tuple(tables)
        self._progress = progress
        self._found: dict[tuple[Values, tuple[tuple[int, ...], ...]], list[list[CollectiveResult]]] = {}
        self.runs = 0

    def times_ps(self, values: Values, sizes: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return the times (ps) of each table's `sizes`, with `values` of the keys.

        Raises:
            BadInputError: the fabric refuses a value. CheckFailedError: a run did not end.
        """
        return [[each.time_ps for each in mine] for mine in self._results(values, sizes)]

    def protocols(self, values: Values, sizes: Sequence[Sequence[int]]) -> list[list[str]]:
        """Return the protocols in which these ran, "" for none; errors as `times_ps`."""
        return [[each.protocol for each in mine] for mine in self._results(values, sizes)]

    def _results(self, values: Values, sizes: Sequence[Sequence[int]]) -> list[list[CollectiveResult]]:
        asked = (values, tuple(map(tuple, sizes)))
        if asked not in self._found:
            self._found[asked] = self._run(values, asked[1])
        return self._found[asked]

    def _run(self, values: Values, sizes: Sequence[Sequence[int]]) -> list[list[CollectiveResult]]:
        tree = plain(self._tree)
        for key, value in zip(self.keys, values, strict=True):
            if value is not None:
                set_at(tree, key.name, key.written(value))
        items = []
        for compared, mine in zip(self.tables, sizes, strict=True):
            item = tree["traffic"][compared.item] | {"sizes": list(mine), "data": LENGTHS}
            items.append({name: value for name, value in item.items() if name not in ("repetitions", "warmup")})
        tree["traffic"] = items
        self.runs += 1
        found = run_scenario(parse_scenario(tree, self._place, units_required=True)).collectives
        results = iter(found)
        ordered = [[next(results) for _ in mine] for mine in sizes]
        self._progress(f"run {self.runs}: largest residual {100 * self._largest_residual(sizes, ordered):.1f} %")
        return ordered

    def _largest_residual(self, sizes: Sequence[Sequence[int]], results: Sequence[Sequence[CollectiveResult]]) -> float:
        """Return the largest difference of a modelled and a measured time, over the measured one."""
        differences = []
        for compared, mine, found in zip(self.tables, sizes, results, strict=True):
            measured_ps = {each.size_bytes: each.time_ps for each in compared.table.measurements}
            differences += [abs(each.time_ps / measured_ps[size] - 1) for size, each in zip(mine, found, strict=True)]
        return max(differences, default=0.0)
