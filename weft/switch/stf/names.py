"""What the names in a script refer to: scripts may leave out the front part of a control plane's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from weft.hints import did_you_mean
from weft.switch.stf.errors import StfStatementError

ObjectT = TypeVar("ObjectT")
_VALIDITY = re.compile(r"(^|\.)(\$valid\$?|valid|isValid\(\))$")


def resolve(objects: Mapping[str, ObjectT], name: str, what: str) -> ObjectT:
    """The object called `name`, or the only one whose name ends in `.name`, or that `name` ends in.

    StfStatementError if there is none, or more than one.
    """
    if name in objects:
        return objects[name]
    found = [each for each in objects if each.endswith(f".{name}")]
    found = found or [each for each in objects if name.endswith(f".{each}")]
    if not found:
        # tables named tbl_… are the compiler's own, around direct calls of actions
        short = {each.rpartition(".")[2] for each in objects if not each.startswith("tbl_")}
        hint = did_you_mean(name.rpartition(".")[2], short) if short else "the program has none"
        raise StfStatementError(f"unknown {what} '{name}'; {hint}")
    if len(found) > 1:
        raise StfStatementError(f"{what} '{name}' is ambiguous: {', '.join(sorted(found))}")
    return objects[found[0]]


def by_name(names: Iterable[str]) -> dict[str, str]:
    """Names as objects for `resolve`."""
    return {name: name for name in names}


def canonical_key_name(name: str) -> str:
    """One spelling for the ways to write a stack's element (`s$0`, `s[0]`) and a header's validity."""
    return _VALIDITY.sub(r"\1$valid$", re.sub(r"\$(\d+)", r"[\1]", name))
