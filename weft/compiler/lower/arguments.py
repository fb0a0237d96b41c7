"""Arguments of calls: by reference where nothing can tell the difference, else copied in and out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from weft.compiler import ast
from weft.compiler.ir import (
    Const,
    Expr,
    FieldRef,
    ParamRef,
)
from weft.compiler.lower import build
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.headers import HeaderMethods
from weft.compiler.lower.overlap import overlap, places
from weft.compiler.lower.storage import member_types, scalar_type
from weft.compiler.lower.values import (
    HeaderElement,
    HeaderLiteral,
    HeaderValue,
    PacketValue,
    SliceTarget,
    StackCursor,
    StackValue,
    StructValue,
    UnionValue,
)
from weft.compiler.source import Span
from weft.compiler.types import (
    Type,
)


class Arguments(HeaderMethods):
    """`bind_arguments` before a call, `copy_back` after it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # Copies that the calls around must still make.
        self.pending_copies: list[list[tuple[Any, Any]]] = []

    @contextmanager
    def copying(self, pairs: list[tuple[Any, Any]]) -> Iterator[None]:
        """Inside, an exit makes these copies first."""
        self.pending_copies.append(pairs)
        try:
            yield
        finally:
            self.pending_copies.pop()

    def bind_arguments(
        self,
        parameters: Sequence[ast.Parameter],
        arguments: Sequence[Any],
        frame: Frame,
        may_write: Callable[[Any], bool] | None,
        call: ast.Call,
    ) -> list[tuple[Any, Any]]:
        """Give parameters their values; returns what is to be copied back afterwards.

        Arguments pass by reference where nothing can tell the difference from copying in and out
        (specification, section 6.8): when no argument written shares storage with another. `may_write` says
        whether the callee can write storage other than by its arguments.
        """
        values: list[Any] = []
        for parameter, argument in zip(parameters, arguments, strict=True):
            values.append(self._argument(parameter, argument, values))
        touched = [places(value) for value in values]
        copy_out: list[tuple[Any, Any]] = []
        for index, (parameter, value) in enumerate(zip(parameters, values, strict=True)):
            type_ = frame.type(parameter.type)
            written = parameter.direction in ("out", "inout")
            if written:
                others = touched[:index] + touched[index + 1 :]
                shared = any(overlap(touched[index], other) for other in others)
                bound = self._bind_written(parameter, value, type_, shared or bool(may_write), call, copy_out)
            else:
                # What is written to storage that this argument shares is written to a copy, until the callee ends.
                bound = self._bind_read(value, type_, may_write is not None and may_write(value), call)
            frame.bind(parameter, bound)
        return copy_out

    def _argument(self, parameter: ast.Parameter, argument: ast.Expression | None, earlier: list[Any]) -> Any:
        if argument is None:
            return None
        if not isinstance(argument, ast.Expression):
            return argument
        with self.collecting() as before:
            written = parameter.direction in ("out", "inout")
            value = self.frozen_target(argument) if written else self.value(argument)
        if before:
            for index, other in enumerate(earlier):
                if isinstance(other, Expr):
                    earlier[index] = self.snapshot(other) if not isinstance(other, FieldRef) else other
            self.out += before
        return value

    def _bind_read(self, value: Any, type_: Type, copy: bool, call: ast.Call) -> Any:
        if isinstance(value, Expr):
            scalar = scalar_type(type_)
            if scalar is not None:
                value = build.convert(value, scalar)
            if isinstance(value, Const | ParamRef) or (isinstance(value, FieldRef) and not copy):
                return value
            return self.snapshot(value)
        if isinstance(value, StructValue):
            value = self.retyped(value, type_)
        if isinstance(value, StackCursor):
            value = self.read_cursor(value, call)
        if isinstance(value, StructValue) and value.type is not None:
            inner = dict(member_types(type_)) if value.type == type_ else {}
            parts = {
                name: self._bind_read(part, inner.get(name, getattr(part, "type", type_)), copy, call)
                for name, part in value.fields.items()
            }
            return StructValue(value.type, parts)
        if (isinstance(value, HeaderValue | StackValue | UnionValue) and copy) or isinstance(
            value, HeaderElement | HeaderLiteral
        ):
            result = self.temporary(type_)
            self.assign(result, value, None)
            return result
        return value

    def _bind_written(
        self,
        parameter: ast.Parameter,
        value: Any,
        type_: Type,
        copy: bool,
        call: ast.Call,
        copy_out: list[Any],
    ) -> Any:
        direct = isinstance(
            value, FieldRef | StructValue | HeaderValue | StackValue | UnionValue | PacketValue
        )
        if isinstance(value, FieldRef) and scalar_type(type_) != value.type:
            direct = False
        if direct and not copy:
            if parameter.direction == "out":
                self.invalidate(value, call.span)
            return value
        local = self.temporary(type_, parameter.name)
        if parameter.direction == "inout" and value is not None:
            self.assign(local, self.read_target(value), call.span)
        elif parameter.direction == "out":
            self.invalidate(local, call.span)
        if value is not None:
            copy_out.append((value, local))
        return local

    def read_target(self, target: Any) -> Any:
        """The value of something that can be written."""
        if isinstance(target, SliceTarget):
            return build.slice_of(target.target, target.high, target.low)
        return target

    def copy_back(self, pairs: list[tuple[Any, Any]], span: Span | None) -> None:
        """Write the copies of `out` and `inout` arguments back."""
        for target, local in pairs:
            self.assign(target, local, span)
