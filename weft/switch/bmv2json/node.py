"""A cursor over parsed JSON that knows its path, so that every error names the bad place."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NoReturn

from weft.errors import Refusal

_HEX = re.compile(r"-?(0[xX])?[0-9a-fA-F]+\Z")
_PLAIN_NAME = re.compile(r"\w+\Z")
_MAX_CHOICES_SHOWN = 12


class Bmv2JsonError(Refusal, ValueError):
    """A BMv2 JSON document that cannot be used.

    The place is a path such as `$.pipelines[0].init_table`.
    """


def choices(valid: Iterable[object]) -> str:
    """`'a', 'b'` for an error message, shortened when there are many."""
    names = sorted(repr(name) for name in valid)
    shown = names[:_MAX_CHOICES_SHOWN]
    if len(names) > len(shown):
        shown.append(f"{len(names) - len(shown)} more")
    return ", ".join(shown) or "none"


class Node:
    """One JSON value and its path from the root `$`."""

    __slots__ = ("path", "value")

    def __init__(self, value: Any, path: str = "$") -> None:
        self.value = value
        self.path = path

    def fail(self, problem: str, *, valid: str = "") -> NoReturn:
        """Raise `Bmv2JsonError` at this place."""
        raise Bmv2JsonError(problem, place=self.path, valid=valid)

    def _expect(self, kind: type, description: str) -> Any:
        # bool is an int in Python, not in JSON
        if not isinstance(self.value, kind) or (kind is int and isinstance(self.value, bool)):
            self.fail(f"expected {description}, got {_shown(self.value)}")
        return self.value

    def string(self) -> str:
        """The value, which must be a string."""
        return str(self._expect(str, "a string"))

    def integer(self, minimum: int = 0, maximum: int = 2**63 - 1) -> int:
        """The value, which must be an integer within the bounds."""
        value = int(self._expect(int, "an integer"))
        if not minimum <= value <= maximum:
            self.fail(f"{value} is out of range", valid=f"{minimum} to {maximum}")
        return value

    def boolean(self) -> bool:
        """The value, which must be true or false; p4c also writes 0 and 1."""
        if type(self.value) is int and self.value in (0, 1):
            return bool(self.value)
        return bool(self._expect(bool, "true or false"))

    def hexstr(self) -> int:
        """The integer in a BMv2 hexstring (optionally signed, optionally with 0x)."""
        text = self.string()
        if not _HEX.match(text):
            self.fail(f"expected a hexadecimal string such as '0x0800', got {_shown(text)}")
        return int(text, 16)

    def one_of(self, valid: Collection[str]) -> str:
        """The value, which must be one of the strings in `valid`."""
        text = self.string()
        if text not in valid:
            self.fail(f"unknown value {text!r}", valid=choices(valid))
        return text

    def items(self, length: int | None = None) -> list[Node]:
        """The elements of the value, which must be an array (of `length` elements if given)."""
        value = self._expect(list, "an array")
        if length is not None and len(value) != length:
            self.fail(f"expected an array of {length} elements, got {len(value)}")
        return [Node(element, f"{self.path}[{index}]") for index, element in enumerate(value)]

    def entries(self) -> Iterator[tuple[str, Node]]:
        """Keys and values of the value, which must be an object."""
        for key, element in self._expect(dict, "an object").items():
            yield key, Node(element, self.path + _member(key))

    def __getitem__(self, key: str) -> Node:
        value = self._expect(dict, "an object")
        if key not in value:
            self.fail(f"attribute {key!r} is missing")
        return Node(value[key], self.path + _member(key))

    def optional(self, key: str) -> Node | None:
        """The attribute `key`, or None if it is absent or null."""
        value = self._expect(dict, "an object").get(key)
        return None if value is None else Node(value, self.path + _member(key))

    def array(self, key: str) -> list[Node]:
        """The elements of the array attribute `key`; [] if it is absent or null."""
        node = self.optional(key)
        return [] if node is None else node.items()

    def flag(self, key: str, default: bool = False) -> bool:
        """The boolean attribute `key`, or `default` if it is absent or null."""
        node = self.optional(key)
        return default if node is None else node.boolean()

    def name_in(self, table: Collection[str], what: str) -> str:
        """The value, which must be the name of one of the `what`s in `table`."""
        name = self.string()
        if name not in table:
            self.fail(f"unknown {what} {name!r}", valid=choices(table))
        return name


def _member(key: str) -> str:
    """Return the path suffix of a member; a key that is not a plain name, such as a.b, is quoted in brackets."""
    return f".{key}" if _PLAIN_NAME.match(key) else f"[{json.dumps(key, ensure_ascii=False)}]"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
