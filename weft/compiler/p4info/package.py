"""Information about the package in P4Info (P4Runtime specification, section 6.2)."""

from __future__ import annotations

from typing import Any

from weft.architectures import ARCHITECTURE
from weft.compiler import ast
from weft.compiler.p4info.annotations import add_annotations, add_documentation
from weft.compiler.p4info.context import InfoContext
from weft.compiler.source import Token
from weft.compiler.warnings.kinds import Kind


def add_package(context: InfoContext) -> None:
    """The architecture, and what annotations of `main` say of the program."""
    main = next(
        declaration
        for declaration in context.control_plane.tree.declarations
        if isinstance(declaration, ast.InstanceDeclaration) and declaration.name == "main"
    )
    package = context.info.pkg_info
    package.arch = ARCHITECTURE
    for annotation in main.annotations:
        if annotation.name not in ("pkginfo", "platform_property"):
            continue
        target = package if annotation.name == "pkginfo" else package.platform_properties
        tokens = annotation.tokens
        for index, token in enumerate(tokens):
            if token.kind == "=" and 0 < index < len(tokens) - 1:
                _package_field(context, annotation.name, target, tokens[index - 1], tokens[index + 1])
    add_annotations(package, main.annotations, skip=["pkginfo", "platform_property"])
    add_documentation(package, main.annotations)


def _package_field(context: InfoContext, annotation: str, target: Any, name: Token, value: Token) -> None:
    field = target.DESCRIPTOR.fields_by_name.get(name.text)
    if field is None:
        context.diagnostics.warning(f"unknown key '{name.text}' is ignored", name, Kind.IGNORE)
        return
    kind, wanted = ("text", "a string") if field.type == field.TYPE_STRING else ("integer", "an integer")
    if value.kind != kind:
        context.diagnostics.error(f"'{name.text}' of @{annotation} is {wanted}, which '{value.text}' is not", value)
        return
    setattr(target, name.text, ast.unquote(value.text) if kind == "text" else ast.parse_integer(value.text)[0])
