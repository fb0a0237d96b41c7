"""From the checked tree to a LoweredProgram: the package `main` and its six blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from weft.compiler import ast
from weft.compiler.check import Symbols
from weft.compiler.diagnostics import Diagnostics, Refused
from weft.compiler.ir import FieldRef, LoweredProgram, Pipeline
from weft.compiler.lower.checksums import lower_checksums
from weft.compiler.lower.context import Context
from weft.compiler.lower.control_plane import ControlPlane
from weft.compiler.lower.controls import bound_frame, lower_control_body
from weft.compiler.lower.declarations import declare_constant
from weft.compiler.lower.deparser import lower_deparser
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.field_lists import declare_field_lists
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.handlers import HANDLERS
from weft.compiler.lower.instances import declare_instance, finish_direct_externs, instantiate
from weft.compiler.lower.parsers import lower_parser
from weft.compiler.lower.values import ActionValue, BlockValue, P4Value, PacketValue, StructValue
from weft.compiler.types import BitsType, EnumType, PackageType, StructType

PACKAGE = "V1Switch"
TRIMMED = "queueing_metadata.trimmed"
"""Weft's own name for whether the queue has trimmed the packet; BMv2 has no such metadata."""
_SIGNATURES = {
    "parser": ("parser", "packet_in", 4),
    "verify": ("control", None, 2),
    "ingress": ("control", None, 3),
    "egress": ("control", None, 3),
    "update": ("control", None, 2),
    "deparser": ("control", "packet_out", 2),
}
"""The package's blocks in order, by role: the kind of each, its extern parameter, and how many it has."""


def lower_program(
    tree: ast.Program, symbols: Symbols, source_name: str, diagnostics: Diagnostics
) -> tuple[LoweredProgram, ControlPlane]:
    """Lower a checked program. Raises CompileError.

    What a block refuses does not keep the others from being looked at.
    """
    program = LoweredProgram(source_name)
    program.errors = dict(symbols.errors)
    for type_ in symbols.types.values():
        if isinstance(type_, EnumType) and type_.underlying is None:
            program.enums[type_.name] = dict(type_.values)
    context = Context(program, diagnostics, tree, HANDLERS)
    with suppress(Refused):
        main = _declare_globals(context, tree)
        blocks = _instantiate_blocks(context, main)
        _lower_blocks(context, blocks, _allocate(context, symbols, blocks))
    diagnostics.raise_if_errors()
    return program, context.control_plane


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments that the blocks are applied to."""

    headers: StructValue
    metadata: StructValue
    standard: StructValue


def _lower_blocks(context: Context, blocks: dict[str, BlockValue], given: _Arguments) -> None:
    both = [given.headers, given.metadata]
    every = [*both, given.standard]
    with _block_of_its_own(context):
        lower_parser(context, blocks["parser"], [PacketValue("packet_in"), *every])
    with _block_of_its_own(context):
        lower_checksums(context, "verify", blocks["verify"], both)
    for role in ("ingress", "egress"):
        with _block_of_its_own(context):
            _lower_pipeline(context, role, blocks[role], every)
    with _block_of_its_own(context):
        lower_checksums(context, "update", blocks["update"], both)
    with _block_of_its_own(context):
        lower_deparser(context, blocks["deparser"], [PacketValue("packet_out"), given.headers])
    with _block_of_its_own(context):
        finish_direct_externs(context)


@contextmanager
def _block_of_its_own(context: Context) -> Iterator[None]:
    """If the block inside is refused, only its message remains."""
    try:
        yield
    except Refused:
        context.out = []
        context.frame = context.globals
        context.calls.in_action = False


def _declare_globals(context: Context, tree: ast.Program) -> ast.InstanceDeclaration:
    """Declare what is outside all blocks; returns `main`."""
    main: ast.InstanceDeclaration | None = None
    for declaration in tree.declarations:
        if isinstance(declaration, ast.ActionDeclaration) and declaration.name == "NoAction":
            context.tables.no_action = declaration
    for declaration in tree.declarations:
        if isinstance(declaration, ast.ActionDeclaration):
            context.globals.bind(declaration, ActionValue(declaration, context.globals))
        elif isinstance(declaration, ast.ConstantDeclaration):
            declare_constant(context, declaration)
        elif isinstance(declaration, ast.InstanceDeclaration):
            if isinstance(declaration.type, PackageType):
                if declaration.name == "main":
                    main = declaration
            else:
                declare_instance(context, declaration)
    if main is None:
        context.refuse("the program has no package instance 'main'", None)
    assert isinstance(main.type, PackageType)
    if main.type.name != PACKAGE:
        context.refuse(f"'main' is a '{main.type.name}'; this compiler knows '{PACKAGE}' of v1model.p4", main)
    return main


def _instantiate_blocks(context: Context, main: ast.InstanceDeclaration) -> dict[str, BlockValue]:
    """The blocks of the package, by role."""
    assert main.call is not None
    if len(main.call.ordered) != len(_SIGNATURES):
        context.refuse(
            f"'{PACKAGE}' has the {len(_SIGNATURES)} blocks of v1model.p4, not {len(main.call.ordered)}", main
        )
    blocks: dict[str, BlockValue] = {}
    for role, expression in zip(_SIGNATURES, main.call.ordered, strict=True):
        assert isinstance(expression, ast.Expression)
        if isinstance(expression, ast.Call) and expression.kind == "constructor":
            name = expression.type.declaration.name  # type: ignore[union-attr]
            block = instantiate(context, expression, name, None)
        else:
            block = evaluate(context, expression)
        _check_block(context, role, block, expression)
        assert isinstance(block, BlockValue)
        blocks[role] = block
    return blocks


def _check_block(context: Context, role: str, block: P4Value, where: ast.Expression) -> None:
    """Refuse a block that v1model.p4's package would not take: a program may declare a package of the same name."""
    kind, extern, count = _SIGNATURES[role]
    declared = block.declaration if isinstance(block, BlockValue) else None
    if isinstance(declared, ast.ParserDeclaration if kind == "parser" else ast.ControlDeclaration):
        first = declared.parameters[0].type if declared.parameters else None
        if len(declared.parameters) == count and (extern is None or str(first) == extern):
            return
    behind = f", the first a '{extern}'" if extern else ""
    context.refuse(f"the {role} block of v1model.p4's '{PACKAGE}' is a {kind} of {count} parameters{behind}", where)


def _allocate(context: Context, symbols: Symbols, blocks: dict[str, BlockValue]) -> _Arguments:
    """Storage for headers and metadata, as the parser declares them."""
    parser = blocks["parser"].declaration
    frame = Frame(None, "", blocks["parser"].bindings)
    _, headers_parameter, metadata_parameter, standard_parameter = parser.parameters
    headers_type = _struct_type(context, frame, headers_parameter)
    metadata_type = _struct_type(context, frame, metadata_parameter)
    standard = context.storage.standard_metadata(_struct_type(context, frame, standard_parameter))
    headers = context.storage.allocate_headers(headers_type)
    metadata = context.storage.allocate(metadata_type, "userMetadata")
    assert isinstance(metadata, StructValue)
    declare_field_lists(context, symbols, metadata_type, metadata)
    _declare_trimmed(context, metadata)
    return _Arguments(headers, metadata, standard)


def _declare_trimmed(context: Context, metadata: StructValue) -> None:
    """Have the switch write whether it has trimmed the packet to the user's metadata annotated `@weft_trimmed`."""
    if not isinstance(metadata.type, StructType):
        return  # a stack's elements have no annotations
    for field in metadata.type.declaration.fields:
        value = metadata.fields[field.name]
        if isinstance(value, StructValue):
            _declare_trimmed(context, value)
        if field.annotation("weft_trimmed") is None:
            continue
        if not isinstance(value, FieldRef) or value.type != BitsType(1):
            context.refuse(f"'@weft_trimmed' is for a field of bit<1>, not '{field.name}'", field)
        if any(alias == TRIMMED for alias, *_ in context.program.aliases):
            context.refuse(f"'{field.name}' is the second field with '@weft_trimmed': one may have it", field)
        context.program.aliases.append((TRIMMED, value.header, value.field))


def _struct_type(context: Context, frame: Frame, parameter: ast.Parameter) -> StructType:
    type_ = frame.type(parameter.type)
    if not isinstance(type_, StructType) or type_.kind != "struct":
        context.refuse(f"v1model needs a struct here, not '{type_}'", parameter.node)
    return type_


def _lower_pipeline(context: Context, role: str, block: BlockValue, arguments: Sequence[P4Value]) -> None:
    context.place = role
    declaration, frame = bound_frame(context, block, arguments)
    pipeline = Pipeline(role, [], declaration.span)
    context.tables.pipeline = pipeline
    context.program.pipelines.append(pipeline)
    with context.collecting() as code:
        lower_control_body(context, declaration, frame)
    pipeline.body = code
