"""Arguments of externs as operands of BMv2's primitives."""

from __future__ import annotations

from collections.abc import Sequence

from weft.compiler import ast
from weft.compiler.ir import Const, Expr, FieldRef, Operand, Primitive
from weft.compiler.lower import build
from weft.compiler.lower.assign import assign
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate, evaluate_scalar
from weft.compiler.lower.storage import is_empty, scalar_type
from weft.compiler.lower.targets import evaluate_target
from weft.compiler.lower.values import P4Value
from weft.compiler.types import BOOL, BitsType, EnumType, Type, bits

_PIPELINES = ("ingress", "egress")

Arguments = Sequence[ast.Expression | None]
"""A call's arguments, in the order of the parameters; None stands for one that is ignored."""


class Result:
    """A primitive's result: written to `field`, then moved to the real target by `store`."""

    def __init__(self, context: Context, field: FieldRef, target: P4Value | None, call: ast.Call) -> None:
        self.field = field
        self._context = context
        self._target = target
        self._call = call

    def store(self) -> None:
        """Move the result to where it belongs."""
        if self._target is not None:
            assign(self._context, self._target, self.field, self._call.span)


def only_in_pipelines(context: Context, call: ast.Call, what: str) -> None:
    """Refuse a call elsewhere than in ingress and egress."""
    if context.place not in _PIPELINES:
        context.refuse(f"BMv2 has '{what}' in ingress and egress only, not in the {context.place}", call)


def emit_primitive(context: Context, call: ast.Call, name: str, *operands: Operand) -> None:
    """Append a primitive."""
    context.emit(Primitive(name, list(operands), call.span))


def input_operand(context: Context, argument: ast.Expression | None) -> Expr:
    """A scalar that a primitive reads."""
    assert argument is not None
    return context.simple(evaluate_scalar(context, argument), argument.span)


def typed_input(context: Context, argument: ast.Expression | None, type_: Type) -> Expr:
    """An input as an unsigned value of the primitive's own width when it is a bool."""
    assert argument is not None
    value = evaluate_scalar(context, argument)
    if value.type is BOOL:
        value = build.convert(value, bits(1))
    elif isinstance(type_, BitsType) and value.type != type_:
        value = build.convert(value, type_)
    return context.simple(value, argument.span)


def present(context: Context, argument: ast.Expression | None, call: ast.Call) -> ast.Expression:
    """An argument that must not be ignored."""
    if argument is None:
        context.refuse(f"'{call.target.name}' needs all its arguments", call)
    return argument


def result_of(context: Context, call: ast.Call, argument: ast.Expression | None, type_: Type) -> Result:
    """Where a primitive writes its result; afterwards `Result.store`."""
    target = evaluate_target(context, argument) if argument is not None else None
    scalar = scalar_type(type_)
    if scalar is None or is_empty(scalar):
        context.refuse(f"BMv2 cannot write a result of type '{type_}'", argument or call)
    wanted = bits(1) if scalar is BOOL else scalar
    if isinstance(target, FieldRef) and target.type == wanted:
        return Result(context, target, None, call)
    return Result(context, context.scalar_temporary(wanted), target, call)


def enum_member(context: Context, argument: ast.Expression | None) -> str:
    """The name of an enum's member given as an argument."""
    assert argument is not None
    type_ = context.type_of(argument)
    value = evaluate(context, argument)
    if not isinstance(value, Const) or not isinstance(type_, EnumType):
        context.refuse("this argument must be known at compile time", argument)
    return type_.member_of(int(value.value))


def integer(context: Context, argument: ast.Expression | None) -> int:
    """A compile-time integer argument."""
    assert argument is not None
    value = evaluate(context, argument)
    assert isinstance(value, Const)
    return int(value.value)
