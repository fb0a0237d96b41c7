"""Annotations and documentation in P4Info messages (P4Runtime specification, section 6.1.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compiler import ast
from compiler.source import Token

# Carried by fields of their own.
_ELSEWHERE = frozenset(["name", "id", "brief", "description"])


def add_annotations(message: Any, annotations: Iterable[ast.Annotation], skip: Iterable[str] = ()) -> None:
    """Fill `annotations` and `structured_annotations` of a message."""
    skipped = set(skip)
    for annotation in annotations:
        if annotation.name in skipped:
            continue
        if annotation.structured:
            _structured(message.structured_annotations.add(), annotation)
        elif annotation.name not in _ELSEWHERE:
            message.annotations.append(_text(annotation))


def add_documentation(message: Any, annotations: Iterable[ast.Annotation]) -> None:
    """@brief and @description."""
    for annotation in annotations:
        if annotation.name in ("brief", "description"):
            setattr(message.doc, annotation.name, "".join(annotation.strings()))


def wanted_id(annotations: Iterable[ast.Annotation]) -> int | None:
    """The number of an @id."""
    for annotation in annotations:
        if annotation.name == "id":
            numbers = annotation.integers()
            if numbers:
                return numbers[0]
    return None


def _text(annotation: ast.Annotation) -> str:
    if not annotation.tokens:
        return f"@{annotation.name}"
    return f"@{annotation.name}({join_tokens(annotation.tokens)})"


def join_tokens(tokens: list[Token]) -> str:
    """Tokens as source text, with a space where the source had one."""
    text = ""
    for index, token in enumerate(tokens):
        if index and tokens[index - 1].source is token.source and tokens[index - 1].end < token.offset:
            text += " "
        text += token.text
    return text


def _structured(message: Any, annotation: ast.Annotation) -> None:
    message.name = annotation.name
    items: list[list[Token]] = [[]]
    depth = 0
    for token in annotation.tokens:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token.kind, 0)
        if token.kind == "," and depth == 0:
            items.append([])
        else:
            items[-1].append(token)
    for item in items:
        if len(item) >= 3 and item[0].kind == "id" and item[1].kind == "=":
            pair = message.kv_pair_list.kv_pairs.add()
            pair.key = item[0].text
            _value(pair.value, item[2:])
        elif item:
            _value(message.expression_list.expressions.add(), item)


def _value(message: Any, tokens: list[Token]) -> None:
    first = tokens[0]
    if first.kind == "text":
        message.string_value = "".join(ast.unquote(token.text) for token in tokens if token.kind == "text")
    elif first.kind in ("true", "false"):
        message.bool_value = first.kind == "true"
    elif first.kind == "integer":
        message.int64_value = ast.parse_integer(first.text)[0]
    elif first.kind == "-" and len(tokens) > 1:
        message.int64_value = -ast.parse_integer(tokens[1].text)[0]
    else:
        message.string_value = join_tokens(tokens)
