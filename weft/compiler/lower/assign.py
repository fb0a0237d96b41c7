"""Targets and assignments (specification, section 8.2, 12.1)."""

from __future__ import annotations

from typing import Any

from weft.compiler import ast
from weft.compiler.ir import (
    Assign,
    Const,
    ElementField,
    Expr,
    FieldRef,
    If,
    LastField,
    Primitive,
    Reference,
)
from weft.compiler.lower import build
from weft.compiler.lower.base import LowererBase
from weft.compiler.lower.overlap import overlap, places
from weft.compiler.lower.storage import fields_of
from weft.compiler.lower.values import (
    HeaderElement,
    HeaderLiteral,
    HeaderValue,
    PlusSliceTarget,
    SliceTarget,
    StackCursor,
    StackValue,
    StructValue,
    UnionValue,
)
from weft.compiler.source import Span
from weft.compiler.types import BitsType, StructType, VarbitType, bits, is_header


class Assignments(LowererBase):
    """`target` evaluates what is left of `=`, `assign` copies."""

    def value(self, expression: ast.Expression) -> Any:
        """The value of an expression."""
        raise NotImplementedError

    def scalar(self, expression: ast.Expression) -> Expr:
        """The value of a scalar expression."""
        raise NotImplementedError

    def bound(self, expression: ast.Expression) -> int:
        """A slice's bound."""
        raise NotImplementedError

    def retyped(self, value: Any, target: Any) -> Any:
        """A list or struct value seen as another struct type."""
        raise NotImplementedError

    def target(self, expression: ast.Expression) -> Any:
        """What is written to; indices are evaluated now."""
        if isinstance(expression, ast.Slice):
            base = self.target(expression.base)
            if expression.plus and expression.high.value is None:
                low = self.simple(self.scalar(expression.high))
                assert isinstance(base, Expr)
                return PlusSliceTarget(base, low, bits(expression.low.value))
            if expression.plus:
                low_bound = expression.high.value
                high = low_bound + expression.low.value - 1
            else:
                high, low_bound = self.bound(expression.high), self.bound(expression.low)
            if isinstance(base, SliceTarget):
                return SliceTarget(base.target, base.low + high, base.low + low_bound)
            return SliceTarget(base, high, low_bound)
        return self.value(expression)

    def frozen_target(self, expression: ast.Expression) -> Any:
        """A target that later statements cannot move."""
        saved, self.freeze_indices = self.freeze_indices, True
        try:
            return self.target(expression)
        finally:
            self.freeze_indices = saved

    def assign(self, target: Any, value: Any, span: Span | None) -> None:
        """target = value, for values of one type."""
        if isinstance(target, FieldRef | LastField | ElementField):
            self._assign_scalar(target, value, span)
        elif isinstance(target, SliceTarget):
            self._assign_slice(target, value, span)
        elif isinstance(target, PlusSliceTarget):
            self._assign_plus_slice(target, value, span)
        elif isinstance(target, StructValue):
            self._assign_struct(target, value, span)
        elif isinstance(target, HeaderValue):
            self._assign_header(target, value, span)
        elif isinstance(target, HeaderElement):
            self._assign_element(target, value, span)
        elif isinstance(target, StackValue):
            self._assign_stack(target, value, span)
        elif isinstance(target, UnionValue):
            self._assign_union(target, value, span)
        elif isinstance(target, StackCursor):
            self.refuse(f"'{target.which}' of a stack cannot be assigned to as a whole", span)
        else:
            self.refuse("this cannot be written to", span)

    def _assign_scalar(self, target: Expr, value: Any, span: Span | None) -> None:
        if not isinstance(value, Expr):
            self.refuse("this value cannot be assigned here", span)
        if isinstance(target.type, VarbitType):
            assert isinstance(target, FieldRef)
            if not isinstance(value, FieldRef):
                self.refuse("a varbit can only be copied from another varbit", span)
            self.emit(Primitive("assign_VL", [target, value], span))
            return
        if value.type != target.type:
            value = build.convert(value, target.type)
        if value != target:
            self.emit(Assign(target, value, span))

    def _assign_slice(self, target: SliceTarget, value: Any, span: Span | None) -> None:
        """a[h:l] = v becomes a = (a & ~mask) | (v << l)."""
        whole = target.target
        type_ = whole.type
        assert isinstance(type_, BitsType)
        assert isinstance(value, Expr)
        width = target.high - target.low + 1
        unsigned = bits(type_.width)
        mask = ((1 << width) - 1) << target.low
        kept = build.binary("&", build.convert(whole, unsigned), build.constant(~mask, unsigned))
        part = build.convert(build.convert(value, bits(width)), unsigned)
        moved = build.binary("<<", part, build.constant(target.low, bits(32)))
        self._assign_scalar(whole, build.convert(build.binary("|", kept, moved), type_), span)

    def _assign_plus_slice(self, target: PlusSliceTarget, value: Any, span: Span | None) -> None:
        whole = target.target
        type_ = whole.type
        assert isinstance(type_, BitsType)
        unsigned = bits(type_.width)
        ones = build.constant((1 << target.type.width) - 1, unsigned)
        mask = build.binary("<<", ones, target.low)
        kept = build.binary("&", build.convert(whole, unsigned), build.unary("~", mask))
        moved = build.binary("<<", build.convert(value, unsigned), target.low)
        self._assign_scalar(whole, build.convert(build.binary("|", kept, moved), type_), span)

    # --------------------------------------------------------------------------- aggregates

    def _assign_struct(self, target: StructValue, value: Any, span: Span | None) -> None:
        if not isinstance(value, StructValue):
            self.refuse("this value cannot be assigned to a struct", span)
        if value.type != target.type and target.type is not None:
            value = self.retyped(value, target.type)
        sources = [value.fields[name] for name in target.fields]
        targets = list(target.fields.values())
        if _order_matters(targets, sources):
            sources = [self._copied(source, span) for source in sources]
        for part, source in zip(targets, sources, strict=True):
            self.assign(part, source, span)

    def _copied(self, value: Any, span: Span | None) -> Any:
        if isinstance(value, Const):
            return value
        if isinstance(value, Expr):
            return self.snapshot(value, span)
        if isinstance(value, StructValue):
            return StructValue(
                value.type, {name: self._copied(part, span) for name, part in value.fields.items()}
            )
        if isinstance(value, HeaderLiteral):
            if value.fields is None:
                return value
            return HeaderLiteral(
                value.type, {name: self._copied(part, span) for name, part in value.fields.items()}
            )
        copy = self.temporary(value.type)
        self.assign(copy, value, span)
        return copy

    def _assign_header(self, target: HeaderValue, value: Any, span: Span | None) -> None:
        if isinstance(value, StructValue):
            value = self.retyped(value, target.type)
        elif isinstance(value, StackCursor):
            value = self.read_cursor(value, span)
        if isinstance(value, HeaderValue):
            if value.name != target.name:
                self._copy_instance("assign_header", target.name, value.name, "header", span)
        elif isinstance(value, HeaderLiteral):
            self._assign_literal(target, value, span)
        elif isinstance(value, HeaderElement):
            for index, element in enumerate(value.stack.elements):
                with self.collecting() as code:
                    self._assign_header(target, element, span)
                self._when_index(value, index, code, span)
        else:
            self.refuse("this value cannot be assigned to a header", span)

    def read_cursor(self, cursor: StackCursor, where: ast.Node | Span | None) -> HeaderLiteral:
        """stack.last as a whole: its fields one by one, for BMv2 has no such operand."""
        element = cursor.stack.type.element
        if cursor.which == "next":
            self.refuse("the next element of a stack can be extracted into, not read", where)
        if not is_header(element):
            self.refuse("the last element of a stack of header unions cannot be read as a whole", where)
        assert isinstance(element, StructType)
        stack = cursor.stack.name
        return HeaderLiteral(element, fields_of(element, lambda path, scalar: LastField(stack, path, scalar)))

    def _assign_literal(self, target: HeaderValue, value: HeaderLiteral, span: Span | None) -> None:
        header = Reference("header", target.name)
        if value.fields is None:
            self.emit(Primitive("remove_header", [header], span))
            return
        fields = value.fields
        own = places(target)
        if any(overlap(places(part), own) for part in fields.values()):
            fields = {name: self._copied(part, span) for name, part in fields.items()}
        self.emit(Primitive("add_header", [header], span))
        for name, part in fields.items():
            self.assign(target.fields[name], part, span)

    def _assign_element(self, target: HeaderElement, value: Any, span: Span | None) -> None:
        for index, element in enumerate(target.stack.elements):
            with self.collecting() as code:
                self._assign_header(element, value, span)
            self._when_index(target, index, code, span)

    def _when_index(self, element: HeaderElement, index: int, code: list[Any], span: Span | None) -> None:
        if code:
            here = build.binary("==", element.index, build.constant(index, element.index.type))
            self.emit(If(here, code, [], span))

    def _assign_stack(self, target: StackValue, value: Any, span: Span | None) -> None:
        if isinstance(value, StackValue):
            if value.name == target.name:
                return
            element = target.type.element
            union = isinstance(element, StructType) and element.kind == "header_union"
            name = "assign_union_stack" if union else "assign_header_stack"
            kind = "header_union_stack" if union else "header_stack"
            self._copy_instance(name, target.name, value.name, kind, span)
            return
        if not isinstance(value, StructValue):
            self.refuse("this value cannot be assigned to a header stack", span)
        parts = list(value.fields.values())
        if any(overlap(places(part), places(target)) for part in parts):
            parts = [self._copied(self.retyped(part, target.type.element), span) for part in parts]
        for element, part in zip(target.elements, parts, strict=False):
            self.assign(element, part, span)

    def _assign_union(self, target: UnionValue, value: Any, span: Span | None) -> None:
        if isinstance(value, UnionValue):
            if value.name != target.name:
                self._copy_instance("assign_union", target.name, value.name, "header_union", span)
        elif isinstance(value, HeaderLiteral) and value.fields is None:
            for member in target.members.values():
                self.emit(Primitive("remove_header", [Reference("header", member.name)], span))
        else:
            self.refuse("this value cannot be assigned to a header union", span)

    def _copy_instance(self, name: str, target: str, source: str, kind: str, span: Span | None) -> None:
        self.emit(Primitive(name, [Reference(kind, target), Reference(kind, source)], span))

    # --------------------------------------------------------------------------- validity

    def invalidate(self, value: Any, span: Span | None) -> None:
        """Make every header in a value invalid (a fresh variable, an `out` argument)."""
        if isinstance(value, HeaderValue):
            self.emit(Primitive("remove_header", [Reference("header", value.name)], span))
        elif isinstance(value, StructValue):
            for part in value.fields.values():
                self.invalidate(part, span)
        elif isinstance(value, StackValue):
            for element in value.elements:
                self.invalidate(element, span)
        elif isinstance(value, UnionValue):
            for member in value.members.values():
                self.invalidate(member, span)


def _order_matters(targets: list[Any], sources: list[Any]) -> bool:
    """Whether a later source reads what an earlier assignment writes."""
    written: set[tuple[str, str | None]] = set()
    for target, source in zip(targets, sources, strict=True):
        if written and overlap(written, places(source)):
            return True
        written |= places(target)
    return False
