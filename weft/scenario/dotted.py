"""Parameters by their place in a scenario: `fabric.spines`, `traffic[0].sizes`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml.scalarbool import ScalarBoolean

from weft.errors import BadInputError
from weft.quantities.units import shown

_PART = re.compile(r"([^.\[\]]+)|\[([0-9]{1,6})\]")


def split_path(path: str) -> list[str | int]:
    """Return the keys and list positions of a dotted path; `traffic.0` and `traffic[0]` mean the same.

    Raises:
        BadInputError: it is not one.
    """
    parts: list[str | int] = []
    rest = path
    while rest:
        match = _PART.match(rest)
        if match is None:
            raise BadInputError(f"'{path}' is not a parameter's path, such as fabric.spines or traffic[0].sizes")
        name, index = match.groups()
        parts.append(int(index) if index is not None else int(name) if re.fullmatch("[0-9]{1,6}", name) else name)
        rest = rest[match.end() :]
        if rest.startswith(".") and len(rest) > 1:
            rest = rest[1:]
    if not parts or not isinstance(parts[0], str):
        raise BadInputError(f"'{path}' is not a parameter's path, such as fabric.spines or traffic[0].sizes")
    return parts


def set_at(tree: dict[str, Any], path: str, value: Any) -> None:
    """Set a parameter in a scenario's tree; sections that are not there are made.

    Raises:
        BadInputError: the path leads through something that is no section, or past the end of a list.
    """
    parts = split_path(path)
    here: Any = tree
    for depth, part in enumerate(parts):
        where = key_of(parts[:depth])
        if isinstance(part, int):
            if not isinstance(here, list):
                raise BadInputError(f"{where} is {shown(here)}, no list")
            if part >= len(here):
                valid = f"valid: 0 to {len(here) - 1}" if here else "it is empty"
                raise BadInputError(f"{where} has no [{part}]; {valid}")
        elif not isinstance(here, dict):
            if isinstance(here, list):
                raise BadInputError(f"{where} is a list; give a position, such as {where}[0]")
            raise BadInputError(f"{where} is {shown(here)}, no section; set {where} as a whole")
        if depth == len(parts) - 1:
            here[part] = value
        else:
            if isinstance(part, str) and here.get(part) is None:
                here[part] = {}
            if isinstance(here[part], dict):
                # Aliases of a file stand for the same section, of which this is one use.
                here[part] = here[part].copy()
            here = here[part]


def plain(tree: Any) -> Any:
    """Return a deep copy of a tree in Python's own types, without what the YAML reader remembers of the file."""
    if isinstance(tree, Mapping):
        return {str(key): plain(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [plain(value) for value in tree]
    if isinstance(tree, ScalarBoolean):
        return bool(tree)
    for kind in (bool, int, float, str):
        if isinstance(tree, kind):
            return kind(tree)
    return tree


def key_of(path: Sequence[str | int]) -> str:
    """Return a path as people write it: `traffic[0].sizes`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
