"""Which results of several runs belong together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.results.kinds import result_kinds
from weft.sweeps.summary import shown
from weft.sweeps.table import Row, measured_name


@dataclass(frozen=True)
class Match:
    """A result and its counterparts: a row of each run, None where it has none."""

    name: str
    rows: tuple[Row | None, ...]


def matches(runs: Sequence[Sequence[Row]]) -> Iterator[Match]:
    """Yield results of a kind that belong together, given the rows of each run.

    Those with the same labels are matched, first with first; then, in their order, those that differ in one label. The
    rest has no counterpart: a ratio of results that differ in their algorithm and their size compares nothing.
    """
    measured = [[row for row in rows if "measured" in row] for rows in runs]
    labels = {measured_name(kind.key): (kind.name, *kind.labels, "data") for kind in result_kinds()}
    for kind in dict.fromkeys(row["measured"] for rows in measured for row in rows):
        of_kind = [[row for row in rows if row["measured"] == kind] for rows in measured]
        telling = _telling([row for rows in of_kind for row in rows], labels[kind])
        alike: dict[tuple[str, ...], list[Row | None]] = {}
        for number, rows in enumerate(of_kind):
            seen: dict[tuple[str, ...], int] = {}
            for row in rows:
                texts = tuple(_labels(row, labels[kind]))
                seen[texts] = seen.get(texts, 0) + 1
                alike.setdefault((*texts, str(seen[texts])), [None] * len(runs))[number] = row
        rest: list[tuple[int, Row]] = []
        for found in alike.values():
            there = [(number, row) for number, row in enumerate(found) if row is not None]
            if len(there) > 1:
                yield Match(_named(kind, there[0][1], telling), tuple(found))
            else:
                rest += there
        for pair in _nearly_alike(rest, labels[kind]):
            names = dict.fromkeys(_named(kind, row, telling) for row in pair.values())
            yield Match(" → ".join(names), tuple(pair.get(number) for number in range(len(runs))))


def _nearly_alike(rows: Sequence[tuple[int, Row]], labels: Sequence[str]) -> list[dict[int, Row]]:
    """Return rows, given with their runs' numbers, in groups of at most one row a run that differ in one label."""
    groups: list[dict[int, Row]] = []
    for number, row in sorted(rows, key=lambda each: each[0]):
        for group in groups:
            texts = [_labels(each, labels) for each in (*group.values(), row)]
            if number not in group and sum(len(set(of_label)) > 1 for of_label in zip(*texts, strict=True)) <= 1:
                group[number] = row
                break
        else:
            groups.append({number: row})
    return groups


def _telling(rows: Sequence[Row], labels: Sequence[str]) -> list[str]:
    """Return the first label, and those that distinguish rows."""
    return [*labels[:1], *(each for each in labels[1:] if len({shown(row.get(each)) for row in rows}) > 1)]


def _labels(row: Row, labels: Sequence[str]) -> list[str]:
    return [shown(row.get(label)) for label in labels]


def _named(kind: str, row: Row, labels: Sequence[str]) -> str:
    return ", ".join(each for each in _labels(row, labels) if each) or kind
