"""From types as written to types."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.budgets import TYPE_PARTS, WIDTH_BITS, exceeded
from weft.compiler.check.allowed_types import OBJECTS, allowed_in, is_data
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import constant
from weft.compiler.check.scope import TypeDeclaration
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
from weft.compiler.wording import hint

_BASIC = {
    "bool": BOOL,
    "error": ERROR,
    "string": STRING,
    "void": VOID,
    "match_kind": MATCH_KIND,
    "int": INTEGER,
}


def resolve(context: CheckContext, node: ast.TypeNode) -> Type:
    """The type a node stands for; UNKNOWN after an error."""
    if isinstance(node, ast.NamedTypeNode):
        return _complete(context, node, _named(context, node))
    if isinstance(node, ast.StackTypeNode):
        return bounded(context, _stack(context, node), node)
    if isinstance(node, ast.SpecializedTypeNode):
        return bounded(context, _specialized(context, node), node)
    if isinstance(node, ast.BitsTypeNode):
        return _bits(context, node)
    assert isinstance(node, ast.BaseTypeNode)
    if node.name == "_":
        return UNKNOWN
    return _BASIC[node.name]


def bounded(context: CheckContext, type_: Type, where: ast.Node) -> Type:
    """The type, if it has not too many parts."""
    if parts_of(type_, context.part_counts) > TYPE_PARTS:
        exceeded(context.diagnostics, f"this type has more than {TYPE_PARTS} fields and elements", where.span)
    return type_


def type_of_declaration(context: CheckContext, declaration: ast.Declaration) -> Type:
    """The type a declaration introduces."""
    known = context.symbols.types.get(id(declaration))
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
    context.symbols.types[id(declaration)] = type_
    return type_


def type_parameters(type_: Type) -> list[ast.TypeParameter]:
    """The type parameters of a declared type."""
    if isinstance(type_, StructType | ExternType | ControlType | ParserType | PackageType) and not type_.arguments:
        return type_.declaration.type_parameters
    return []


def _bits(context: CheckContext, node: ast.BitsTypeNode) -> Type:
    if node.width is None:
        return bits(1)
    width = constant(context, node.width, "the width")
    if width is None:
        return UNKNOWN
    signed = node.kind == "int"
    least = 1 if signed else 0
    if not least <= width <= WIDTH_BITS:
        context.error(f"a width of {width} is out of range (valid: {least} to {WIDTH_BITS})", node.width)
        return UNKNOWN
    return VarbitType(width) if node.kind == "varbit" else bits(width, signed)


def _stack(context: CheckContext, node: ast.StackTypeNode) -> Type:
    element = resolve(context, node.element)
    size = constant(context, node.size, "the size of a stack or array")
    if element is UNKNOWN or size is None:
        return UNKNOWN
    if not is_data(element) or element in (INTEGER, STRING, MATCH_KIND):
        context.error(f"a stack or array cannot hold a '{element}'", node.element)
        return UNKNOWN
    if size < 1:
        context.error(f"a stack or array has at least one element, not {size}", node.size)
        return UNKNOWN
    return StackType(element, size)


def _specialized(context: CheckContext, node: ast.SpecializedTypeNode) -> Type:
    arguments = [resolve(context, argument) for argument in node.arguments]
    if node.base.name in ("tuple", "list"):
        _elements(context, node, arguments)
    if node.base.name == "tuple":
        return TupleType(tuple(arguments))
    if node.base.name == "list":
        return ListType(arguments[0] if arguments else UNKNOWN)
    base = _named(context, node.base)
    if base is UNKNOWN:
        return UNKNOWN
    parameters = type_parameters(base)
    if len(parameters) != len(arguments):
        context.error(f"'{node.base.name}' takes {len(parameters)} type arguments, {len(arguments)} given", node)
        return UNKNOWN
    assert isinstance(base, NominalType)
    type_ = with_arguments(base, arguments)
    _specialized_fields(context, node, type_, arguments)
    return type_


def _elements(context: CheckContext, node: ast.SpecializedTypeNode, elements: list[Type]) -> None:
    for written, element in zip(node.arguments, elements, strict=True):
        if isinstance(written, ast.BaseTypeNode) and written.name == "_":
            context.error(f"an element of a {node.base.name} needs a type, not '_'", written)
        elif not is_data(element) and (node.base.name == "tuple" or not isinstance(element, ExternType)):
            context.error(f"a {node.base.name} cannot hold a '{element}'", written)


def _specialized_fields(
    context: CheckContext, node: ast.SpecializedTypeNode, type_: Type, arguments: list[Type]
) -> None:
    """Once its type parameter is replaced, a field's type must be possible there, too."""
    if not isinstance(type_, StructType):
        return
    for argument in arguments:
        if isinstance(argument, OBJECTS):
            context.error(f"'{argument}' cannot be a type argument of '{node.base.name}'", node)
            return
    for name, field in type_.fields.items():
        if not allowed_in(type_.kind, field):
            context.error(f"field '{name}' of '{type_}' cannot be of type '{field}'", node)


def _named(context: CheckContext, node: ast.NamedTypeNode) -> Type:
    scope = context.scope_of(node)
    declaration = scope.lookup(node.name)
    if declaration is None:
        context.error(f"'{node.name}' is not declared{hint(node.name, scope.visible())}", node)
        return UNKNOWN
    if isinstance(declaration, list) or not isinstance(declaration, TypeDeclaration):
        first = declaration[0] if isinstance(declaration, list) else declaration
        context.error(f"'{node.name}' is not a type", node).note("declared here", first.span)
        return UNKNOWN
    if context.refers_to_itself(declaration, node):
        return UNKNOWN
    return type_of_declaration(context, declaration)


def _complete(context: CheckContext, node: ast.NamedTypeNode, type_: Type) -> Type:
    """A generic header or struct needs its arguments; extern, control and parser types may infer them."""
    if isinstance(type_, StructType) and type_.declaration.type_parameters:
        context.error(f"'{node.name}' needs its type arguments", node).note("declared here", type_.declaration.span)
        return UNKNOWN
    return type_
