"""YAML of scenario files: read with the lines that keys stand on, bounded in size, depth and what aliases stand for."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ruamel.yaml
import ruamel.yaml.error
from ruamel.yaml.constructor import DuplicateKeyError, RoundTripConstructor
from ruamel.yaml.events import (
    AliasEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from weft.errors import BadInputError
from weft.quantities.units import shown

MAX_FILE_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_NODES = 20_000
"""Keys and values of a file, those that aliases stand for included."""
MAX_SCALAR_CHARACTERS = 4096
MAX_NUMBER_CHARACTERS = 64
_NUMBER = re.compile(r"[-+]?[0-9][-+0-9a-fA-FxXoO_.]*\Z", re.ASCII)
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Constructor(RoundTripConstructor):
    """Reads what looks like a date as the text that it is: no key takes a date."""


_Constructor.add_constructor(_TIMESTAMP, lambda self, node: self.construct_scalar(node))


def read_mapping(path: Path, what: str) -> dict[str, Any]:
    """Return the mapping in a YAML file, with the lines that keys stand on; empty for an empty file.

    Raises:
        BadInputError: the file cannot be read, is no YAML, is too large or too deep, or does not hold a mapping; `what`
            says what it should be.
    """
    try:
        with path.open("rb") as file:
            # One byte more than is valid, which shows that there is more without reading all of it.
            content = file.read(MAX_FILE_BYTES + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise BadInputError(f"cannot be read: {error.strerror}", place=path) from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"is not UTF-8 text: {error}", place=path) from None
    if len(content) > MAX_FILE_BYTES:
        raise BadInputError(f"is too large for {what}", place=path, valid=f"up to {MAX_FILE_BYTES:,} B")
    tree = read_yaml(text, str(path))
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        kind = "list" if isinstance(tree, list) else "single value"
        raise BadInputError(f"{what} is a mapping of keys, not a {kind}", place=path)
    return tree


def read_yaml(text: str, place: str, most_nodes: int | None = None) -> Any:
    """Return what a YAML text holds, of up to `most_nodes` keys and values; mappings and lists know their lines.

    Raises:
        BadInputError: it is no YAML, or beyond the limits above; says where.
    """
    yaml = ruamel.yaml.YAML(typ="rt", pure=True)
    yaml.Constructor = _Constructor
    try:
        limits = _Limits(place, MAX_NODES if most_nodes is None else most_nodes)
        # Before anything is built: a few lines of aliases may stand for more than memory holds.
        for event in yaml.parse(text):
            limits.see(event)
        tree = yaml.load(text)
    except DuplicateKeyError as error:
        name = re.search(r'duplicate key "(.*?)" with', str(error.problem))
        key = f"the key '{name.group(1)}'" if name else "a key"
        raise BadInputError(f"{place}{_line(error)}: {key} is given twice") from None
    except ruamel.yaml.error.MarkedYAMLError as error:
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise BadInputError(f"{place}{_line(error)}: is not YAML: {problem}") from None
    except ruamel.yaml.error.YAMLError as error:
        raise BadInputError(f"is not YAML: {' '.join(str(error).split())}", place=place) from None
    except (ValueError, ArithmeticError, AssertionError, RecursionError, TypeError, AttributeError) as error:
        # A value that YAML's rules take for a number, which it is not, or a %YAML of no version that the reader knows.
        raise BadInputError(f"is not YAML that can be used: {error}", place=place) from None
    _check_keys(tree, place)
    return tree


def _check_keys(tree: Any, place: str) -> None:
    if isinstance(tree, dict):
        for key, value in tree.items():
            if isinstance(key, bool) or not isinstance(key, str | int):
                line = _line_of_key(tree, key)
                raise BadInputError(
                    f"{place}{f':{line}' if line else ''}: {shown(key)} is no key",
                    valid="a name, or a class's number",
                )
            _check_keys(value, place)
    elif isinstance(tree, list):
        for value in tree:
            _check_keys(value, place)


def _line_of_key(tree: Any, key: Any) -> int | None:
    lines = tree.lc.data or {}
    return lines[key][0] + 1 if key in lines else None


def yaml_text(tree: Mapping[str, Any]) -> str:
    """Return a tree of plain values as YAML in blocks."""
    text = io.StringIO()
    yaml = ruamel.yaml.YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.dump(tree, text)
    return text.getvalue()


def _line(error: ruamel.yaml.error.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f":{mark.line + 1}" if mark is not None else ""


class _Limits:
    """Follows a file's events, in constant memory for each level and anchor."""

    def __init__(self, place: str, most_nodes: int) -> None:
        self._place = place
        self._most_nodes = most_nodes
        self._nodes = 0
        # Of every open mapping or list: its anchor, and how many nodes came before it.
        self._open: list[tuple[str | None, int]] = []
        # Of every anchor: how many nodes it stands for, and how deep these go.
        self._anchored: dict[str, tuple[int, int]] = {}
        self._deepest: list[int] = []

    def see(self, event: Event) -> None:
        """Take note of an event. Raises BadInputError."""
        if isinstance(event, ScalarEvent):
            self._scalar(event)
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            self._refuse_tag(event)
            self._count(event, 1)
            self._open.append((event.anchor, self._nodes - 1))
            self._deepest.append(len(self._open))
            self._refuse_depth(event, len(self._open))
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            anchor, before = self._open.pop()
            deepest = self._deepest.pop()
            if anchor is not None:
                self._anchored[anchor] = (self._nodes - before, deepest - len(self._open))
            self._reach(deepest)
        elif isinstance(event, AliasEvent):
            self._alias(event)

    def _alias(self, event: AliasEvent) -> None:
        # A structure that contains itself would have every later check recurse for ever.
        if any(anchor == event.anchor for anchor, _ in self._open):
            raise self._error(event, f"*{event.anchor} stands within what it stands for")
        nodes, depth = self._anchored.get(event.anchor, (1, 0))
        self._count(event, nodes)
        self._refuse_depth(event, len(self._open) + depth)
        self._reach(len(self._open) + depth)

    def _scalar(self, event: ScalarEvent) -> None:
        self._refuse_tag(event)
        self._count(event, 1)
        if event.anchor is not None:
            self._anchored[event.anchor] = (1, 0)
        length = len(event.value)
        if length > MAX_SCALAR_CHARACTERS:
            raise self._error(event, f"a value of {length:,} characters", valid=f"up to {MAX_SCALAR_CHARACTERS:,}")
        if length > MAX_NUMBER_CHARACTERS and event.style is None and _NUMBER.match(event.value):
            raise self._error(event, f"a number of {length:,} digits", valid=f"up to {MAX_NUMBER_CHARACTERS}")

    def _count(self, event: Event, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > self._most_nodes:
            raise self._error(event, f"more than {self._most_nodes:,} keys and values, aliases counted")

    def _reach(self, depth: int) -> None:
        if self._deepest:
            self._deepest[-1] = max(self._deepest[-1], depth)

    def _refuse_depth(self, event: Event, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self._error(event, f"nested more than {MAX_DEPTH} deep")

    def _refuse_tag(self, event: Any) -> None:
        # Untagged, or "!" for a quoted text.
        tag = None if event.ctag is None else str(event.ctag)
        if tag and not (isinstance(event, ScalarEvent) and tag == "!"):
            raise self._error(event, f"the tag {shown(tag)} means nothing here; write the value alone")

    def _error(self, event: Event, problem: str, *, valid: str = "") -> BadInputError:
        return BadInputError(problem, place=f"{self._place}:{event.start_mark.line + 1}", valid=valid)
