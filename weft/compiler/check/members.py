"""Typing of members (specification, sections 8.7, 8.17 to 8.19)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.check.signatures import signature
from weft.compiler.check.type_nodes import resolve, type_of_declaration
from weft.compiler.types import (
    BOOL,
    ERROR,
    MATCH_KIND,
    STATE,
    UNKNOWN,
    ActionRunType,
    AnonymousStructType,
    ApplyResultType,
    ControlType,
    EnumType,
    ExternType,
    OverloadType,
    ParserType,
    StackType,
    StructType,
    TableType,
    Type,
    TypeVariable,
    bits,
    is_header,
    is_union,
)
from weft.compiler.wording import choices, hint

SIZES = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")
HEADER_METHODS = ("isValid", "setValid", "setInvalid")
UNION_METHODS = ("isValid",)
_METHODS = {"header": HEADER_METHODS, "header_union": UNION_METHODS}
_STACK_MEMBERS = ("next", "last", "lastIndex", "size", "push_front", "pop_front")


def infer_member(context: CheckContext, expression: ast.Member, expected: Type | None) -> Type:
    """base.name."""
    if isinstance(expression.base, ast.TypeExpression):
        return _type_member(context, expression, resolve_base(context, expression.base))
    base = infer(context, expression.base)
    if base is UNKNOWN:
        return UNKNOWN
    if isinstance(base, StructType):
        return _field(context, expression, base)
    if isinstance(base, StackType):
        return _stack_member(context, expression, base)
    if isinstance(base, ApplyResultType):
        return _apply_result(context, expression, base)
    if isinstance(base, AnonymousStructType):
        for name, type_ in base.fields:
            if name == expression.name:
                return type_
    return _method(context, expression, base)


def resolve_base(context: CheckContext, expression: ast.TypeExpression) -> Type:
    """The type left of a dot; generic types may lack their arguments there."""
    node = expression.node
    if isinstance(node, ast.NamedTypeNode):
        declaration = context.scope_of(node).lookup(node.name)
        if isinstance(declaration, ast.ControlDeclaration | ast.ParserDeclaration):
            if context.refers_to_itself(declaration, expression):
                return UNKNOWN
            return type_of_declaration(context, declaration)
    return resolve(context, node)


def _type_member(context: CheckContext, expression: ast.Member, base: Type) -> Type:
    name = expression.name
    if base is UNKNOWN:
        return UNKNOWN
    if base is ERROR:
        if name not in context.symbols.errors:
            return context.fail(expression, f"there is no error '{name}'{hint(name, context.symbols.errors)}")
        expression.value = context.symbols.errors[name]
        return ERROR
    if base is MATCH_KIND:
        return MATCH_KIND
    if isinstance(base, EnumType):
        if name not in base.values:
            valid = choices(base.values)
            diagnostic = context.error(f"'{base}' has no member '{name}' {valid}", expression.name_token)
            diagnostic.note(f"'{base}' declared here", base.declaration.span)
            return UNKNOWN
        expression.value = base.values[name]
        return base
    expression.base.type = base
    return _method(context, expression, base)


def _field(context: CheckContext, expression: ast.Member, base: StructType) -> Type:
    """A field of a struct, header or header union, or a method that headers have."""
    name = expression.name
    field = base.fields.get(name)
    if field is not None:
        if isinstance(expression.base.value, dict):
            expression.value = expression.base.value.get(name)
        return field
    if name in SIZES or name in _METHODS.get(base.kind, ()):
        return STATE
    advice = hint(name, base.fields) or f" {choices(base.fields)}"
    context.error(f"'{base}' has no field '{name}'{advice}", expression.name_token).note(
        f"'{base}' declared here", base.declaration.span
    )
    return UNKNOWN


def _apply_result(context: CheckContext, expression: ast.Member, base: ApplyResultType) -> Type:
    """A member of what `table.apply()` returns."""
    name = expression.name
    if name in ("hit", "miss"):
        return BOOL
    if name == "action_run":
        return ActionRunType(base.declaration)
    return context.fail(expression, f"table.apply() has no member '{name}' (valid: 'hit', 'miss', 'action_run')")


def _method(context: CheckContext, expression: ast.Member, base: Type) -> Type:
    """A method of an extern, control, parser or table, or a size, which every type has."""
    method = _extern_method(expression, base)
    if method is not None:
        return method
    if expression.name in SIZES:
        return STATE
    return context.fail(
        expression, f"'{base}' has no member '{expression.name}'{hint(expression.name, _methods(base))}"
    )


def _stack_member(context: CheckContext, expression: ast.Member, base: StackType) -> Type:
    name = expression.name
    if name != "size" and not (
        is_header(base.element) or is_union(base.element) or isinstance(base.element, TypeVariable)
    ):
        return context.fail(expression, f"an array has no member '{name}' (valid: 'size')")
    if name in ("next", "last", "lastIndex"):
        if context.enclosing.kind not in ("parser", "function"):
            return context.fail(expression, f"'{name}' can be used in parsers only")
        return bits(32) if name == "lastIndex" else base.element
    if name == "size":
        expression.value = base.size
        return bits(32)
    if name in _STACK_MEMBERS or name in SIZES:
        return STATE
    return context.fail(expression, f"a header stack has no member '{name}' {choices(_STACK_MEMBERS)}")


def _extern_method(expression: ast.Member, base: Type) -> Type | None:
    """The type of `base.name` where base is an extern, control, parser or table; None if it is none."""
    name = expression.name
    if isinstance(base, ExternType):
        methods = [method for method in base.declaration.methods if method.name == name and method.result]
        if not methods:
            return None
        variables = [parameter.type for parameter in base.declaration.type_parameters]
        mapping = {
            variable: argument
            for variable, argument in zip(variables, base.arguments, strict=False)
            if variable is not None
        }
        return OverloadType(name, tuple(signature(method) for method in methods), "method", mapping)
    if isinstance(base, ControlType | ParserType | TableType) and name == "apply":
        return base
    return None


def _methods(base: Type) -> list[str]:
    """The methods of an extern, control, parser or table."""
    if isinstance(base, ExternType):
        return [method.name for method in base.declaration.methods if method.result]
    return ["apply"] if isinstance(base, ControlType | ParserType | TableType) else []
