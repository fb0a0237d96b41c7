"""IR expressions as BMv2 JSON (behavioral-model, JSON_format.md, "The type value object").

BMv2 computes on unbounded integers, so every operation that can leave its type's range is masked here.
"""

from __future__ import annotations

from typing import Any

from weft.compiler import ir
from weft.compiler.types import BOOL, BitsType, Type

Json = dict[str, Any]

# The results of these operators stay within the operands' type.
_CLOSED = frozenset(["&", "|", "^", "/", "%", ">>"])
_NAMES = {"&&": "and", "||": "or"}


def hex_string(value: int, bytes_: int = 0) -> str:
    """`0x…` with leading zeros up to a number of bytes; negative values keep their sign in front."""
    sign = "-" if value < 0 else ""
    return f"{sign}0x{abs(value):0{2 * bytes_}x}"


def hexstr(value: int, width: int) -> Json:
    """A hexstr object of a value of `width` bits."""
    return {"type": "hexstr", "value": hex_string(value, (width + 7) // 8)}


def operation(name: str, left: Any, right: Any, **more: Any) -> Json:
    """An expression object."""
    return {"type": "expression", "value": {"op": name, "left": left, "right": right, **more}}


def d2b(data: Json) -> Json:
    """Data to bool."""
    return operation("d2b", None, data)


def b2d(truth: Json) -> Json:
    """Bool to data."""
    return operation("b2d", None, truth)


def mask(data: Json, type_: Type) -> Json:
    """Bring a value into its type's range."""
    assert isinstance(type_, BitsType)
    if type_.signed:
        return operation("two_comp_mod", data, {"type": "hexstr", "value": hex_string(type_.width)})
    return operation("&", data, hexstr((1 << type_.width) - 1, type_.width))


def raw(expression: ir.Expr) -> Json:
    """A field, constant, parameter or lookahead without conversion to bool."""
    if isinstance(expression, ir.FieldRef):
        return {"type": "field", "value": [expression.header, expression.field]}
    if isinstance(expression, ir.Valid):
        return {"type": "field", "value": [expression.header, "$valid$"]}
    if isinstance(expression, ir.LastField):
        return {"type": "stack_field", "value": [expression.stack, expression.field]}
    if isinstance(expression, ir.UnionLastField):
        return {"type": "union_stack_field", "value": [expression.stack, expression.member, expression.field]}
    if isinstance(expression, ir.ParamRef):
        return {"type": "runtime_data", "value": expression.index}
    if isinstance(expression, ir.Lookahead):
        return {"type": "lookahead", "value": [expression.offset, expression.type.width]}
    assert isinstance(expression, ir.ElementField)
    stack = {"type": "header_stack", "value": expression.stack}
    element = operation("dereference_header_stack", stack, convert(expression.index))
    return operation("access_field", element, expression.offset)


def convert(expression: ir.Expr) -> Json:
    """The expression as it stands inside another one: bools are bools, action data is `local`."""
    handler = _HANDLERS[type(expression)]
    result: Json = handler(expression)
    return result


def _const(expression: ir.Const) -> Json:
    if expression.type is BOOL:
        return {"type": "bool", "value": bool(expression.value)}
    return hexstr(expression.value, ir.bit_width(expression.type))


def _field(expression: ir.Expr) -> Json:
    plain = raw(expression)
    return d2b(plain) if expression.type is BOOL else plain


def _param(expression: ir.ParamRef) -> Json:
    return {"type": "local", "value": expression.index}


def _union_valid(expression: ir.UnionValid) -> Json:
    return operation("valid_union", None, {"type": "header_union", "value": expression.union})


def _last_index(expression: ir.LastIndex) -> Json:
    return operation("last_stack_index", None, {"type": "header_stack", "value": expression.stack})


def _unary(expression: ir.Unary) -> Json:
    operand = convert(expression.operand)
    if expression.operator == "!":
        return operation("not", None, operand)
    if expression.operator == "~":
        return mask(operation("~", None, operand), expression.type)
    zero = hexstr(0, ir.bit_width(expression.type))
    return mask(operation("-", zero, operand), expression.type)


def _binary(expression: ir.Binary) -> Json:
    name = expression.operator
    left, right = convert(expression.left), convert(expression.right)
    if name in ("|+|", "|-|"):
        assert isinstance(expression.type, BitsType)
        cast = "sat_cast" if expression.type.signed else "usat_cast"
        width = {"type": "hexstr", "value": hex_string(expression.type.width)}
        return operation(cast, operation("+" if name == "|+|" else "-", left, right), width)
    result = operation(_NAMES.get(name, name), left, right)
    if expression.type is BOOL or name in _CLOSED:
        return result
    return mask(result, expression.type)


def _choice(expression: ir.Choice) -> Json:
    first, second = convert(expression.first), convert(expression.second)
    return operation("?", first, second, cond=convert(expression.condition))


def _convert(expression: ir.Convert) -> Json:
    operand = convert(expression.operand)
    source, target = expression.operand.type, expression.type
    if source is BOOL:
        return b2d(operand)
    assert isinstance(source, BitsType)
    assert isinstance(target, BitsType)
    widens = (
        target.width >= source.width
        if source.signed == target.signed
        else (target.width > source.width and not source.signed)
    )
    return operand if widens else mask(operand, target)


_HANDLERS: dict[type, Any] = {
    ir.Const: _const,
    ir.FieldRef: _field,
    ir.LastField: _field,
    ir.UnionLastField: _field,
    ir.ElementField: _field,
    ir.Valid: _field,
    ir.Lookahead: raw,
    ir.ParamRef: _param,
    ir.UnionValid: _union_valid,
    ir.LastIndex: _last_index,
    ir.Unary: _unary,
    ir.Binary: _binary,
    ir.Choice: _choice,
    ir.Convert: _convert,
}


def operand(value: ir.Operand) -> Json:
    """A primitive's parameter: expressions are wrapped once more, bools become data."""
    if isinstance(value, ir.Reference):
        return {"type": value.kind, "value": value.name}
    if isinstance(value, ir.Vector):
        return {"type": "parameters_vector", "value": [operand(item) for item in value.items]}
    if isinstance(value, ir.ParamRef):
        return raw(value)
    if value.type is BOOL:
        if isinstance(value, ir.FieldRef):
            return raw(value)
        return wrapped(b2d(convert(value)))
    converted = convert(value)
    if converted["type"] == "local":
        # A widening cast of action data leaves nothing but the data.
        return {"type": "runtime_data", "value": converted["value"]}
    return wrapped(converted)


def wrapped(value: Json) -> Json:
    """Parameters hold expressions and stack fields inside one more object."""
    if value["type"] in ("expression", "stack_field"):
        return {"type": "expression", "value": value}
    return value


def condition(value: ir.Expr) -> Json:
    """A bool where BMv2 takes the expression itself (conditionals, verify, if_cond)."""
    return convert(value)


def target(value: ir.Expr) -> Json:
    """The target of an assignment: never converted to bool."""
    plain = raw(value)
    return wrapped(plain)
