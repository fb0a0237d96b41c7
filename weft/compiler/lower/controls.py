"""Controls, inlined where they are applied."""

from __future__ import annotations

from collections.abc import Sequence

from weft.compiler import ast
from weft.compiler.ir import FieldRef
from weft.compiler.lower.arguments import bind_arguments, copy_back, copying
from weft.compiler.lower.assign import assign
from weft.compiler.lower.context import Context, Copies
from weft.compiler.lower.declarations import declare_constant, declare_variable
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.inlining import deeper, inline_body
from weft.compiler.lower.instances import declare_instance
from weft.compiler.lower.overlap import same_value
from weft.compiler.lower.storage import SCALARS
from weft.compiler.lower.values import ActionValue, BlockValue, P4Value, TableValue
from weft.compiler.types import Type


def instance_frame(context: Context, block: BlockValue) -> Frame:
    """The frame of an instance: its constructor's arguments and its own instances, made once."""
    if block.frame is None:
        declaration = block.declaration
        frame = Frame(context.globals, block.name, block.bindings)
        for parameter in declaration.constructor_parameters:
            if parameter.name in block.arguments:
                frame.bind(parameter, block.arguments[parameter.name])
            elif parameter.default is not None:
                frame.bind(parameter, evaluate(context, parameter.default))
        block.frame = frame
        with context.in_frame(frame):
            for local in declaration.locals:
                if isinstance(local, ast.InstanceDeclaration):
                    declare_instance(context, local)
                elif isinstance(local, ast.ConstantDeclaration):
                    declare_constant(context, local)
    return block.frame


def apply_control(context: Context, block: BlockValue, arguments: Sequence[P4Value], call: ast.Call) -> None:
    """instance.apply(…) of a control, inlined."""
    declaration = block.declaration
    assert isinstance(declaration, ast.ControlDeclaration)
    frame = Frame(instance_frame(context, block), block.name, block_bindings(context, block, call))
    copy_out = bind_arguments(context, declaration.parameters, arguments, frame, None, call)
    if block.applied is None:
        block.applied = frame
    elif any(isinstance(local, ast.TableDeclaration) for local in declaration.locals):
        copy_out = _same_arguments(context, declaration, block.applied, frame, copy_out, call)
        frame = block.applied
    with deeper(context, call), copying(context, copy_out):
        lower_control_body(context, declaration, frame)
    copy_back(context, copy_out, call.span)


def _same_arguments(
    context: Context,
    declaration: ast.ControlDeclaration,
    first: Frame,
    again: Frame,
    copy_out: Copies,
    call: ast.Call,
) -> Copies:
    """A control with tables applied again: its actions keep using the first application's storage."""
    back = list(copy_out)
    for parameter in declaration.parameters:
        known, new = first.find(parameter), again.find(parameter)
        if same_value(known, new):
            continue
        if not isinstance(known, FieldRef) or known.header != SCALARS:
            context.refuse(
                f"'{declaration.name}' has tables, so it must be applied to the same '{parameter.name}' everywhere",
                call,
            )
        if parameter.direction != "out":
            assign(context, known, new, call.span)
        if parameter.direction in ("out", "inout"):
            back = [(target, known if local is new else local) for target, local in back]
    return back


def block_bindings(context: Context, block: BlockValue, call: ast.Call) -> dict[Type, Type]:
    """The types that stand for a block's type parameters in this application."""
    bindings: dict[Type, Type] = dict(block.bindings)
    for key, type_ in call.bindings.items():
        bindings[key] = context.frame.type(type_)
    return bindings


def lower_control_body(context: Context, declaration: ast.ControlDeclaration, frame: Frame) -> None:
    """A control's locals and apply block, its parameters being bound."""
    assert declaration.body is not None
    with context.in_frame(frame):
        for local in declaration.locals:
            if isinstance(local, ast.VariableDeclaration):
                declare_variable(context, local, keep=True)
            elif isinstance(local, ast.ActionDeclaration):
                frame.bind(local, frame.values.get(id(local)) or ActionValue(local, frame))
            elif isinstance(local, ast.TableDeclaration):
                frame.bind(local, frame.values.get(id(local)) or TableValue(local, frame))
    inline_body(context, frame, declaration.body.statements, declaration.body.span)


def bound_frame(
    context: Context, block: BlockValue, arguments: Sequence[P4Value]
) -> tuple[ast.ControlDeclaration, Frame]:
    """The control of a block of the package, and its frame with these values as arguments."""
    declaration = block.declaration
    assert isinstance(declaration, ast.ControlDeclaration)
    frame = Frame(instance_frame(context, block), block.name, block.bindings)
    for parameter, value in zip(declaration.parameters, arguments, strict=True):
        frame.bind(parameter, value)
    return declaration, frame
