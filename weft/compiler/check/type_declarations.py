"""Checking of declarations of types (specification, section 7.2)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.allowed_types import allowed_in
from weft.compiler.check.coerce import coerce
from weft.compiler.check.context import CheckContext
from weft.compiler.check.declarations import check_declaration
from weft.compiler.check.infer import constant
from weft.compiler.check.parameters import check_type_parameters
from weft.compiler.check.type_nodes import bounded, resolve, type_of_declaration
from weft.compiler.fold import wrap
from weft.compiler.types import UNKNOWN, BitsType, EnumType, NewType, VarbitType, strip_new

_KINDS = {"struct": "struct", "header": "header", "header_union": "header union"}


def check_struct(context: CheckContext, declaration: ast.StructDeclaration) -> None:
    """A struct, header or header union: types and names of the fields."""
    with context.inner_scope():
        check_type_parameters(context, declaration.type_parameters)
        seen: dict[str, ast.Field] = {}
        varbits = 0
        for field in declaration.fields:
            field.type = resolve(context, field.node)
            if field.name in seen:
                context.error(f"field '{field.name}' is declared twice", field).note(
                    "first declared here", seen[field.name].span
                )
            seen[field.name] = field
            varbits += isinstance(field.type, VarbitType)
            _field(context, declaration, field)
        if declaration.kind == "header" and varbits > 1:
            context.error(f"header '{declaration.name}' has {varbits} varbit fields; one is possible", declaration)
    bounded(context, type_of_declaration(context, declaration), declaration)
    context.declare(declaration)


def _field(context: CheckContext, declaration: ast.StructDeclaration, field: ast.Field) -> None:
    type_ = field.type or UNKNOWN
    if isinstance(field.node, ast.BaseTypeNode) and field.node.name == "_":
        context.error("a field needs a type, not '_'", field.node)
    elif not allowed_in(declaration.kind, type_):
        context.error(f"a {_KINDS[declaration.kind]} cannot hold a '{type_}'", field.node)
        field.type = UNKNOWN


def check_enum(context: CheckContext, declaration: ast.EnumDeclaration) -> None:
    """An enum; numbers its members, or takes their values if it has an underlying type."""
    underlying: BitsType | None = None
    if declaration.underlying is not None:
        type_ = resolve(context, declaration.underlying)
        if isinstance(type_, BitsType):
            underlying = type_
        elif type_ is not UNKNOWN:
            context.error(f"an enum's underlying type is bit<…> or int<…>, not '{type_}'", declaration.underlying)
    enum = EnumType(declaration, underlying)
    context.symbols.types[id(declaration)] = enum
    for index, member in enumerate(declaration.members):
        if member.name in enum.values:
            context.error(f"member '{member.name}' is declared twice", member)
        number: int | None = index
        if underlying is not None:
            if member.expression is None:
                context.error(f"member '{member.name}' of an enum with a type needs a value", member)
            else:
                number = _member_value(context, member.expression, underlying)
        elif member.expression is not None:
            context.error("only an enum with an underlying type has values", member)
        enum.values[member.name] = number if number is not None else 0
    context.declare(declaration)


def _member_value(context: CheckContext, expression: ast.Expression, underlying: BitsType) -> int | None:
    value = constant(context, expression, "an enum member's value")
    if value is not None and wrap(value, underlying) != value:
        context.error(f"the value {value} does not fit '{underlying}'", expression)
        return None
    coerce(context, expression, underlying)
    return value


def check_members(context: CheckContext, declaration: ast.MembersDeclaration) -> None:
    """`error {…}` or `match_kind {…}`, each of which adds to the earlier ones."""
    for member in declaration.members:
        if declaration.name == "error":
            if member.name in context.symbols.errors:
                context.error(f"error '{member.name}' is declared twice", member).note(
                    "first declared here", context.symbols.error_declarations[member.name].span
                )
                continue
            context.symbols.errors[member.name] = len(context.symbols.errors)
            context.symbols.error_declarations[member.name] = member
        else:
            if member.name in context.symbols.match_kinds:
                context.error(f"match kind '{member.name}' is declared twice", member).note(
                    "first declared here", context.symbols.match_kinds[member.name].span
                )
            context.symbols.match_kinds[member.name] = member


def check_typedef(context: CheckContext, declaration: ast.TypedefDeclaration) -> None:
    """`typedef`, or `type`, which makes a new type."""
    if declaration.derived is not None:
        check_declaration(context, declaration.derived)
        type_ = context.symbols.types.get(id(declaration.derived), UNKNOWN)
    else:
        assert declaration.node is not None
        type_ = resolve(context, declaration.node)
    if declaration.is_new and type_ is not UNKNOWN:
        if not isinstance(strip_new(type_), BitsType) and str(type_) != "bool":
            context.error(f"'type' makes new types of bit, int and bool types, not of '{type_}'", declaration)
        type_ = NewType(declaration, type_)
    context.symbols.types[id(declaration)] = type_
    context.declare(declaration)
