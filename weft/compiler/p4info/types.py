"""P4 types in P4Info: type_info and P4DataTypeSpec (P4Runtime specification, section 6.5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.compiler import ast
from weft.compiler.lower.storage import flat_fields
from weft.compiler.p4info.annotations import add_annotations
from weft.compiler.types import (
    BOOL,
    ERROR,
    BitsType,
    EnumType,
    NewType,
    StackType,
    StructType,
    TupleType,
    Type,
    VarbitType,
    strip_new,
    width_of,
)

_TRANSLATION = "p4runtime_translation"


def translation(type_: Type) -> tuple[str, int | None] | None:
    """URI and width (None: string) of @p4runtime_translation, or None."""
    if not isinstance(type_, NewType):
        return None
    annotation = type_.declaration.annotation(_TRANSLATION)
    if annotation is None:
        return None
    uri = annotation.strings()[0] if annotation.strings() else ""
    numbers = annotation.integers()
    if numbers:
        return uri, numbers[0]
    return uri, None


def control_plane_width(type_: Type) -> int:
    """The width P4Runtime sees: 0 for a type translated to a string."""
    translated = translation(type_)
    if translated is not None:
        return translated[1] or 0
    return width_of(strip_new(type_)) or 0


def type_name(type_: Type) -> str | None:
    """The name of a `type`; other types have none in P4Info."""
    return type_.name if isinstance(type_, NewType) else None


class TypeSpecs:
    """Fills a P4TypeInfo as types are met."""

    def __init__(self, type_info: Any, errors: Iterable[str]) -> None:
        self.info = type_info
        self.errors = list(errors)

    def note(self, type_: Type) -> None:
        """Record a type that a key, parameter or field has, if it has a name."""
        if isinstance(type_, NewType):
            self._new_type(type_)
        elif isinstance(type_, EnumType):
            self._enum(type_)
        elif type_ is ERROR:
            self._error()

    def fill(self, spec: Any, type_: Type) -> None:
        """Write a P4DataTypeSpec."""
        if isinstance(type_, BitsType | VarbitType):
            self._bits(spec.bitstring, type_)
        elif type_ is BOOL:
            spec.bool.SetInParent()
        elif type_ is ERROR:
            spec.error.SetInParent()
            self._error()
        elif isinstance(type_, TupleType):
            spec.tuple.SetInParent()
            for element in type_.elements:
                self.fill(spec.tuple.members.add(), element)
        elif isinstance(type_, NewType):
            spec.new_type.name = type_.declaration.external_name()
            self._new_type(type_)
        elif isinstance(type_, EnumType):
            (spec.enum if type_.underlying is None else spec.serializable_enum).name = type_.name
            self._enum(type_)
        elif isinstance(type_, StackType):
            self._stack(spec, type_)
        elif isinstance(type_, StructType):
            self._struct_reference(spec, type_)

    def _bits(self, spec: Any, type_: Type) -> None:
        if isinstance(type_, VarbitType):
            spec.varbit.max_bitwidth = type_.width
        elif isinstance(type_, BitsType):
            (spec.int if type_.signed else spec.bit).bitwidth = type_.width

    def _stack(self, spec: Any, type_: StackType) -> None:
        element = type_.element
        assert isinstance(element, StructType)
        name = element.declaration.external_name()
        if element.kind == "header":
            spec.header_stack.header.name = name
            spec.header_stack.size = type_.size
        else:
            spec.header_union_stack.header_union.name = name
            spec.header_union_stack.size = type_.size
        self._struct(element)

    def _struct_reference(self, spec: Any, type_: StructType) -> None:
        name = type_.declaration.external_name()
        target = {"struct": spec.struct, "header": spec.header, "header_union": spec.header_union}[type_.kind]
        target.name = name
        self._struct(type_)

    def _struct(self, type_: StructType) -> None:
        name = type_.declaration.external_name()
        if type_.kind == "header":
            if name not in self.info.headers:
                entry = self.info.headers[name]
                for field, inner in flat_fields(type_):
                    member = entry.members.add()
                    member.name = field
                    self._bits(member.type_spec, inner)
        elif type_.kind == "header_union":
            if name not in self.info.header_unions:
                union = self.info.header_unions[name]
                for field, member_type in type_.fields.items():
                    assert isinstance(member_type, StructType)
                    part = union.members.add()
                    part.name = field
                    part.header.name = member_type.declaration.external_name()
                    self._struct(member_type)
        elif name not in self.info.structs:
            struct = self.info.structs[name]
            for declared in type_.declaration.fields:
                member = struct.members.add()
                member.name = declared.external_name()
                self.fill(member.type_spec, type_.fields[declared.name])

    def _error(self) -> None:
        if not self.info.error.members:
            self.info.error.members.extend(self.errors)

    def _new_type(self, type_: NewType) -> None:
        name = type_.declaration.external_name()
        if name in self.info.new_types:
            return
        entry = self.info.new_types[name]
        add_annotations(entry, type_.declaration.annotations, skip=[_TRANSLATION])
        translated = translation(type_)
        if translated is None:
            self.fill(entry.original_type, strip_new(type_))
            return
        entry.translated_type.uri = translated[0]
        if translated[1] is None:
            entry.translated_type.sdn_string.SetInParent()
        else:
            entry.translated_type.sdn_bitwidth = translated[1]

    def _enum(self, type_: EnumType) -> None:
        name = type_.name
        if type_.underlying is None:
            if name not in self.info.enums:
                members = self.info.enums[name]
                for declared in type_.declaration.members:
                    members.members.add().name = declared.name
            return
        if name in self.info.serializable_enums:
            return
        entry = self.info.serializable_enums[name]
        entry.underlying_type.bitwidth = type_.underlying.width
        add_annotations(entry, type_.declaration.annotations)
        bytes_ = (type_.underlying.width + 7) // 8
        for declared in type_.declaration.members:
            member = entry.members.add()
            member.name = declared.name
            member.value = (type_.values[declared.name] & ((1 << 8 * bytes_) - 1)).to_bytes(bytes_, "big")
            add_annotations(member, declared.annotations)


def annotations_of(declaration: ast.Declaration | None) -> ast.Annotations:
    """A declaration's annotations; none without a declaration."""
    return declaration.annotations if declaration is not None else []
