"""From the checked tree to a LoweredProgram: the package `main` and its six blocks."""

from __future__ import annotations

from typing import Any

from weft.compiler import ast
from weft.compiler.check import Checker
from weft.compiler.diagnostics import Diagnostics, Refused
from weft.compiler.ir import (
    Checksum,
    Const,
    Expr,
    FieldList,
    FieldRef,
    LoweredProgram,
    Pipeline,
    Primitive,
    Valid,
)
from weft.compiler.lower import build
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.parsers import Parsers
from weft.compiler.lower.values import (
    BlockValue,
    HeaderLiteral,
    HeaderValue,
    PacketValue,
    StackValue,
    StructValue,
    UnionValue,
)
from weft.compiler.source import Span, Token
from weft.compiler.types import EnumType, PackageType, StructType, Type

PACKAGE = "V1Switch"
_CHECKSUMS = {
    "verify": ("verify_checksum", "verify_checksum_with_payload"),
    "update": ("update_checksum", "update_checksum_with_payload"),
}


class ProgramLowering(Parsers):
    """`run` lowers everything; what a block refuses does not keep the others from being looked at."""

    def __init__(
        self, program: LoweredProgram, diagnostics: Diagnostics, checker: Checker, tree: ast.Program
    ) -> None:
        super().__init__(program, diagnostics)
        self.checker = checker
        self.tree = tree
        self.blocks: dict[str, BlockValue] = {}
        self.headers_type: StructType | None = None
        self.metadata_type: StructType | None = None

    def run(self) -> None:
        """Lower the program. Errors are in the diagnostics."""
        self.program.errors = dict(self.checker.errors)
        self._enums()
        for declaration in self.tree.declarations:
            if isinstance(declaration, ast.ActionDeclaration) and declaration.name == "NoAction":
                self.no_action = declaration
        try:
            main = self._globals()
            arguments = self._allocate(main)
        except Refused:
            return
        headers, metadata, standard = arguments
        self._guarded(
            lambda: self.lower_parser(
                self.blocks["parser"], [PacketValue("packet_in"), headers, metadata, standard]
            )
        )
        self._guarded(lambda: self._checksums("verify", [headers, metadata]))
        self._guarded(lambda: self._pipeline("ingress", [headers, metadata, standard]))
        self._guarded(lambda: self._pipeline("egress", [headers, metadata, standard]))
        self._guarded(lambda: self._checksums("update", [headers, metadata]))
        self._guarded(lambda: self._deparser([PacketValue("packet_out"), headers]))
        self._guarded(self.finish_direct_externs)

    def _guarded(self, step: Any) -> None:
        try:
            step()
        except Refused:
            self.out = []
            self.frame = self.globals
            self.in_action = False

    def _enums(self) -> None:
        for type_ in self.checker.types.values():
            if isinstance(type_, EnumType) and type_.underlying is None:
                self.program.enums[type_.name] = dict(type_.values)

    # ------------------------------------------------------------------------------ main

    def _globals(self) -> ast.InstanceDeclaration:
        main: ast.InstanceDeclaration | None = None
        for declaration in self.tree.declarations:
            if isinstance(declaration, ast.ActionDeclaration):
                from weft.compiler.lower.values import ActionValue

                self.globals.bind(declaration, ActionValue(declaration, self.globals))
            elif isinstance(declaration, ast.ConstantDeclaration):
                self.constant(declaration)
            elif isinstance(declaration, ast.InstanceDeclaration):
                if isinstance(declaration.type, PackageType):
                    if declaration.name == "main":
                        main = declaration
                else:
                    self.instantiate_local(declaration)
        if main is None:
            self.refuse("the program has no package instance 'main'", None)
        assert isinstance(main.type, PackageType)
        if main.type.name != PACKAGE:
            self.refuse(
                f"'main' is a '{main.type.name}'; this compiler knows '{PACKAGE}' of v1model.p4", main
            )
        return main

    def _allocate(self, main: ast.InstanceDeclaration) -> tuple[Any, Any, Any]:
        assert main.call is not None
        roles = ("parser", "verify", "ingress", "egress", "update", "deparser")
        if len(main.call.ordered) != len(roles):
            self.refuse(
                f"'{PACKAGE}' has the {len(roles)} blocks of v1model.p4, not {len(main.call.ordered)}", main
            )
        for role, expression in zip(roles, main.call.ordered, strict=True):
            assert isinstance(expression, ast.Expression)
            if isinstance(expression, ast.Call) and expression.kind == "constructor":
                name = expression.type.declaration.name  # type: ignore[union-attr]
                block = self.instantiate(expression, name, None)
            else:
                block = self.value(expression)
            assert isinstance(block, BlockValue)
            self.blocks[role] = block
        parser = self.blocks["parser"].declaration
        frame = Frame(None, "", self.blocks["parser"].bindings)
        headers_type = frame.type(parser.parameters[1].type)
        metadata_type = frame.type(parser.parameters[2].type)
        standard_type = frame.type(parser.parameters[3].type)
        self.headers_type = self._struct(headers_type, parser.parameters[1])
        self.metadata_type = self._struct(metadata_type, parser.parameters[2])
        standard = self.storage.standard_metadata(self._struct(standard_type, parser.parameters[3]))
        headers = self.storage.allocate_headers(self.headers_type)
        metadata = self.storage.allocate(self.metadata_type, "userMetadata")
        self._field_lists(self.metadata_type, metadata)
        return headers, metadata, standard

    def _struct(self, type_: Type, parameter: ast.Parameter) -> StructType:
        if not isinstance(type_, StructType) or type_.kind != "struct":
            self.refuse(f"v1model needs a struct here, not '{type_}'", parameter.node)
        return type_

    def _field_lists(self, type_: StructType, value: StructValue) -> None:
        """@field_list(n) on metadata fields: what clones and resubmissions preserve."""
        lists: dict[int, FieldList] = {}
        self._collect_field_lists(type_, value, lists)
        for index in lists:
            self.program.field_lists.append(lists[index])

    def _collect_field_lists(
        self, type_: StructType, value: StructValue, lists: dict[int, FieldList]
    ) -> None:
        for field in type_.declaration.fields:
            annotation = field.annotation("field_list")
            part = value.fields[field.name]
            if annotation is not None:
                for index in self._list_indices(annotation):
                    known = lists.get(index)
                    if known is None:
                        known = FieldList(len(lists) + 1, f"field_list{index}", [], None)
                        lists[index] = known
                    known.elements += self.leaves(part, field)
            elif isinstance(part, StructValue) and isinstance(part.type, StructType):
                self._collect_field_lists(part.type, part, lists)

    def _list_indices(self, annotation: ast.Annotation) -> list[int]:
        """Indices are integers, constants, or members of serializable enums."""
        indices: list[int] = []
        item: list[Token] = []
        for token in [*annotation.tokens, None]:
            if token is not None and token.kind != ",":
                item.append(token)
                continue
            if item:
                index = self._list_index(item)
                if index is None:
                    text = "".join(each.text for each in item)
                    self.diagnostics.error(f"'{text}' is not a constant", Span(item[0], item[-1]))
                else:
                    indices.append(index)
            item = []
        return indices

    def _list_index(self, item: list[Token]) -> int | None:
        if len(item) == 1 and item[0].kind == "integer":
            return ast.parse_integer(item[0].text)[0]
        known = self.checker.root.lookup(item[0].text)
        if len(item) == 1 and isinstance(known, ast.ConstantDeclaration):
            return known.value if isinstance(known.value, int) else None
        if len(item) == 3 and item[1].kind == "." and isinstance(known, ast.EnumDeclaration):
            type_ = self.checker.types.get(id(known))
            if isinstance(type_, EnumType):
                return type_.values.get(item[2].text)
        return None

    # ------------------------------------------------------------------------------ blocks

    def _bound_frame(self, role: str, arguments: list[Any]) -> tuple[ast.ControlDeclaration, Frame]:
        block = self.blocks[role]
        declaration = block.declaration
        assert isinstance(declaration, ast.ControlDeclaration)
        frame = Frame(self.instance_frame(block), block.name, block.bindings)
        for parameter, value in zip(declaration.parameters, arguments, strict=True):
            frame.bind(parameter, value)
        return declaration, frame

    def _pipeline(self, role: str, arguments: list[Any]) -> None:
        self.place = role
        declaration, frame = self._bound_frame(role, arguments)
        pipeline = Pipeline(role, [], declaration.span)
        self.pipeline = pipeline
        self.program.pipelines.append(pipeline)
        with self.collecting() as code:
            self.control_body(declaration, frame)
        pipeline.body = code

    def _checksums(self, role: str, arguments: list[Any]) -> None:
        self.place = role
        declaration, frame = self._bound_frame(role, arguments)
        with self.in_frame(frame), self.collecting() as code:
            for local in declaration.locals:
                if isinstance(local, ast.VariableDeclaration):
                    self.refuse(f"variables are not possible in this control on BMv2 ('{local.name}')", local)
            assert declaration.body is not None
            self._checksum_block(role, declaration.body.statements, build.TRUE)
        if code:
            self.refuse("BMv2 computes nothing here but checksums of fields and constants", declaration)

    def _checksum_block(self, role: str, statements: list[ast.Node], condition: Expr) -> None:
        for statement in statements:
            if isinstance(statement, ast.Block):
                self._checksum_block(role, statement.statements, condition)
            elif isinstance(statement, ast.If):
                value = self.scalar(statement.condition)
                when = self.shallow(build.both(condition, value), statement.condition)
                self._checksum_block(role, [statement.then], when)
                if statement.otherwise is not None:
                    when = self.shallow(build.both(condition, build.negate(value)), statement.condition)
                    self._checksum_block(role, [statement.otherwise], when)
            elif isinstance(statement, ast.CallStatement) and isinstance(statement.call, ast.Call):
                self._checksum_call(role, statement.call, condition)
            elif not isinstance(statement, ast.Empty):
                self.refuse(
                    f"only calls of {' and '.join(_CHECKSUMS[role])} are possible here on BMv2", statement
                )

    def _checksum_call(self, role: str, call: ast.Call, condition: Expr) -> None:
        if call.kind in ("apply", "type_apply"):
            self._nested_checksums(role, call, condition)
            return
        name = call.target.name if isinstance(call.target, ast.FunctionDeclaration) else ""
        if call.kind != "function" or name not in _CHECKSUMS[role]:
            self.refuse(f"only calls of {' and '.join(_CHECKSUMS[role])} are possible here on BMv2", call)
        self.extern_functions.add(name)
        when = build.both(condition, self.scalar(call.ordered[0]))
        inputs = self.calculation_inputs(self.value(call.ordered[1]), call.ordered[1], simple_only=True)
        target = self.value(call.ordered[2])
        if not isinstance(target, FieldRef):
            self.refuse("BMv2 takes a field as the checksum", call.ordered[2])
        algorithm = self.enum_member(call.ordered[3])
        calculation = self.calculation(algorithm, inputs, name.endswith("_with_payload"), call)
        checksum = Checksum(
            self.storage.unique("cksum"), target, calculation, role == "verify", when, call.span
        )
        self.program.checksums.append(checksum)

    def _nested_checksums(self, role: str, call: ast.Call, condition: Expr) -> None:
        callee = call.callee
        assert isinstance(callee, ast.Member)
        if call.kind == "type_apply":
            block = BlockValue(call.target, call.target.name, {}, dict(call.bindings))
        else:
            block = self.value(callee.base)
        declaration = block.declaration
        assert isinstance(declaration, ast.ControlDeclaration)
        assert declaration.body is not None
        frame = Frame(self.instance_frame(block), block.name, self._block_bindings(block, call))
        self.bind_arguments(declaration.parameters, call.ordered, frame, None, call)
        with self.in_frame(frame):
            self._checksum_block(role, declaration.body.statements, condition)

    # ------------------------------------------------------------------------------ deparser

    def _deparser(self, arguments: list[Any]) -> None:
        self.place = "deparser"
        declaration, frame = self._bound_frame("deparser", arguments)
        self.program.deparser_span = declaration.span
        with self.collecting() as code:
            self.control_body(declaration, frame)
        for statement in code:
            if not isinstance(statement, Primitive):
                self.refuse(
                    "BMv2's deparser emits headers and logs messages; it has no branches", statement.span
                )
        self.program.deparser_operations = code

    def statement(self, statement: ast.Node) -> None:
        """As elsewhere; a condition in the deparser may only repeat what emit checks itself."""
        if self.place != "deparser" or not isinstance(statement, ast.If):
            super().statement(statement)
            return
        condition = self.scalar(statement.condition)
        if isinstance(condition, Const):
            super().statement(statement)
            return
        before = len(self.program.deparser_order)
        with self.collecting() as code:
            super().statement(statement.then)
        emitted = self.program.deparser_order[before:]
        known = isinstance(condition, Valid) and emitted == [condition.header]
        if not known or code or statement.otherwise is not None:
            self.refuse(
                "BMv2's deparser has no branches (but `if (h.isValid()) packet.emit(h);` is emit)", statement
            )

    def emit_headers(self, value: Any, where: ast.Node) -> None:
        """packet_out.emit: the order in which the deparser looks at header instances."""
        if self.place != "deparser":
            self.refuse("'emit' is possible in the deparser only", where)
        order = self.program.deparser_order
        if isinstance(value, HeaderValue):
            order.append(value.name)
        elif isinstance(value, StackValue):
            for element in value.elements:
                self.emit_headers(element, where)
        elif isinstance(value, UnionValue):
            for member in value.members.values():
                self.emit_headers(member, where)
        elif isinstance(value, StructValue):
            for part in value.fields.values():
                self.emit_headers(part, where)
        elif not isinstance(value, HeaderLiteral) or value.fields is not None:
            self.refuse("only headers, stacks, unions and structs of them can be emitted", where)


def lower_program(
    tree: ast.Program, checker: Checker, source_name: str, diagnostics: Diagnostics
) -> tuple[LoweredProgram, ProgramLowering]:
    """Lower a checked program. Raises CompileError."""
    program = LoweredProgram(source_name)
    lowering = ProgramLowering(program, diagnostics, checker, tree)
    lowering.run()
    diagnostics.raise_if_errors()
    return program, lowering
