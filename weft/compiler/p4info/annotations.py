"""Annotations and documentation in P4Info messages (P4Runtime specification, section 6.1.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.compiler import ast
from weft.compiler.source import Token

# Carried by fields of their own.
_ELSEWHERE = frozenset(["name", "id", "brief", "description"])


def add_annotations(message: Any, annotations: Iterable[ast.Annotation], skip: Iterable[str] = ()) -> None:
    """Fill `annotations` and `structured_annotations` of a message."""
    skipped = set(skip)
    for annotation in annotations:
        if annotation.name in skipped:
            continue
        if annotation.elements is not None:
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
    for element in annotation.elements or []:
        if element.name is not None:
            pair = message.kv_pair_list.kv_pairs.add()
            pair.key = element.name
            _value(pair.value, element.expression.value)
        else:
            _value(message.expression_list.expressions.add(), element.expression.value)


def _value(message: Any, value: object) -> None:
    if isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int):
        message.int64_value = value
    else:
        message.string_value = str(value)
