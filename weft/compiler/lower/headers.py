"""Methods of headers, unions and stacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.compiler import ast
from weft.compiler.ir import (
    Const,
    If,
    Primitive,
    Reference,
)
from weft.compiler.lower import build
from weft.compiler.lower.packets import Packets
from weft.compiler.lower.values import (
    HeaderElement,
    HeaderValue,
    StackValue,
)
from weft.compiler.types import (
    StructType,
    bits,
)


class HeaderMethods(Packets):
    """`header_call` for isValid, setValid, setInvalid, push_front and pop_front."""

    def header_call(self, expression: ast.Call) -> Any:
        """Emit a method of a header, union or stack and return its result."""
        callee = expression.callee
        assert isinstance(callee, ast.Member)
        name = expression.target
        base = self.value(callee.base)
        if name == "isValid":
            return self.validity(base, expression)
        if name in ("push_front", "pop_front"):
            return self._push_pop(expression, base, name)
        if name == "setValid":
            self._set_valid(base, expression)
        elif name == "setInvalid":
            self._set_invalid(base, expression)
        else:
            self.refuse(f"'{name}' is not known at compile time here", expression)
        return None

    def _push_pop(self, expression: ast.Call, base: Any, name: str) -> None:
        count = self.value(expression.ordered[0])
        if not isinstance(count, Const) or not isinstance(base, StackValue):
            self.refuse(f"'{name}' needs a constant count", expression)
        element = base.type.element
        union = isinstance(element, StructType) and element.kind == "header_union"
        stack = Reference("header_union_stack" if union else "header_stack", base.name)
        amount = Const(min(int(count.value), len(base.elements)), bits(32))
        self.emit(Primitive(name.removesuffix("_front"), [stack, amount], expression.span))

    def _set_valid(self, base: Any, where: ast.Expression) -> None:
        if isinstance(base, HeaderValue):
            self.emit(Primitive("add_header", [Reference("header", base.name)], where.span))
        elif isinstance(base, HeaderElement):
            self._each_element(base, where, self._set_valid)
        else:
            self.refuse("'setValid' needs a header", where)

    def _set_invalid(self, base: Any, where: ast.Expression) -> None:
        if isinstance(base, HeaderElement):
            self._each_element(base, where, self._set_invalid)
        else:
            self.invalidate(base, where.span)

    def _each_element(
        self, base: HeaderElement, where: ast.Expression, do: Callable[[Any, ast.Expression], None]
    ) -> None:
        for index, element in enumerate(base.stack.elements):
            with self.collecting() as code:
                do(element, where)
            here = build.binary("==", base.index, build.constant(index, base.index.type))
            self.emit(If(here, code, [], where.span))
