"""Walks over the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any

from weft.compiler import ast

# What the checker adds leads out of the tree, or repeats it.
_ADDED = frozenset(
    [
        "span",
        "type",
        "value",
        "declaration",
        "target_declaration",
        "bindings",
        "ordered",
        "signature",
        "combined",
    ]
)


@cache
def _children(kind: Any) -> tuple[str, ...]:
    return tuple(
        entry.name
        for entry in fields(kind)
        if entry.name not in _ADDED
        and not (kind is ast.Call and entry.name in ("kind", "target"))
        and not (kind is ast.Switch and entry.name == "table")
        and not (kind is ast.InstanceDeclaration and entry.name == "call")
    )


def children(node: ast.Node) -> Iterator[ast.Node]:
    """The nodes written directly within `node`."""
    kind: Any = type(node)
    for name in _children(kind):
        yield from _nodes(getattr(node, name))


def _nodes(value: Any) -> Iterator[ast.Node]:
    if isinstance(value, ast.Node):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _nodes(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _nodes(item)


def walk(node: ast.Node) -> Iterator[ast.Node]:
    """`node` and all below it, outer ones first."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(list(children(current))))
