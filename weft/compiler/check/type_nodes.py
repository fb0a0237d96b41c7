"""From types as written to types."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.budgets import TYPE_PARTS, WIDTH_BITS, exceeded
from weft.compiler.check.allowed_types import OBJECTS, allowed_in, is_data
from weft.compiler.check.base import CheckerBase
from weft.compiler.check.scope import TypeDeclaration, hint
from weft.compiler.types import (
    BOOL,
    ERROR,
    INTEGER,
    MATCH_KIND,
    STRING,
    UNKNOWN,
    VOID,
    ControlType,
    ExternType,
    ListType,
    NominalType,
    PackageType,
    ParserType,
    StackType,
    StructType,
    TupleType,
    Type,
    TypeVariable,
    VarbitType,
    bits,
    parts_of,
    with_arguments,
)

_BASIC = {
    "bool": BOOL,
    "error": ERROR,
    "string": STRING,
    "void": VOID,
    "match_kind": MATCH_KIND,
    "int": INTEGER,
}


class TypeNodes(CheckerBase):
    """Resolution of type nodes; the expression checker completes it."""

    def constant(self, expression: ast.Expression, what: str) -> int | None:
        """The integer value of an expression that must be known now."""
        raise NotImplementedError

    def resolve(self, node: ast.TypeNode) -> Type:
        """The type a node stands for; UNKNOWN after an error."""
        if isinstance(node, ast.NamedTypeNode):
            return self._complete(node, self._named(node))
        if isinstance(node, ast.StackTypeNode):
            return self.bounded(self._stack(node), node)
        if isinstance(node, ast.SpecializedTypeNode):
            return self.bounded(self._specialized(node), node)
        if isinstance(node, ast.BitsTypeNode):
            return self._bits(node)
        assert isinstance(node, ast.BaseTypeNode)
        if node.name == "_":
            return UNKNOWN
        return _BASIC[node.name]

    def bounded(self, type_: Type, where: ast.Node) -> Type:
        """The type, if it has not too many parts."""
        if parts_of(type_, self._parts) > TYPE_PARTS:
            exceeded(
                self.diagnostics, f"this type has more than {TYPE_PARTS} fields and elements", where.span
            )
        return type_

    def _bits(self, node: ast.BitsTypeNode) -> Type:
        if node.width is None:
            return bits(1)
        width = self.constant(node.width, "the width")
        if width is None:
            return UNKNOWN
        signed = node.kind == "int"
        least = 1 if signed else 0
        if not least <= width <= WIDTH_BITS:
            self.error(f"a width of {width} is out of range (valid: {least} to {WIDTH_BITS})", node.width)
            return UNKNOWN
        return VarbitType(width) if node.kind == "varbit" else bits(width, signed)

    def _stack(self, node: ast.StackTypeNode) -> Type:
        element = self.resolve(node.element)
        size = self.constant(node.size, "the size of a stack or array")
        if element is UNKNOWN or size is None:
            return UNKNOWN
        if not is_data(element) or element in (INTEGER, STRING, MATCH_KIND):
            self.error(f"a stack or array cannot hold a '{element}'", node.element)
            return UNKNOWN
        if size < 1:
            self.error(f"a stack or array has at least one element, not {size}", node.size)
            return UNKNOWN
        return StackType(element, size)

    def _specialized(self, node: ast.SpecializedTypeNode) -> Type:
        arguments = [self.resolve(argument) for argument in node.arguments]
        if node.base.name in ("tuple", "list"):
            self._elements(node, arguments)
        if node.base.name == "tuple":
            return TupleType(tuple(arguments))
        if node.base.name == "list":
            return ListType(arguments[0] if arguments else UNKNOWN)
        base = self._named(node.base)
        if base is UNKNOWN:
            return UNKNOWN
        parameters = type_parameters(base)
        if len(parameters) != len(arguments):
            self.error(
                f"'{node.base.name}' takes {len(parameters)} type arguments, {len(arguments)} given", node
            )
            return UNKNOWN
        assert isinstance(base, NominalType)
        type_ = with_arguments(base, arguments)
        self._specialized_fields(node, type_, arguments)
        return type_

    def _elements(self, node: ast.SpecializedTypeNode, elements: list[Type]) -> None:
        for written, element in zip(node.arguments, elements, strict=True):
            if isinstance(written, ast.BaseTypeNode) and written.name == "_":
                self.error(f"an element of a {node.base.name} needs a type, not '_'", written)
            elif not is_data(element) and (node.base.name == "tuple" or not isinstance(element, ExternType)):
                self.error(f"a {node.base.name} cannot hold a '{element}'", written)

    def _specialized_fields(self, node: ast.SpecializedTypeNode, type_: Type, arguments: list[Type]) -> None:
        """What a field of a type parameter's type has become must be possible, too."""
        if not isinstance(type_, StructType):
            return
        for argument in arguments:
            if isinstance(argument, OBJECTS):
                self.error(f"'{argument}' cannot be a type argument of '{node.base.name}'", node)
                return
        for name, field in type_.fields.items():
            if not allowed_in(type_.kind, field):
                self.error(f"field '{name}' of '{type_}' cannot be of type '{field}'", node)

    def _named(self, node: ast.NamedTypeNode) -> Type:
        scope = self.root if node.absolute else self.scope
        declaration = scope.lookup(node.name)
        if declaration is None:
            self.error(f"'{node.name}' is not declared{hint(scope.nearest(node.name))}", node)
            return UNKNOWN
        if isinstance(declaration, list) or not isinstance(declaration, TypeDeclaration):
            first = declaration[0] if isinstance(declaration, list) else declaration
            self.error(f"'{node.name}' is not a type", node).note("declared here", first.span)
            return UNKNOWN
        if self.refers_to_itself(declaration, node):
            return UNKNOWN
        return self.type_of_declaration(declaration)

    def _complete(self, node: ast.NamedTypeNode, type_: Type) -> Type:
        """A generic header or struct needs its arguments; extern, control and parser types may infer them."""
        if isinstance(type_, StructType) and type_.declaration.type_parameters:
            self.error(f"'{node.name}' needs its type arguments", node).note(
                "declared here", type_.declaration.span
            )
            return UNKNOWN
        return type_

    def type_of_declaration(self, declaration: ast.Declaration) -> Type:
        """The type a declaration introduces."""
        known = self.types.get(id(declaration))
        if known is not None:
            return known
        if isinstance(declaration, ast.TypeParameter):
            type_: Type = TypeVariable(declaration.name)
            declaration.type = type_
        elif isinstance(declaration, ast.StructDeclaration):
            type_ = StructType(declaration)
        elif isinstance(declaration, ast.ExternDeclaration):
            type_ = ExternType(declaration)
        elif isinstance(declaration, ast.ControlDeclaration):
            type_ = ControlType(declaration)
        elif isinstance(declaration, ast.ParserDeclaration):
            type_ = ParserType(declaration)
        elif isinstance(declaration, ast.PackageDeclaration):
            type_ = PackageType(declaration)
        else:
            return UNKNOWN
        self.types[id(declaration)] = type_
        return type_


def type_parameters(type_: Type) -> list[ast.TypeParameter]:
    """The type parameters of a declared type."""
    if (
        isinstance(type_, StructType | ExternType | ControlType | ParserType | PackageType)
        and not type_.arguments
    ):
        return type_.declaration.type_parameters
    return []
