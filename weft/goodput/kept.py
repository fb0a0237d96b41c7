"""The share of time that is kept work as `weft goodput --out` has found it, with measured failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from weft.errors import BadInputError
from weft.goodput.made_by import made_by
from weft.goodput.report import JSON_FILE
from weft.quantities.json_problems import quoted
from weft.scenario import Scenario
from weft.topologies import FabricSpec


def kept_share_of(directory: Path, scenario: Scenario, fabric: FabricSpec) -> float:
    """Return the mean share of kept work of histories in a directory that `weft goodput --out` has written.

    Raises:
        BadInputError: it has none, or not of this cluster on this fabric; says where they differ.
    """
    file = directory / JSON_FILE
    if not file.is_file():
        raise BadInputError(
            f"has no {JSON_FILE}", place=directory, valid="a directory that weft goodput --out has written"
        )
    found = _read(file)
    expected = made_by(scenario, fabric)
    for section, value in expected.items():
        ran = found["made_by"].get(section)
        if ran != value:
            key, own, other = _difference(section, ran, value)
            raise BadInputError(
                f"made_by.{key} is {quoted(own)}, the scenario says {quoted(other)}: the histories are of another "
                "scenario, or need the same --set",
                place=file,
            )
    share: float = found["goodput"]["mean"]
    if share == 0:
        raise BadInputError("no work is kept, so an hour of it has no price", place=file)
    return share


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        share = found["goodput"]["mean"]
        if isinstance(found["made_by"], dict) and isinstance(share, int | float) and 0 <= share <= 1:
            return dict(found)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise BadInputError("is no file that weft goodput of this version has written", place=file)


def _difference(key: str, ran: Any, expected: Any) -> tuple[str, Any, Any]:
    """Return the first key at which two values differ, and both values there."""
    if isinstance(ran, dict) and isinstance(expected, dict):
        for name in expected | ran:
            if ran.get(name) != expected.get(name):
                return _difference(f"{key}.{name}", ran.get(name), expected.get(name))
    if isinstance(ran, list) and isinstance(expected, list) and len(ran) == len(expected):
        for number, (own, other) in enumerate(zip(ran, expected, strict=True)):
            if own != other:
                return _difference(f"{key}[{number}]", own, other)
    return key, ran, expected
