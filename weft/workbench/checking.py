"""Describes a scenario's text for the page: its keys as data, of which kinds they are, and what is wrong with them.

As a program, it takes file and folder as arguments and the text on standard input, and prints the description as JSON.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.errors import BadInputError, WeftError
from weft.scenario import anchor_paths, parse_scenario, read_yaml
from weft.scenario.dotted import key_of, plain
from weft.scenario.traffic import TOGETHER, TRAFFIC_KINDS
from weft.system.child_processes import python_environment, python_module
from weft.topologies.errors import TopologyError
from weft.topologies.kinds import kind_of_section

_UNKNOWN = re.compile(r"unknown key '(?P<key>[^']+)'")
_KEY = re.compile(r"(?P<key>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+|\[[0-9]+\])*)(?P<rest>:? .*)", re.DOTALL)


_LONGEST_S = 30.0
"""Time that classes of users may take to be imported."""


def described(text: str, file: str, folder: Path) -> dict[str, Any]:
    """Return a scenario's description, as `described_here`, with what it takes from users' files in another process.

    Classes are as their files are now, and neither see the token nor stop the workbench.
    """
    if not any(mark in text for mark in (".py:", ".cpp:")):
        return described_here(text, file, folder)
    problem = f"the check of what the scenario takes from users' files takes more than {_LONGEST_S:g} s"
    try:
        done = subprocess.run(
            [*python_module("weft.workbench.checking"), file, str(folder)],
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_LONGEST_S,
            env=python_environment(),
            check=False,
        )
        # Importing may print, too.
        found = json.loads(done.stdout.rpartition(b"\n")[2])
        if isinstance(found, dict) and found.keys() == {"tree", "kinds", "problems", "name"}:
            return found
        problem = "the check of what the scenario takes from users' files gave no answer"
    except subprocess.TimeoutExpired:
        pass
    except ValueError:
        problem = f"the check of what the scenario takes from users' files ended with status {done.returncode}"
    return {"tree": None, "kinds": {}, "problems": [{"key": None, "line": None, "text": problem}], "name": None}


def described_here(text: str, file: str, folder: Path) -> dict[str, Any]:
    """Return `tree` (null if the text is no mapping), `kinds` by key, `problems`, and the scenario's `name`.

    A problem has `key` and `line`, null where it has none, and `text`. Paths in the scenario are relative to `folder`.
    """
    try:
        tree = read_yaml(text, file)
    except BadInputError as error:
        return {"tree": None, "kinds": {}, "problems": _problems(error, file), "name": None}
    if tree is None:
        tree = {}
    if not isinstance(tree, dict):
        problem = {"key": None, "line": None, "text": "a scenario is a mapping of keys"}
        return {"tree": None, "kinds": {}, "problems": [problem], "name": None}
    shown = _finite(plain(tree))
    problems: list[dict[str, Any]] = []
    name = None
    try:
        anchor_paths(tree, folder)
        name = parse_scenario(tree, file, units_required=True).name
    except (WeftError, OSError, RecursionError) as error:
        problems = _problems(error, file)
    return {"tree": shown, "kinds": _kinds(shown), "problems": problems, "name": name}


def problems_of(message: str, file: str) -> list[dict[str, Any]]:
    """Return a command's message as `described` returns problems."""
    place = re.compile(rf"{re.escape(file)}(?::(?P<line>[0-9]+))?: (?P<text>.*)")
    found: list[dict[str, Any]] = []
    for line in message.splitlines():
        match = place.match(line)
        if match is None and found:
            found[-1]["text"] += f"\n{line}"
            continue
        number, text = (match["line"], match["text"]) if match else (None, line)
        key = _UNKNOWN.match(text) or _KEY.match(text)
        is_key = key is not None and (match is not None or ":" in text)
        found.append(
            {
                "key": key["key"] if key is not None and is_key else None,
                "line": int(number) if number else None,
                "text": text,
            }
        )
    return found


def _problems(error: Exception, file: str) -> list[dict[str, Any]]:
    return problems_of(str(error), file)


def _kinds(tree: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the kind of the fabric and of each item of the traffic, by key; null where it is unclear."""
    found: dict[str, str | None] = {}
    fabric = tree.get("fabric")
    try:
        found["fabric"] = kind_of_section(fabric if isinstance(fabric, Mapping) else {}).name
    except TopologyError:
        found["fabric"] = None
    _add_kinds(found, tree.get("traffic"), ["traffic"])
    return found


def _add_kinds(found: dict[str, str | None], items: Any, path: list[str | int]) -> None:
    for index, item in enumerate(items if isinstance(items, list) else []):
        own = [*path, index]
        kinds = [kind for kind in TRAFFIC_KINDS if isinstance(item, Mapping) and kind in item]
        found[key_of(own)] = kinds[0] if len(kinds) == 1 else None
        if kinds == [TOGETHER]:
            _add_kinds(found, item[TOGETHER], [*own, TOGETHER])


def _finite(value: Any) -> Any:
    """Return data that JSON can hold: infinite numbers, which no key takes, as texts."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)


if __name__ == "__main__":
    print()
    print(json.dumps(described_here(sys.stdin.read(), sys.argv[1], Path(sys.argv[2]))), end="")
