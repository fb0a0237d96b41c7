"""Calls of what every header, stack and type has (specification, sections 8.17, 8.18, 9)."""

from __future__ import annotations

from weft.compiler import ast, types
from weft.compiler.check.arguments import apply_signature
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.check.members import HEADER_METHODS, SIZES, UNION_METHODS, resolve_base
from weft.compiler.check.writable import check_writable


def infer_builtin(context: CheckContext, expression: ast.Call, callee: ast.Member) -> types.Type | None:
    """Header, union and stack methods, and sizes; None if it is none of them."""
    name = callee.name
    if name in SIZES:
        if isinstance(callee.base, ast.TypeExpression):
            base = resolve_base(context, callee.base)
        else:
            base = infer(context, callee.base)
        width = types.width_of(base) if base is not types.UNKNOWN else None
        if isinstance(base, types.ExternType):
            return None
        if expression.arguments or expression.type_arguments:
            return context.fail(expression, f"'{name}' takes no arguments")
        expression.kind, expression.target = "builtin", name
        if width is not None:
            size = minimum_width(base) if name.startswith("min") else width
            expression.value = (size + 7) // 8 if name.endswith("Bytes") else size
        return types.INTEGER if width is not None else types.UNKNOWN
    if isinstance(callee.base, ast.TypeExpression):
        return None
    base = infer(context, callee.base)
    if types.is_header(base) or types.is_union(base):
        if name not in (HEADER_METHODS if types.is_header(base) else UNION_METHODS):
            return None
        if name != "isValid":
            check_writable(context, callee.base, f"'{name}'")
        parameters: tuple[types.ParameterType, ...] = ()
        result: types.Type = types.BOOL if name == "isValid" else types.VOID
    elif (
        isinstance(base, types.StackType)
        and (types.is_header(base.element) or types.is_union(base.element))
        and name in ("push_front", "pop_front")
    ):
        check_writable(context, callee.base, f"'{name}'")
        count = ast.Parameter(callee.span, "count", [], "", ast.BaseTypeNode(callee.span, "int"), None)
        parameters = (types.ParameterType("count", "", types.INTEGER, False, count),)
        result = types.VOID
    else:
        return None
    callee.type = base
    expression.kind, expression.target = "builtin", name
    signature = types.FunctionType(name, (), parameters, result)
    return apply_signature(context, expression, signature, {}, None)


def minimum_width(type_: types.Type) -> int:
    """minSizeInBits: varbit fields count nothing, a union its smallest member."""
    if isinstance(type_, types.VarbitType):
        return 0
    if isinstance(type_, types.StructType):
        widths = [minimum_width(member) for member in type_.fields.values()]
        if type_.kind == "header_union":
            return min(widths, default=0)
        return sum(widths)
    if isinstance(type_, types.TupleType):
        return sum(minimum_width(member) for member in type_.elements)
    if isinstance(type_, types.StackType):
        return minimum_width(type_.element) * type_.size
    return types.width_of(type_) or 0
