"""results.json, read back: every key and value checked, errors with their place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import GenericAlias
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from weft.errors import BadInputError
from weft.quantities.json_problems import quoted
from weft.recording.schema import LARGEST
from weft.results.json_files import read_object, validated
from weft.results.kinds import ResultKind, result_kinds
from weft.results.model import Results, keys_only_where_there_are_some, result_keys

_UNBOUNDED = ("made_by", "counters", "registers")
"""Keys of results.json with numbers in ranges of the scenario and of the P4 program."""
_MAY_BE_NEGATIVE = ("packet_conservation", "rdma")


def read_results(path: Path) -> Results:
    """Read a results.json.

    Raises:
        BadInputError: it cannot be read, is no JSON, or a key's value is not what `weft run` writes; says which.
    """
    tree = read_object(path)
    _check_numbers(path, tree)
    made_by = tree.get("made_by")
    if isinstance(made_by, dict):
        made_by["parameters"] = dict(made_by)
    for key in keys_only_where_there_are_some():
        tree.setdefault(key, [])
    tree["absent"] = [key for key in (*result_keys(), "ok") if key not in tree]
    ok = tree.pop("ok", None)
    tree["traffic"] = {}
    traffic = _traffic(path, tree)
    results = replace(validated(_adapter_of_results(), path, tree), traffic=traffic)
    if "ok" not in results.absent and ok is not results.ok:
        raise BadInputError(f"ok: is {quoted(ok)}; of these results it must be {str(results.ok).lower()}", place=path)
    _check_figures(path, results)
    return results


def _traffic(path: Path, tree: dict[str, Any]) -> dict[str, list[Any]]:
    """Take the results of each kind of traffic out of the tree, and check them."""
    return {
        kind.key: validated(_adapter(kind), path, {kind.key: tree.pop(kind.key)})[kind.key]
        for kind in result_kinds()
        if kind.key in tree
    }


@cache
def _adapter_of_results() -> TypeAdapter[Results]:
    return TypeAdapter(Results)


@cache
def _adapter(kind: ResultKind[Any]) -> TypeAdapter[dict[str, list[Any]]]:
    lists: Any = GenericAlias(dict, (str, GenericAlias(list, (kind.model,))))
    return TypeAdapter(lists, config=ConfigDict(arbitrary_types_allowed=True))


def _check_numbers(path: Path, tree: Mapping[str, Any]) -> None:
    for key, value in _numbers({key: each for key, each in tree.items() if key not in _UNBOUNDED}):
        smallest = -LARGEST if key.startswith(_MAY_BE_NEGATIVE) else 0
        if not smallest <= value <= LARGEST and (isinstance(value, int) or math.isinf(value)):
            raise BadInputError(f"{key}: {quoted(value)} is out of range", place=path, valid=f"{smallest} to {LARGEST}")


def _numbers(value: Any, place: str = "") -> Iterator[tuple[str, int | float]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _numbers(each, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _numbers(each, f"{place}[{index}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place, value


def _check_figures(path: Path, results: Results) -> None:
    """Check what a figure's type alone does not say, and a page divides by or puts side by side."""

    def require(right: bool, place: str, what: str) -> None:
        if not right:
            raise BadInputError(f"{place}: {what}", place=path)

    interval_ps = results.made_by.observe.interval
    require(
        interval_ps <= LARGEST,
        "made_by.observe.interval",
        f"{interval_ps} is out of range (valid: 1 to {LARGEST})",
    )
    for index, phase in enumerate(results.phases):
        wrong = f"{phase.end_ps} lies before start_ps, {phase.start_ps}"
        require(phase.end_ps >= phase.start_ps, f"phases[{index}].end_ps", wrong)
    for kind in result_kinds():
        for index, each in enumerate(results.of(kind)):
            for key, wrong in kind.problems(each):
                require(False, f"{kind.key}[{index}].{key}", wrong)
