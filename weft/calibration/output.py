"""Writes a scenario with fitted values; its comments and its layout stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.quantities.yaml_files import read_mapping
from weft.scenario import Change, anchor_paths, apply_changes
from weft.scenario.dotted import plain, set_at
from weft.system.writing import written_whole
from weft.workbench.editing import set_key

_Place = tuple[str | int, ...]


def write_fitted(scenario: Path, changes: Sequence[Change], fitted: Mapping[str, str], target: Path) -> None:
    """Write a scenario file after `changes`, with the fitted values in place of its own.

    Relative paths of the scenario become absolute if the new file lies in another directory.

    Raises:
        BadInputError: the scenario cannot be read. EnvironmentLacksError: the file cannot be written.
    """
    before = plain(read_mapping(scenario, "a scenario"))
    after = plain(before)
    if changes or target.resolve().parent != scenario.resolve().parent:
        anchor_paths(after, scenario.parent)
    apply_changes(after, changes)
    for key, value in fitted.items():
        set_at(after, key, value)
    # The file is small: `read_mapping` bounds its size.
    text = scenario.read_text(encoding="utf-8")
    for place, value in _differences(before, plain(after), ()):
        text = set_key(text, place, value, str(scenario))
    with written_whole(target) as partial:
        partial.write_text(text, encoding="utf-8")


def _differences(before: Any, after: Any, place: _Place) -> Iterator[tuple[_Place, Any]]:
    """Yield the places at which two trees differ, with the values of the second; nothing is taken out of the first."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() <= after.keys():
        for key, value in after.items():
            yield from _differences(before.get(key), value, (*place, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, (*place, number))
    elif before != after:
        yield place, after
