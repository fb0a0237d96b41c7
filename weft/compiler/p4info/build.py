"""The P4Info message of a lowered program (P4Runtime specification, section 6)."""

from __future__ import annotations

from typing import Any

from weft.compiler import ast
from weft.compiler.diagnostics import Diagnostics
from weft.compiler.ir import LoweredProgram
from weft.compiler.lower.control_plane import ControlPlane
from weft.compiler.p4info.annotations import add_annotations, add_documentation, wanted_id
from weft.compiler.p4info.base import EXTERN_PREFIXES, MATCH_TYPES, is_hidden
from weft.compiler.p4info.externs import ExternInfos
from weft.compiler.p4info.ids import IdConflict, Prefix, field_ids
from weft.compiler.p4info.types import annotations_of, control_plane_width
from weft.compiler.source import Span
from weft.compiler.types import (
    BitsType,
    EnumType,
    SetType,
    StructType,
    Type,
    strip_new,
)
from weft.compiler.warnings.kinds import Kind
from weft.compiler.wording import choices

ARCHITECTURE = "v1model"


class P4InfoBuilder(ExternInfos):
    """Builds the message from what the lowering found."""

    def build(self) -> Any:
        """The P4Info message. Errors are in the diagnostics."""
        self._announce()
        self.info.pkg_info.arch = ARCHITECTURE
        self._package()
        for table in self.tables:
            self._table(table)
        for name, (declaration, _) in self.actions.items():
            self._action(name, declaration)
        for value in self.control_plane.externs:
            self._extern(value)
        self._value_sets()
        self._digests()
        for header in self.controller_headers:
            self._controller_header(header)
        if self.control_plane.extern_functions:
            # As p4c does: empty type information where something could have had a type.
            self.info.type_info.SetInParent()
        return self.info

    # ------------------------------------------------------------------------------ names

    def _add(self, prefix: Prefix, name: str, annotations: ast.Annotations, span: Span | None) -> None:
        try:
            self.ids.add(prefix, name, wanted_id(annotations))
        except IdConflict as conflict:
            self.diagnostics.error(str(conflict), span)
            self.ids.add(prefix, name)

    def _announce(self) -> None:
        for table in self.tables:
            declaration, _ = self.control_plane.table_sources[table.name]
            self._add(Prefix.TABLE, table.name, declaration.annotations, declaration.span)
        for name, (action, _) in self.actions.items():
            self._add(Prefix.ACTION, name, action.annotations, action.span)
        for value in self.control_plane.externs:
            prefix = EXTERN_PREFIXES[value.kind]
            if value.kind.startswith("direct") and "table" not in value.data:
                continue
            self._add(prefix, value.name, annotations_of(value.declaration), value.call.span)
        for name, (declaration_, _) in self.control_plane.value_set_sources.items():
            self._add(Prefix.VALUE_SET, name, declaration_.annotations, declaration_.span)
        for header in self.controller_headers:
            self._add(Prefix.CONTROLLER_HEADER, header.external_name(), header.annotations, header.span)
        for name in self.control_plane.digest_types:
            self.ids.add(Prefix.DIGEST, name)
        self.ids.assign()

    # ------------------------------------------------------------------------------ package

    def _package(self) -> None:
        main = next(
            declaration
            for declaration in self.control_plane.tree.declarations
            if isinstance(declaration, ast.InstanceDeclaration) and declaration.name == "main"
        )
        package = self.info.pkg_info
        for annotation in main.annotations:
            if annotation.name not in ("pkginfo", "platform_property"):
                continue
            target = package if annotation.name == "pkginfo" else package.platform_properties
            tokens = annotation.tokens
            for index, token in enumerate(tokens):
                if token.kind == "=" and 0 < index < len(tokens) - 1:
                    self._package_field(target, tokens[index - 1], tokens[index + 1])
        add_annotations(package, main.annotations, skip=["pkginfo", "platform_property"])
        add_documentation(package, main.annotations)

    def _package_field(self, target: Any, name: Any, value: Any) -> None:
        if name.text not in target.DESCRIPTOR.fields_by_name:
            self.diagnostics.warning(f"unknown key '{name.text}' is ignored", name, Kind.IGNORE)
        elif value.kind == "text":
            setattr(target, name.text, ast.unquote(value.text))
        else:
            setattr(target, name.text, ast.parse_integer(value.text)[0])

    # ------------------------------------------------------------------------------ the rest

    def _value_sets(self) -> None:
        sizes = {entry.name: entry.size for entry in self.program.value_sets}
        for name, (declaration, frame) in self.control_plane.value_set_sources.items():
            message = self.info.value_sets.add()
            self._preamble(message, Prefix.VALUE_SET, name, declaration.annotations)
            message.size = sizes[name]
            assert isinstance(declaration.type, SetType)
            element = frame.type(declaration.type.element)
            if isinstance(element, StructType):
                self._struct_matches(message, element)
            elif isinstance(element, BitsType):
                match = message.match.add()
                match.id = 1
                match.bitwidth = element.width
                match.match_type = MATCH_TYPES["exact"]
            elif isinstance(element, EnumType) and element.underlying is not None:
                for index, member in enumerate(element.declaration.members):
                    match = message.match.add()
                    match.id = index + 1
                    match.name = member.external_name()
                    match.bitwidth = element.underlying.width
                    match.match_type = MATCH_TYPES["exact"]

    def _struct_matches(self, message: Any, element: StructType) -> None:
        fields = element.declaration.fields
        ids = field_ids([wanted_id(field.annotations) for field in fields])
        for field, number in zip(fields, ids, strict=True):
            match = message.match.add()
            match.id = number
            match.name = field.external_name()
            match.bitwidth = control_plane_width(element.fields[field.name])
            annotation = field.annotation("match")
            kind = "".join(token.text for token in annotation.tokens) if annotation is not None else "exact"
            if kind not in MATCH_TYPES:
                self.diagnostics.error(f"'{kind}' is not a match kind {choices(MATCH_TYPES)}", field.span)
                continue
            if not isinstance(strip_new(element.fields[field.name]), BitsType):
                self.diagnostics.error(
                    "P4Runtime knows bit<…> fields only in a value set's struct, not "
                    f"'{element.fields[field.name]}'",
                    field.span,
                )
            match.match_type = MATCH_TYPES[kind]
            add_annotations(match, field.annotations, skip=["match"])
            add_documentation(match, field.annotations)

    def _digests(self) -> None:
        for name, type_ in self.control_plane.digest_types.items():
            message = self.info.digests.add()
            annotations = type_.declaration.annotations if isinstance(type_, StructType) else []
            self._preamble(message, Prefix.DIGEST, name, annotations)
            self.types.fill(message.type_spec, type_)

    def _controller_header(self, declaration: ast.StructDeclaration) -> None:
        annotation = declaration.annotation("controller_header")
        assert annotation is not None
        name = annotation.strings()[0] if annotation.strings() else declaration.name
        message = self.info.controller_packet_metadata.add()
        message.preamble.id = self.ids.id(Prefix.CONTROLLER_HEADER, declaration.external_name())
        message.preamble.name = name
        message.preamble.alias = name
        add_annotations(message.preamble, declaration.annotations)
        add_documentation(message.preamble, declaration.annotations)
        fields = controller_fields(declaration.fields, [], [])
        ids = field_ids([wanted_id(notes) for _, notes, _ in fields])
        for (path, notes, type_), number in zip(fields, ids, strict=True):
            entry = message.metadata.add()
            entry.id = number
            entry.name = path
            add_annotations(entry, notes)
            entry.bitwidth = control_plane_width(type_)
            self._name_type(entry, type_)


def controller_fields(
    fields: list[ast.Field], path: list[str], outer: ast.Annotations
) -> list[tuple[str, ast.Annotations, Type]]:
    """Name, annotations and type of a controller header's fields, nested structs flattened with dots."""
    flat: list[tuple[str, ast.Annotations, Type]] = []
    for field in fields:
        if is_hidden(field.annotations) or field.type is None:
            continue
        if isinstance(field.type, StructType):
            inner = field.type.declaration.fields
            flat += controller_fields(inner, [*path, field.name], [*outer, *field.annotations])
        else:
            name = field.external_name() if not path else ".".join([*path, field.name])
            flat.append((name, [*outer, *field.annotations], field.type))
    return flat


def build_p4info(program: LoweredProgram, control_plane: ControlPlane, diagnostics: Diagnostics) -> Any:
    """The P4Info message. Raises CompileError."""
    info = P4InfoBuilder(program, control_plane, diagnostics).build()
    diagnostics.raise_if_errors()
    return info
