"""Bodies of functions, actions and controls, inlined where they are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from weft.compiler import ast
from weft.compiler.budgets import CALL_DEPTH
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import lower_statements
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.labels import labeled
from weft.compiler.source import Span


def inline_body(context: Context, frame: Frame, body: Sequence[ast.Node], span: Span | None) -> None:
    """Lower a body in place; its `return` jumps to its end."""
    label = context.new_label()
    frame.return_label = label
    with context.collecting() as code, context.in_frame(frame):
        lower_statements(context, body)
    context.out += labeled(label, code, span)


@contextmanager
def deeper(context: Context, call: ast.Call) -> Iterator[None]:
    """Inside a call: counts it, and how deep calls nest."""
    context.inlined.take(1, call.span)
    context.calls.depth += 1
    try:
        if context.calls.depth > CALL_DEPTH:
            context.refuse(f"calls nest more than {CALL_DEPTH} deep", call)
        yield
    finally:
        context.calls.depth -= 1
