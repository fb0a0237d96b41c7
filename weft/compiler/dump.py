"""Readable dumps of the compiler's stages."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from weft.compiler.ir import LoweredProgram
from weft.compiler.source import Span, Token
from weft.compiler.types import Type

_BLANK_LINES_KEPT = 3
_SKIPPED = frozenset(["span", "declaration", "target", "bindings", "ordered", "signature", "name_token", "combined"])


def dump_tokens(tokens: list[Token]) -> str:
    """One token a line: place, kind, text."""
    lines = []
    for token in tokens:
        line, column = token.line_column()
        kind = token.kind if token.kind in ("id", "integer", "text", "end") else ""
        lines.append(f"{token.place().source.name}:{line}:{column}\t{kind}\t{token.text}")
    return "\n".join(lines)


def dump_text(tokens: list[Token]) -> str:
    """The program after preprocessing: each token on its own source line, with `#line` directives."""
    lines: list[str] = []
    name, number = "", 0
    for token in tokens[:-1]:
        place = token.place()
        line = place.source.line_column(place.offset)[0]
        if place.source.name != name or not 0 <= line - number <= _BLANK_LINES_KEPT:
            lines.append(f'#line {line} "{place.source.name}"')
            lines.append("")
        else:
            lines += [""] * (line - number)
        name, number = place.source.name, line
        lines[-1] += f" {token.text}" if lines[-1] else token.text
    return "\n".join(lines)


def dump_tree(node: Any) -> str:
    """A tree of dataclasses, one field a line, with the types found by the checker."""
    lines: list[str] = []
    _tree(node, "", 0, lines, set())
    return "\n".join(lines)


def _tree(value: Any, label: str, depth: int, lines: list[str], path: set[int]) -> None:
    indent = "  " * depth
    prefix = f"{label}: " if label else ""
    if isinstance(value, list | tuple):
        if not value:
            return
        lines.append(f"{indent}{prefix}[{len(value)}]")
        for item in value:
            _tree(item, "", depth + 1, lines, path)
    elif isinstance(value, dict):
        if value:
            lines.append(f"{indent}{prefix}{{{len(value)}}}")
            for key, item in value.items():
                _tree(item, str(key), depth + 1, lines, path)
    elif isinstance(value, Type | Token | Span):
        lines.append(f"{indent}{prefix}{value.text if isinstance(value, Token) else value}")
    elif is_dataclass(value) and not isinstance(value, type):
        if id(value) in path:
            lines.append(f"{indent}{prefix}{type(value).__name__} …")
            return
        type_ = getattr(value, "type", None)
        suffix = f" : {type_}" if isinstance(type_, Type) else ""
        lines.append(f"{indent}{prefix}{type(value).__name__}{suffix}")
        for entry in fields(value):
            if entry.name in _SKIPPED or (entry.name == "type" and suffix):
                continue
            inner = getattr(value, entry.name)
            if inner is None or inner == "" or inner is False:
                continue
            _tree(inner, entry.name, depth + 1, lines, path | {id(value)})
    else:
        lines.append(f"{indent}{prefix}{value!r}")


def dump_ir(program: LoweredProgram) -> str:
    """The lowered program."""
    return dump_tree(program)
