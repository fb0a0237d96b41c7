"""Types as written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.compiler.ast.nodes import Node

if TYPE_CHECKING:
    from weft.compiler.ast.expressions import Expression


@dataclass(slots=True, eq=False)
class TypeNode(Node):
    """A type as written."""


@dataclass(slots=True, eq=False)
class BaseTypeNode(TypeNode):
    """bool, error, match_kind, string, void, `int` without width, or `_`."""

    name: str


@dataclass(slots=True, eq=False)
class BitsTypeNode(TypeNode):
    """bit<W>, int<W> or varbit<W> (`kind`); without `width`, bit is bit<1>."""

    kind: str
    width: Expression | None


@dataclass(slots=True, eq=False)
class NamedTypeNode(TypeNode):
    """A type's name, with `absolute` for a leading dot."""

    name: str
    absolute: bool = False


@dataclass(slots=True, eq=False)
class SpecializedTypeNode(TypeNode):
    """A generic type with arguments, `tuple<…>` and `list<…>` included."""

    base: NamedTypeNode
    arguments: list[TypeNode]


@dataclass(slots=True, eq=False)
class StackTypeNode(TypeNode):
    """element[size]."""

    element: TypeNode
    size: Expression
