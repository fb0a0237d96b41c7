"""Changes single keys of a scenario's text and leaves all other text alone: comments, order, the author's layout.

The new text replaces the characters of one node. Whatever the layout, the result is read again and compared with the
change that was asked for; where it differs (aliases, merged keys), ruamel.yaml writes the whole text instead.
"""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Sequence
from typing import Any

import ruamel.yaml
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from weft.errors import BadInputError
from weft.quantities.units import shown
from weft.scenario import read_yaml
from weft.scenario.dotted import key_of, plain

_INDENT = 2
_WIDTH = 1 << 20
"""Columns after which ruamel.yaml would break lines: never."""

Path = Sequence[str | int]


def set_key(text: str, path: Path, value: Any, place: str) -> str:
    """Return the text with a key set; sections that are not there are made, and a list grows by its next position.

    `value` is plain data. Raises BadInputError: the text is no YAML, or the path leads through something else.
    """
    _require_path(path)
    tree = _read(text, place)
    expected = plain(tree)
    _set(expected, path, plain(value))
    return _verified(text, tree, expected, lambda: _Text(text).with_value(path, value), place, path)


def remove_key(text: str, path: Path, place: str) -> str:
    """Return the text without a key or a list's item; a section of the scenario left without keys goes, too.

    Raises BadInputError: the text is no YAML, or has no such key.
    """
    _require_path(path)
    tree = _read(text, place)
    expected = plain(tree)
    removed = _removed(expected, path)
    return _verified(text, tree, expected, lambda: _Text(text).without(removed), place, path)


def flow(value: Any) -> str:
    """Return a value as YAML on one line."""
    yaml = ruamel.yaml.YAML(typ="safe", pure=True)
    yaml.default_flow_style = True
    yaml.width = _WIDTH
    yaml.allow_unicode = True
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue().removesuffix("\n").removesuffix("\n...")


def _require_path(path: Path) -> None:
    if not path or not isinstance(path[0], str):
        raise BadInputError(f"{list(path)} is not the path of a key")


def _read(text: str, place: str) -> Any:
    tree = read_yaml(text, place)
    if tree is not None and not isinstance(tree, dict):
        raise BadInputError("is not a mapping of keys: edit the text", place=place)
    return {} if tree is None else tree


def _verified(text: str, tree: Any, expected: Any, edited: Any, place: str, path: Path) -> str:
    try:
        made: str = edited()
        if _is_same(made, expected, place):
            return made
    except (_NoPlaceError, BadInputError):
        pass
    made = _dumped(_merged(tree, expected), text)
    if not _is_same(made, expected, place):
        raise BadInputError(f"{key_of(path)} cannot be changed in the form: edit the text", place=place)
    return made


def _is_same(text: str, expected: Any, place: str) -> bool:
    found = read_yaml(text, place)
    return _compared({} if found is None else plain(found)) == _compared(expected)


def _compared(tree: Any) -> str:
    """Return a text that is equal only for equal values of equal types."""
    return json.dumps(tree, sort_keys=True, default=str)


def _merged(tree: Any, expected: Any) -> Any:
    """Return `expected`, with everything of the tree that was read (comments, order) where both are the same."""
    if isinstance(tree, dict) and isinstance(expected, dict):
        result = copy.copy(tree)
        names = {str(key): key for key in tree}
        for name, key in names.items():
            if name not in expected:
                del result[key]
        for name, value in expected.items():
            key = names.get(name, name)
            if name in names:
                result[key] = _merged(tree[key], value)
            else:
                result[_key_as_written(name)] = _as_written(value)
        return result
    return tree if _compared(plain(tree)) == _compared(expected) else _as_written(expected)


def _as_written(value: Any) -> Any:
    """Return plain data with the keys that a file has: `plain` makes texts of classes' numbers."""
    if isinstance(value, dict):
        return {_key_as_written(key): _as_written(each) for key, each in value.items()}
    return [_as_written(each) for each in value] if isinstance(value, list) else value


def _key_as_written(key: str | int) -> str | int:
    return int(key) if isinstance(key, str) and key.isascii() and key.isdigit() else key


def _dumped(tree: Any, text: str) -> str:
    if not tree:
        return ""
    yaml = ruamel.yaml.YAML(typ="rt", pure=True)
    yaml.width = _WIDTH
    yaml.preserve_quotes = True
    if "\n  - " in text:
        yaml.indent(mapping=_INDENT, sequence=2 * _INDENT, offset=_INDENT)
    stream = io.StringIO()
    yaml.dump(tree, stream)
    return stream.getvalue()


def _set(tree: Any, path: Path, value: Any) -> None:
    here: Any = tree
    for depth, part in enumerate(path):
        where = key_of(path[:depth])
        is_list = isinstance(here, list)
        if isinstance(part, int) != is_list or not (is_list or isinstance(here, dict)):
            raise BadInputError(f"{where} is {shown(here)}; it has no {key_of([part])}")
        if isinstance(part, int) and part > len(here):
            raise BadInputError(f"{where} has no [{part}]", valid=f"0 to {len(here)}")
        if isinstance(part, int) and part == len(here):
            here.append(None)
        if depth == len(path) - 1:
            here[part] = value
            return
        below = here[part] if isinstance(part, int) or part in here else None
        if below is None:
            below = here[part] = [] if isinstance(path[depth + 1], int) else {}
        here = below


def _removed(tree: Any, path: Path) -> Path:
    """Remove a key from plain data, and sections of the scenario that it leaves empty; returns the path removed."""
    holders = [tree]
    for depth, part in enumerate(path):
        here = holders[-1]
        try:
            if not isinstance(part, int if isinstance(here, list) else str):
                raise TypeError
            holders.append(here[part])
        except (KeyError, IndexError, TypeError):
            raise BadInputError(f"there is no {key_of(path[: depth + 1])}") from None
    length = len(path)
    # An item of the traffic must not lose the section that says of which kind it is.
    may_go = not any(isinstance(part, int) for part in path[:-1])
    while length > 1 and may_go and len(holders[length - 1]) == 1:
        length -= 1
    del holders[length - 1][path[length - 1]]
    return path[:length]


class _NoPlaceError(Exception):
    """The text has no node at which a change could be written."""


class _Text:
    """A text with the places of its nodes."""

    def __init__(self, text: str) -> None:
        self._text = text
        root = ruamel.yaml.YAML(typ="safe", pure=True).compose(text)
        self._root: Node | None = root if not (isinstance(root, ScalarNode) and root.value == "") else None

    def with_value(self, path: Path, value: Any) -> str:
        value = _as_written(value)
        if self._root is None:
            gap = "" if not self._text or self._text.endswith("\n") else "\n"
            return f"{self._text}{gap}{_block(_nested(path, value), 0)}"
        node: Node = self._root
        holders: list[Node] = []
        for depth, part in enumerate(path):
            child = _child(node, part)
            if child is None:
                return self._with_new(holders, node, part, _nested(path[depth + 1 :], value))
            if _is_nothing(child) and depth < len(path) - 1:
                return self._replaced(child, _nested(path[depth + 1 :], value), [*holders, node])
            holders.append(node)
            node = child
        return self._replaced(node, value, holders)

    def without(self, path: Path) -> str:
        node = self._root
        holders: list[Node] = []
        for part in path:
            if node is None:
                raise _NoPlaceError
            holders.append(node)
            node = _child(node, part)
        holder = holders[-1]
        index = _position(holder, path[-1])
        if not isinstance(holder, CollectionNode) or index is None:
            raise _NoPlaceError
        spans = [self._span(each) for each in holder.value]
        if holder.flow_style:
            return self._without_flow(spans, index)
        if len(spans) == 1:
            # What holds it stays, without content.
            own = holders[-2] if len(holders) > 1 else None
            empty = "[]" if isinstance(holder, SequenceNode) else "{}"
            if own is None:
                return self._cut(self._line_start(spans[0][0]), self._line_end(spans[0][1]))
            return self._put(self._after_mark(holder, own), _end(holder), f" {empty}")
        begin, end = spans[index]
        if isinstance(holder, SequenceNode):
            begin = self._text.rfind("-", 0, begin + 1)
        if self._text[self._line_start(begin) : begin].strip():
            # The first key of a list's item: the next one takes its place behind the dash.
            if index + 1 == len(spans):
                raise _NoPlaceError
            return self._cut(begin, spans[index + 1][0])
        return self._cut(self._line_start(begin), self._line_end(end))

    def _without_flow(self, spans: Sequence[tuple[int, int]], index: int) -> str:
        if index + 1 < len(spans):
            return self._cut(spans[index][0], spans[index + 1][0])
        return self._cut(spans[index - 1][1] if index else spans[index][0], spans[index][1])

    def _span(self, entry: Any) -> tuple[int, int]:
        """Return where an item, or a key with its value, begins and ends."""
        first, last = entry if isinstance(entry, tuple) else (entry, entry)
        return first.start_mark.index, max(_end(first), _end(last))

    def _with_new(self, holders: Sequence[Node], holder: Node, part: str | int, value: Any) -> str:
        """Add a key or an item to what has others."""
        if not isinstance(holder, CollectionNode):
            raise _NoPlaceError
        entry = value if isinstance(part, int) else {_key_as_written(part): value}
        if holder.flow_style:
            written = flow(entry)
            written = written if isinstance(part, int) else written[1:-1]
            if not holder.value:
                return self._put(holder.start_mark.index + 1, holder.start_mark.index + 1, written)
            end = self._span(holder.value[-1])[1]
            return self._put(end, end, f", {written}")
        begin, end = self._span(holder.value[0])[0], self._span(holder.value[-1])[1]
        column = holder.start_mark.column
        if isinstance(part, int):
            column = self._column(self._text.rfind("-", 0, begin + 1))
            written = f"{' ' * column}- {_block(entry, column + 2).lstrip(' ')}"
        else:
            written = _block(entry, column)
        at = self._line_end(end)
        gap = "" if self._text[:at].endswith("\n") else "\n"
        return self._put(at, at, gap + written)

    def _replaced(self, node: Node, value: Any, holders: Sequence[Node]) -> str:
        holder = holders[-1]
        is_within_flow = any(isinstance(each, CollectionNode) and each.flow_style for each in holders)
        is_block = isinstance(node, CollectionNode) and not node.flow_style
        is_literal = isinstance(node, ScalarNode) and node.style in ("|", ">")
        is_large = bool(value) and isinstance(value, dict | list) and len(flow(value)) > 60 and not is_within_flow
        if not (is_block or is_literal or is_large or _is_nothing(node)):
            return self._put(node.start_mark.index, node.end_mark.index, flow(value))
        begin, end = self._after_mark(node, holder), _end(node)
        if not is_large:
            tail = "\n" if self._text[begin:end].endswith("\n") else ""
            return self._put(begin, end, f" {flow(value)}{tail}")
        own = holder.start_mark.column
        if isinstance(holder, SequenceNode):
            own = self._column(begin - 1)
            written = _block(value, own + _INDENT).removesuffix("\n").lstrip(" ")
            return self._put(begin, end, f" {written}")
        return self._put(begin, end, "\n" + _block(value, own + _INDENT).removesuffix("\n"))

    def _after_mark(self, node: Node, holder: Node) -> int:
        """Return the place behind the colon or the dash before a node."""
        if isinstance(holder, MappingNode):
            (key,) = [key for key, value in holder.value if value is node][:1] or [None]
            if key is None:
                raise _NoPlaceError
            return self._text.index(":", key.end_mark.index) + 1
        return self._text.rfind("-", 0, node.start_mark.index + 1) + 1

    def _line_start(self, index: int) -> int:
        return self._text.rfind("\n", 0, index) + 1

    def _column(self, index: int) -> int:
        return index - self._line_start(index)

    def _line_end(self, index: int) -> int:
        """Return the beginning of the line after a node that ends at `index`."""
        if index and self._text[index - 1] == "\n":
            return index
        found = self._text.find("\n", index)
        return len(self._text) if found < 0 else found + 1

    def _cut(self, begin: int, end: int) -> str:
        return self._put(begin, end, "")

    def _put(self, begin: int, end: int, text: str) -> str:
        return self._text[:begin] + text + self._text[end:]


def _child(node: Node, part: str | int) -> Node | None:
    index = _position(node, part)
    if index is None:
        return None
    entry = node.value[index]
    found: Node = entry[1] if isinstance(entry, tuple) else entry
    return found


def _position(node: Node, part: str | int) -> int | None:
    if isinstance(node, MappingNode):
        found = (index for index, (key, _) in enumerate(node.value) if key.value == str(part))
        return next(found, None)
    if isinstance(node, SequenceNode) and isinstance(part, int):
        return part if part < len(node.value) else None
    return None


def _is_nothing(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value == "" and node.style is None


def _end(node: Node) -> int:
    """Return the end of a node's content; a block's own mark is behind the comments that follow."""
    if isinstance(node, CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return max(_end(each) for each in last) if isinstance(last, tuple) else _end(last)
    return int(node.end_mark.index)


def _nested(path: Path, value: Any) -> Any:
    for part in reversed(path):
        value = [value] if isinstance(part, int) else {_key_as_written(part): value}
    return value


def _block(value: Any, column: int) -> str:
    """Return a value as lines from a column on; what is short stands on one line."""
    if not isinstance(value, dict | list) or not value:
        return f"{' ' * column}{flow(value)}\n"
    lines = []
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        head = f"{' ' * column}{flow(key)}:" if isinstance(value, dict) else f"{' ' * column}-"
        is_open = isinstance(each, dict) or (isinstance(each, list) and any(isinstance(e, dict | list) for e in each))
        if not each or not is_open:
            lines.append(f"{head} {flow(each)}\n")
        elif isinstance(value, dict):
            lines.append(f"{head}\n{_block(each, column + _INDENT)}")
        else:
            lines.append(f"{head} {_block(each, column + _INDENT).lstrip(' ')}")
    return "".join(lines)
