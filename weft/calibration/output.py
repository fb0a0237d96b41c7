"""Writes a scenario with fitted values; its comments stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import ruamel.yaml

from weft.quantities.yaml_files import read_mapping
from weft.scenario import Change, anchor_paths, apply_changes
from weft.scenario.dotted import set_at
from weft.system.writing import written_whole

_WIDE = 4096
"""Columns before the writer would break a line: never, so that lines stay as they are."""


def write_fitted(scenario: Path, changes: Sequence[Change], fitted: Mapping[str, str], target: Path) -> None:
    """Write a scenario file after `changes`, with the fitted values in place of its own.

    Relative paths of the scenario become absolute if the new file lies in another directory.

    Raises:
        BadInputError: the scenario cannot be read. EnvironmentLacksError: the file cannot be written.
    """
    tree = read_mapping(scenario, "a scenario")
    if changes or target.resolve().parent != scenario.resolve().parent:
        anchor_paths(tree, scenario.parent)
    apply_changes(tree, changes)
    for key, value in fitted.items():
        set_at(tree, key, value)
    yaml = ruamel.yaml.YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = _WIDE
    yaml.indent(mapping=2, sequence=4, offset=2)
    with written_whole(target) as partial, partial.open("w", encoding="utf-8") as file:
        yaml.dump(tree, file)
