"""Values of several parts: lists, structs, headers and their defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.compiler import ast
from weft.compiler.ir import (
    Expr,
)
from weft.compiler.lower import build
from weft.compiler.lower.assign import Assignments
from weft.compiler.lower.storage import member_types, scalar_type
from weft.compiler.lower.values import (
    HeaderLiteral,
    StructValue,
)
from weft.compiler.types import (
    INTEGER,
    STRING,
    BitsType,
    ListType,
    StackType,
    StructType,
    TupleType,
    Type,
)


class Aggregates(Assignments):
    """List, struct and header expressions as values of their types."""

    def ordered(self, expressions: Sequence[ast.Expression]) -> list[Any]:
        """Values of operands, left to right."""
        raise NotImplementedError

    def retyped(self, value: Any, target: Type) -> Any:
        """A list or struct value seen as another struct type."""
        if isinstance(target, StructType) and target.kind == "header" and isinstance(value, StructValue):
            names = list(target.fields)
            return HeaderLiteral(target, dict(zip(names, value.fields.values(), strict=False)))
        if isinstance(target, StructType | TupleType) and isinstance(value, StructValue):
            names = [name for name, _ in member_types(target)]
            parts = value.fields
            if set(names) == set(parts):
                return StructValue(target, {name: parts[name] for name in names})
            return StructValue(target, dict(zip(names, parts.values(), strict=False)))
        return value

    def _list(self, expression: ast.ListExpression) -> Any:
        type_ = self.type_of(expression)
        values = self.ordered(expression.elements)
        if isinstance(type_, StructType):
            names = list(type_.fields)
            parts = {
                name: self.as_type(value, type_.fields[name])
                for name, value in zip(names, values, strict=False)
            }
            for name in names[len(values) :]:
                parts[name] = self.default_value(type_.fields[name], expression)
            if type_.kind == "header":
                return HeaderLiteral(type_, parts)
            return StructValue(type_, parts)
        if isinstance(type_, TupleType):
            typed = [self.as_type(value, inner) for value, inner in zip(values, type_.elements, strict=True)]
            return StructValue(type_, {str(index): value for index, value in enumerate(typed)})
        if isinstance(type_, StackType):
            return StructValue(type_, {str(index): value for index, value in enumerate(values)})
        assert isinstance(type_, ListType)
        return StructValue(None, {str(index): value for index, value in enumerate(values)})

    def as_type(self, value: Any, type_: Type) -> Any:
        """A part of an aggregate converted to the wanted type."""
        type_ = self.frame.type(type_)
        if isinstance(value, Expr):
            scalar = scalar_type(type_)
            if scalar is not None and isinstance(scalar, BitsType) and value.type != scalar:
                return build.convert(value, scalar)
            return value
        if type_ is INTEGER or type_ is STRING:
            return value
        return self.retyped(value, type_)

    def _struct_literal(self, expression: ast.StructExpression) -> Any:
        type_ = self.type_of(expression)
        values = self.ordered([element.expression for element in expression.elements])
        given = {element.name: value for element, value in zip(expression.elements, values, strict=True)}
        if not isinstance(type_, StructType):
            return StructValue(None, given)
        parts = {}
        for name, inner in type_.fields.items():
            if name in given:
                parts[name] = self.as_type(given[name], inner)
            else:
                parts[name] = self.default_value(inner, expression)
        if type_.kind == "header":
            return HeaderLiteral(type_, parts)
        return StructValue(type_, parts)

    def default_value(self, type_: Type, where: ast.Node) -> Any:
        """The value `...` stands for (specification, section 7.3): zeros, false, invalid headers."""
        type_ = self.frame.type(type_)
        scalar = scalar_type(type_)
        if scalar is not None:
            return build.constant(0, scalar)
        if isinstance(type_, StructType):
            if type_.kind != "struct":
                return HeaderLiteral(type_, None)
            return StructValue(
                type_, {name: self.default_value(inner, where) for name, inner in type_.fields.items()}
            )
        if isinstance(type_, TupleType):
            parts = {
                str(index): self.default_value(inner, where) for index, inner in enumerate(type_.elements)
            }
            return StructValue(type_, parts)
        if isinstance(type_, StackType):
            element = self.default_value(type_.element, where)
            return StructValue(type_, {str(index): element for index in range(type_.size)})
        self.refuse(f"'{type_}' has no default value", where)

    def _default(self, expression: ast.DefaultExpression) -> Any:
        return self.default_value(self.type_of(expression), expression)

    def _invalid(self, expression: ast.InvalidHeader) -> Any:
        type_ = self.type_of(expression)
        assert isinstance(type_, StructType)
        return HeaderLiteral(type_, None)
