"""Instances of externs, controls and parsers, and the inlining of controls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.compiler import ast
from weft.compiler.budgets import ARRAY_CELLS, CONTROL_PLANE_SIZE
from weft.compiler.check.scope import choices
from weft.compiler.ir import ActionProfile, Const, Counter, FieldRef, Meter, Register, bit_width
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.overlap import same_value
from weft.compiler.lower.storage import SCALARS, scalar_type
from weft.compiler.lower.tables import Tables
from weft.compiler.lower.values import ActionValue, BlockValue, ExternValue, TableValue
from weft.compiler.source import Span
from weft.compiler.types import ControlType, EnumType, ExternType, ParserType, Type
from weft.compiler.warnings.kinds import Kind

_SIZED = ("register", "counter", "meter", "action_profile", "action_selector")
_DIRECT = ("direct_counter", "direct_meter")
_SHARED_NAMES = {
    "direct_counter": "counter",
    "direct_meter": "meter",
    "action_selector": "action_profile",
}
"""Kinds that BMv2 keeps among those of another."""


class Blocks(Tables):
    """`instantiate` makes instances, `apply_block` inlines a control."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.externs: list[ExternValue] = []
        self._extern_places: dict[tuple[str, str], Span] = {}

    # ------------------------------------------------------------------------------ instances

    def instantiate_local(self, declaration: ast.InstanceDeclaration) -> None:
        """An instance in the current frame, named after its declaration."""
        assert declaration.call is not None
        value = self.instantiate(declaration.call, self.frame.name_of(declaration), declaration)
        self.frame.bind(declaration, value)

    def instantiate(self, call: ast.Call, name: str, declaration: ast.InstanceDeclaration | None) -> Any:
        """An instance of an extern, control or parser."""
        self.inlined.take(1, call.span)
        type_ = self.frame.type(call.type)
        bindings: dict[Type, Type] = {key: self.frame.type(inner) for key, inner in call.bindings.items()}
        if isinstance(type_, ControlType | ParserType):
            parameters = type_.declaration.constructor_parameters
            arguments = self._constructor_arguments(parameters, call)
            return BlockValue(type_.declaration, name, arguments, bindings)
        if isinstance(type_, ExternType):
            if type_.name not in _SIZED + _DIRECT:
                self.refuse(f"v1model on BMv2 has no extern '{type_.name}' {choices(_SIZED + _DIRECT)}", call)
            constructor = next(
                method
                for method in type_.declaration.methods
                if method.result is None and len(method.parameters) >= len(call.arguments)
            )
            arguments = self._constructor_arguments(constructor.parameters, call)
            value = ExternValue(type_.name, name, declaration, arguments, type_, call)
            self._declare_extern(value)
            return value
        self.refuse(f"'{type_}' cannot be instantiated here", call)

    def _constructor_arguments(self, parameters: Sequence[ast.Parameter], call: ast.Call) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        for parameter, expression in zip(parameters, call.ordered, strict=True):
            if expression is None:
                continue
            if isinstance(expression, ast.Call) and expression.kind == "constructor":
                arguments[parameter.name] = self.instantiate(
                    expression, self.frame.qualify(parameter.name), None
                )
            else:
                arguments[parameter.name] = self.value(expression)
        return arguments

    def _declare_extern(self, value: ExternValue) -> None:
        """Add the instance to the program's arrays (direct ones when their table is known: see finish)."""
        span = value.declaration.span if value.declaration is not None else value.call.span
        self._check_name(value, span)
        self.externs.append(value)
        size = self._size(value) if value.kind in _SIZED else 0
        if value.kind == "register":
            self._register(value, size)
        elif value.kind == "counter":
            self.program.counters.append(Counter(value.name, size, None, span))
        elif value.kind == "meter":
            self.program.meters.append(Meter(value.name, self.unit(value), size, None, None, span))
        elif value.kind == "action_profile":
            value.data["profile"] = ActionProfile(value.name, size, None, None, span)
        elif value.kind == "action_selector":
            algorithm = self.member_argument(value, "algorithm")
            value.data["profile"] = ActionProfile(value.name, size, algorithm, None, span)
        elif value.kind not in _DIRECT:
            self.refuse(
                f"v1model on BMv2 has no extern '{value.kind}' {choices(_SIZED + _DIRECT)}", value.call
            )

    def _check_name(self, value: ExternValue, span: Span) -> None:
        """The control plane tells instances of a kind by their names."""
        kind = _SHARED_NAMES.get(value.kind, value.kind)
        known = self._extern_places.setdefault((kind, value.name), span)
        if known is not span:
            self.diagnostics.error(
                f"two {kind}s have the control-plane name '{value.name}'; give one another by @name", span
            ).note("the other one", known)

    def _register(self, value: ExternValue, size: int) -> None:
        assert isinstance(value.type, ExternType)
        element = value.type.arguments[0]
        scalar = scalar_type(element)
        span = value.declaration.span if value.declaration is not None else value.call.span
        if scalar is None:
            self.refuse(f"BMv2 has registers of bit, int and bool types only, not of '{element}'", value.call)
        if size == 0:
            self.refuse("a register array has at least one element", value.call)
        value.data["element"] = element
        self.program.registers.append(Register(value.name, size, bit_width(scalar), span))

    def _size(self, value: ExternValue) -> int:
        limit = CONTROL_PLANE_SIZE if value.kind.startswith("action") else ARRAY_CELLS
        size = value.arguments.get("size")
        return self.control_plane_size(size, f"the size of '{value.name}'", value.call, limit)

    def unit(self, value: ExternValue) -> str:
        """packets, bytes or packets_and_bytes of a counter or meter."""
        return self.member_argument(value, "type")

    def member_argument(self, value: ExternValue, name: str) -> str:
        """The enum member given for a constructor parameter."""
        assert isinstance(value.type, ExternType)
        constructor = next(method for method in value.type.declaration.methods if method.result is None)
        parameter = next(entry for entry in constructor.parameters if entry.name == name)
        argument = value.arguments[name]
        if not isinstance(parameter.type, EnumType) or not isinstance(argument, Const):
            self.refuse(f"'{name}' must be known at compile time", value.call)
        return parameter.type.member_of(int(argument.value))

    def finish_direct_externs(self) -> None:
        """Counters and meters of tables, once every table is known."""
        for value in self.externs:
            table = value.data.get("table")
            span = value.declaration.span if value.declaration is not None else value.call.span
            if value.kind == "direct_counter" and table is not None:
                self.program.counters.append(Counter(value.name, None, table.name, span))
            elif value.kind == "direct_meter":
                self._direct_meter(value, table)

    def _direct_meter(self, value: ExternValue, table: Any) -> None:
        span = value.declaration.span if value.declaration is not None else value.call.span
        result = value.data.get("result")
        if table is None:
            if result is not None:
                self.diagnostics.error(
                    f"direct meter '{value.name}' is read but no table has it in 'meters'", span
                )
            return
        if result is None:
            self.diagnostics.warning(f"direct meter '{value.name}' is never read", span, Kind.UNUSED)
            result = self.temporary_field(f"{value.name}.color")
        self.program.meters.append(Meter(value.name, self.unit(value), table.size, table.name, result, span))

    def temporary_field(self, name: str) -> Any:
        """A 32-bit variable."""
        from weft.compiler.types import bits

        return self.storage.allocate(bits(32), name)

    # ------------------------------------------------------------------------------ controls

    def instance_frame(self, block: BlockValue) -> Frame:
        """The frame of an instance: its constructor's arguments and its own instances, made once."""
        if block.frame is None:
            declaration = block.declaration
            frame = Frame(self.globals, block.name, block.bindings)
            for parameter in declaration.constructor_parameters:
                if parameter.name in block.arguments:
                    frame.bind(parameter, block.arguments[parameter.name])
                elif parameter.default is not None:
                    frame.bind(parameter, self.value(parameter.default))
            block.frame = frame
            with self.in_frame(frame):
                for local in declaration.locals:
                    if isinstance(local, ast.InstanceDeclaration):
                        self.instantiate_local(local)
                    elif isinstance(local, ast.ConstantDeclaration):
                        self.constant(local)
        return block.frame  # type: ignore[no-any-return]

    def apply_block(self, block: BlockValue, arguments: Sequence[Any], call: ast.Call) -> None:
        """Inline a control; parsers are inlined by the parser's lowering."""
        declaration = block.declaration
        if not isinstance(declaration, ast.ControlDeclaration):
            self.refuse("a parser can be applied in a parser's state only", call)
        frame = Frame(self.instance_frame(block), block.name, self._block_bindings(block, call))
        copy_out = self.bind_arguments(declaration.parameters, arguments, frame, None, call)
        if block.applied is None:
            block.applied = frame
        elif any(isinstance(local, ast.TableDeclaration) for local in declaration.locals):
            copy_out = self._same_arguments(declaration, block.applied, frame, copy_out, call)
            frame = block.applied
        with self._deeper(call), self.copying(copy_out):
            self.control_body(declaration, frame)
        self.copy_back(copy_out, call.span)

    def _same_arguments(
        self,
        declaration: ast.ControlDeclaration,
        first: Frame,
        again: Frame,
        copy_out: list[tuple[Any, Any]],
        call: ast.Call,
    ) -> list[tuple[Any, Any]]:
        """A control with tables applied again: its actions keep using the first application's storage."""
        back = list(copy_out)
        for parameter in declaration.parameters:
            known, new = first.find(parameter), again.find(parameter)
            if same_value(known, new):
                continue
            if not isinstance(known, FieldRef) or known.header != SCALARS:
                self.refuse(
                    f"'{declaration.name}' has tables, so it must be applied to the same '{parameter.name}' everywhere",
                    call,
                )
            if parameter.direction != "out":
                self.assign(known, new, call.span)
            if parameter.direction in ("out", "inout"):
                back = [(target, known if local is new else local) for target, local in back]
        return back

    def _block_bindings(self, block: BlockValue, call: ast.Call) -> dict[Type, Type]:
        bindings: dict[Type, Type] = dict(block.bindings)
        for key, type_ in call.bindings.items():
            bindings[key] = self.frame.type(type_)
        return bindings

    def control_body(self, declaration: ast.ControlDeclaration, frame: Frame) -> None:
        """A control's locals and apply block, its parameters being bound."""
        assert declaration.body is not None
        with self.in_frame(frame):
            for local in declaration.locals:
                if isinstance(local, ast.VariableDeclaration):
                    self.variable(local, keep=True)
                elif isinstance(local, ast.ActionDeclaration):
                    frame.bind(local, frame.values.get(id(local)) or ActionValue(local, frame))
                elif isinstance(local, ast.TableDeclaration):
                    frame.bind(local, frame.values.get(id(local)) or TableValue(local, frame))
        self.inline_body(frame, declaration.body.statements, declaration.body.span)
