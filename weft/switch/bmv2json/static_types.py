"""Static header and union types of expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from weft.switch.bmv2json import expressions, model_headers


class Declarations(Protocol):
    """A Program, or the part loaded so far."""

    @property
    def headers(self) -> Mapping[str, model_headers.Header]:
        """Headers by name."""

    @property
    def header_stacks(self) -> Mapping[str, model_headers.HeaderStack]:
        """Header stacks by name."""

    @property
    def header_unions(self) -> Mapping[str, model_headers.HeaderUnion]:
        """Header unions by name."""

    @property
    def header_union_stacks(self) -> Mapping[str, model_headers.HeaderUnionStack]:
        """Header union stacks by name."""


def header_type_of(declarations: Declarations, expression: expressions.Expression) -> model_headers.HeaderType:
    """The type of an expression of kind HEADER."""
    match expression:
        case expressions.HeaderRef(name):
            return declarations.headers[name].type
        case expressions.UnionMemberAccess(union, index):
            return union_type_of(declarations, union).members[index][1]
        case expressions.Operation("dereference_header_stack", (stack, _)):
            return stack_header_type(declarations, stack)
        case expressions.Operation("?", (_, chosen, _)):
            return header_type_of(declarations, chosen)
    raise TypeError(f"not a header expression: {expression}")


def stack_header_type(declarations: Declarations, expression: expressions.Expression) -> model_headers.HeaderType:
    """The type of the headers in an expression of kind STACK."""
    match expression:
        case expressions.StackRef(name):
            return declarations.header_stacks[name].type
        case expressions.Operation("?", (_, chosen, _)):
            return stack_header_type(declarations, chosen)
    raise TypeError(f"not a header stack expression: {expression}")


def union_type_of(declarations: Declarations, expression: expressions.Expression) -> model_headers.HeaderUnionType:
    """The type of an expression of kind UNION, or of the unions in one of kind UNION_STACK."""
    match expression:
        case expressions.UnionRef(name):
            return declarations.header_unions[name].type
        case expressions.UnionStackRef(name):
            return declarations.header_union_stacks[name].type
        case expressions.Operation("dereference_union_stack", (stack, _)):
            return union_type_of(declarations, stack)
        case expressions.Operation("?", (_, chosen, _)):
            return union_type_of(declarations, chosen)
    raise TypeError(f"not a header union expression: {expression}")


def is_variable(declarations: Declarations, field: expressions.FieldRef) -> bool:
    """True for a variable-length field."""
    return not field.is_validity and declarations.headers[field.header].type.field(field.field).variable
