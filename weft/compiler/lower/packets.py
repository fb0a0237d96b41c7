"""packet_in and packet_out: extract, lookahead, advance, emit."""

from __future__ import annotations

from typing import Any

from weft.compiler import ast
from weft.compiler.ir import (
    Advance,
    Extract,
    Lookahead,
)
from weft.compiler.lower import build
from weft.compiler.lower.expressions import Expressions
from weft.compiler.lower.storage import member_types, scalar_type
from weft.compiler.lower.values import (
    HeaderElement,
    HeaderLiteral,
    HeaderValue,
    PacketValue,
    StackCursor,
    StructValue,
    UnionCursor,
)
from weft.compiler.types import (
    BOOL,
    StackType,
    StructType,
    TupleType,
    Type,
    bits,
    is_union,
    width_of,
)


class Packets(Expressions):
    """`packet_call` for their methods."""

    def packet_call(self, expression: ast.Call, packet: PacketValue) -> Any:
        """Emit a method of a packet and return its result."""
        name = expression.target.name
        if name == "extract":
            self._extract(expression)
            return None
        if name == "lookahead":
            return self._lookahead(expression)
        if name == "advance":
            self.emit(Advance(self.scalar(expression.ordered[0]), expression.span))
            return None
        if name == "emit":
            self.emit_headers(self.value(expression.ordered[0]), expression)
            return None
        self.refuse(f"BMv2 has no '{packet.kind}.{name}'", expression)

    def emit_headers(self, value: Any, where: ast.Node) -> None:
        """packet_out.emit."""
        raise NotImplementedError

    def _extract(self, expression: ast.Call) -> None:
        argument = expression.ordered[0]
        length = self.scalar(expression.ordered[1]) if len(expression.ordered) > 1 else None
        span = expression.span
        if argument is None:
            type_ = self.frame.type(next(iter(expression.bindings.values())))
            self.emit(Extract("regular", self.temporary(type_, "ignored").name, None, length, span))
            return
        target = self.target(argument)
        if isinstance(target, HeaderValue):
            self.emit(Extract("regular", target.name, None, length, span))
        elif isinstance(target, StackCursor) and target.which == "next":
            self.emit(Extract("stack", target.stack.name, None, length, span))
        elif isinstance(target, UnionCursor) and target.cursor.which == "next":
            self.emit(Extract("union_stack", target.cursor.stack.name, target.member, length, span))
        elif isinstance(target, HeaderElement):
            copy = self.temporary(target.stack.type.element)
            self.emit(Extract("regular", copy.name, None, length, span))
            self.assign(target, copy, span)
        else:
            self.refuse("BMv2 can extract into a header or the next element of a stack only", argument)

    def is_lookahead(self, expression: ast.Expression) -> bool:
        """Whether it is packet.lookahead<…>() itself."""
        return (
            isinstance(expression, ast.Call)
            and expression.kind == "method"
            and expression.target.name == "lookahead"
            and isinstance(expression.callee, ast.Member)
            and str(expression.callee.base.type) == "packet_in"
        )

    def direct_lookahead(self, expression: ast.Call) -> Lookahead | None:
        """The lookahead of an unsigned scalar, usable where BMv2 takes one directly."""
        scalar = scalar_type(self.type_of(expression))
        if scalar is None or scalar is BOOL or getattr(scalar, "signed", True):
            return None
        return Lookahead(0, bits(width_of(scalar) or 1))

    def _lookahead(self, expression: ast.Call) -> Any:
        type_ = self.type_of(expression)
        value, _ = self._look(type_, 0, expression)
        return value

    def _look(self, type_: Type, offset: int, where: ast.Expression) -> tuple[Any, int]:
        scalar = scalar_type(type_)
        if scalar is not None:
            width = width_of(type_) if scalar is not BOOL else 1
            if width is None or hasattr(scalar, "__len__"):
                self.refuse(f"cannot look ahead at a value of type '{type_}'", where)
            raw = self.snapshot(Lookahead(offset, bits(width)), where.span)
            return build.convert(raw, scalar), offset + width
        if not isinstance(type_, StructType | TupleType | StackType) or is_union(type_):
            self.refuse(f"cannot look ahead at a value of type '{type_}'", where)
        parts: dict[str, Any] = {}
        for name, inner in member_types(type_):
            parts[name], offset = self._look(inner, offset, where)
        if isinstance(type_, StructType) and type_.kind == "header":
            return HeaderLiteral(type_, parts), offset
        return StructValue(type_, parts), offset
