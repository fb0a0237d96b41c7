"""Resolves names in scripts, which may omit the first parts of a control plane name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from weft.hints import did_you_mean
from weft.switch.stf.errors import StfStatementError

ObjectT = TypeVar("ObjectT")
_VALIDITY = re.compile(r"(^|\.)(\$valid\$?|valid|isValid\(\))$")


def resolve(objects: Mapping[str, ObjectT], name: str, what: str) -> ObjectT:
    """Return the object called `name`, or the only one with a name that ends in `.name` or is a suffix of `name`.

    Raises StfStatementError if there is none, or more than one.
    """
    if name in objects:
        return objects[name]
    found = [each for each in objects if each.endswith(f".{name}")]
    found = found or [each for each in objects if name.endswith(f".{each}")]
    if not found:
        # the compiler makes tables named tbl_… for direct calls of actions
        short = {each.rpartition(".")[2] for each in objects if not each.startswith("tbl_")}
        hint = did_you_mean(name.rpartition(".")[2], short) if short else "the program has none"
        raise StfStatementError(f"unknown {what} '{name}'; {hint}")
    if len(found) > 1:
        raise StfStatementError(f"{what} '{name}' is ambiguous: {', '.join(sorted(found))}")
    return objects[found[0]]


def by_name(names: Iterable[str]) -> dict[str, str]:
    """Return names as objects for `resolve`."""
    return {name: name for name in names}


def canonical_key_name(name: str) -> str:
    """Return the canonical spelling of a stack's element (`s$0`, `s[0]`) or a header's validity."""
    return _VALIDITY.sub(r"\1$valid$", re.sub(r"\$(\d+)", r"[\1]", name))
