"""Allocation of variables: scalars become fields of the `scalars` metadata, headers become instances."""

from __future__ import annotations

from collections.abc import Callable

from weft.compiler import ir
from weft.compiler.diagnostics import Diagnostics
from weft.compiler.lower.values import HeaderValue, P4Value, StackValue, StructValue, UnionValue
from weft.compiler.types import (
    BOOL,
    ERROR,
    BitsType,
    EnumType,
    StackType,
    StructType,
    TupleType,
    Type,
    VarbitType,
    bits,
    is_header,
    is_union,
    strip_new,
)

SCALARS = "scalars"
ERROR_BITS = bits(32)
ENUM_BITS = bits(32)


def scalar_type(type_: Type) -> Type | None:
    """The IR type of a scalar P4 type; None for anything else."""
    type_ = strip_new(type_)
    if isinstance(type_, BitsType | VarbitType) or type_ is BOOL:
        return type_
    if isinstance(type_, EnumType):
        return type_.underlying or ENUM_BITS
    if type_ is ERROR:
        return ERROR_BITS
    return None


def is_empty(type_: Type) -> bool:
    """Whether a scalar type has no bits: BMv2 has no such field, and every read gives 0."""
    return isinstance(type_, BitsType) and type_.width == 0


def matchable(type_: Type) -> Type:
    """The type of a variable that BMv2 can match or be given a value of a scalar type as: one bit, 0, for none."""
    return bits(1) if is_empty(type_) else type_


def member_types(type_: Type) -> list[tuple[str, Type]]:
    """Names and types of the parts of a struct, tuple or stack."""
    if isinstance(type_, StructType):
        return list(type_.fields.items())
    if isinstance(type_, StackType):
        return [(str(index), type_.element) for index in range(type_.size)]
    assert isinstance(type_, TupleType)
    return [(str(index), element) for index, element in enumerate(type_.elements)]


class Storage:
    """Names and instances of the program being lowered."""

    def __init__(self, program: ir.LoweredProgram, diagnostics: Diagnostics) -> None:
        self.program = program
        self.diagnostics = diagnostics
        self._reused: dict[Type, list[ir.FieldRef]] = {}
        self._names: set[str] = {SCALARS, "standard_metadata"}
        self._type_names: dict[StructType, str] = {}
        self._used_type_names: set[str] = {SCALARS, "standard_metadata"}

    def unique(self, name: str) -> str:
        """`name`, with a number if it is taken."""
        if name not in self._names:
            self._names.add(name)
            return name
        number = 0
        while f"{name}_{number}" in self._names:
            number += 1
        chosen = f"{name}_{number}"
        self._names.add(chosen)
        return chosen

    def allocate(self, type_: Type, name: str) -> P4Value:
        """A variable of any type, under a name not used before."""
        scalar = scalar_type(type_)
        if isinstance(scalar, VarbitType):
            return self._varbit(scalar, name)
        if scalar is not None and is_empty(scalar):
            return ir.Const(0, scalar)
        if scalar is not None:
            field = self.unique(name)
            self.program.scalars.append((field, scalar))
            return ir.FieldRef(SCALARS, field, scalar)
        if isinstance(type_, StackType) and (is_header(type_.element) or is_union(type_.element)):
            return self._stack(type_, self.unique(name))
        if isinstance(type_, StructType) and type_.kind == "header":
            return self._header(type_, self.unique(name))
        if isinstance(type_, StructType) and type_.kind == "header_union":
            return self._union(type_, self.unique(name))
        fields = {part: self.allocate(inner, f"{name}.{part}") for part, inner in member_types(type_)}
        return StructValue(type_, fields)

    def reused(self, type_: Type, number: int) -> ir.FieldRef:
        """The variable `number` (from 0) of a scalar type; any statement may use it while the statement runs."""
        variables = self._reused.setdefault(type_, [])
        while len(variables) <= number:
            variable = self.allocate(type_, "tmp")
            assert isinstance(variable, ir.FieldRef)
            variables.append(variable)
        return variables[number]

    def allocate_headers(self, type_: StructType) -> StructValue:
        """The parser's headers argument: instances are named after the fields."""
        fields: dict[str, P4Value] = {}
        external = {field.name: field.external_name() for field in type_.declaration.fields}
        for part, inner in type_.fields.items():
            if isinstance(inner, StructType) and inner.kind == "struct":
                fields[part] = self._nested_headers(inner, external[part])
            elif scalar_type(inner) is not None:
                fields[part] = self.allocate(inner, f"{type_.name}.{external[part]}")
            else:
                fields[part] = self.allocate(inner, external[part].lstrip("."))
        return StructValue(type_, fields)

    def _nested_headers(self, type_: StructType, prefix: str) -> StructValue:
        fields: dict[str, P4Value] = {}
        for part, inner in type_.fields.items():
            if isinstance(inner, StructType) and inner.kind == "struct":
                fields[part] = self._nested_headers(inner, f"{prefix}.{part}")
            else:
                fields[part] = self.allocate(inner, f"{prefix}.{part}")
        return StructValue(type_, fields)

    def standard_metadata(self, type_: StructType) -> StructValue:
        """The metadata instance that the target fills in, and its aliases."""
        name = "standard_metadata"
        fields: list[tuple[str, Type]] = []
        refs: dict[str, P4Value] = {}
        for field in type_.declaration.fields:
            scalar = scalar_type(type_.fields[field.name])
            assert scalar is not None
            fields.append((field.name, scalar))
            refs[field.name] = ir.FieldRef(name, field.name, scalar)
            alias = field.annotation("alias")
            if alias is not None:
                for target in alias.strings():
                    self.program.aliases.append((target, name, field.name))
        self.program.header_types[name] = ir.HeaderType(name, fields)
        return StructValue(type_, refs)

    def _varbit(self, type_: VarbitType, name: str) -> ir.FieldRef:
        type_name = f"$varbit{type_.width}"
        if type_name not in self.program.header_types:
            self.program.header_types[type_name] = ir.HeaderType(type_name, [("field", type_)])
        instance = self.unique(name)
        self.program.headers.append(ir.HeaderInstance(instance, type_name, True))
        return ir.FieldRef(instance, "field", type_)

    def _header(self, type_: StructType, name: str) -> HeaderValue:
        self.program.headers.append(ir.HeaderInstance(name, self.header_type(type_), False))
        return HeaderValue(name, type_, fields_of(type_, lambda path, scalar: ir.FieldRef(name, path, scalar)))

    def _union(self, type_: StructType, name: str) -> UnionValue:
        union = UnionValue(name, type_)
        for part, inner in type_.fields.items():
            assert isinstance(inner, StructType)
            member_name = f"{name}.{part}"
            self._names.add(member_name)
            member = self._header(inner, member_name)
            member.union = union
            union.members[part] = member
        type_name = self.union_type(type_)
        names = [member.name for member in union.members.values()]
        self.program.unions.append(ir.UnionInstance(name, type_name, names))
        return union

    def _stack(self, type_: StackType, name: str) -> StackValue:
        element = type_.element
        assert isinstance(element, StructType)
        names = [f"{name}[{index}]" for index in range(type_.size)]
        if element.kind == "header_union":
            elements: list[P4Value] = [self._union(element, each) for each in names]
            self.program.union_stacks.append(ir.StackInstance(name, self.union_type(element), names))
        else:
            elements = [self._header(element, each) for each in names]
            self.program.stacks.append(ir.StackInstance(name, self.header_type(element), names))
        return StackValue(name, type_, elements)

    def header_type(self, type_: StructType) -> str:
        """The JSON name of a header type, declaring it on first use."""
        known = self._type_names.get(type_)
        if known is not None:
            return known
        name = self._type_name(type_)
        fields = flat_fields(type_)
        width = sum(ir.bit_width(inner) for _, inner in fields)
        if width % 8:
            self.diagnostics.error(
                f"BMv2 has headers of whole bytes only; '{type_}' has {width} bits", type_.declaration.span
            )
        self.program.header_types[name] = ir.HeaderType(name, fields)
        return name

    def union_type(self, type_: StructType) -> str:
        """The JSON name of a header union type."""
        known = self._type_names.get(type_)
        if known is not None:
            return known
        name = self._type_name(type_)
        members = []
        for part, inner in type_.fields.items():
            assert isinstance(inner, StructType)
            members.append((part, self.header_type(inner)))
        self.program.union_types[name] = members
        return name

    def _type_name(self, type_: StructType) -> str:
        name = base = type_.declaration.external_name().lstrip(".")
        number = 0
        while name in self._used_type_names:
            name = f"{base}_{number}"
            number += 1
        self._used_type_names.add(name)
        self._type_names[type_] = name
        return name


def flat_fields(type_: StructType, prefix: str = "") -> list[tuple[str, Type]]:
    """Scalar fields of a header that have bits, nested structs flattened with dotted names."""
    fields: list[tuple[str, Type]] = []
    for part, inner in type_.fields.items():
        scalar = scalar_type(inner)
        if scalar is not None:
            if not is_empty(scalar):
                fields.append((prefix + part, scalar))
        else:
            assert isinstance(inner, StructType)
            fields += flat_fields(inner, f"{prefix}{part}.")
    return fields


def fields_of(type_: StructType, leaf: Callable[[str, Type], P4Value], prefix: str = "") -> dict[str, P4Value]:
    """A header's fields by name, structs within as StructValues; `leaf` makes a scalar of its path and IR type."""
    fields: dict[str, P4Value] = {}
    for name, inner in type_.fields.items():
        scalar = scalar_type(inner)
        if scalar is not None:
            fields[name] = ir.Const(0, scalar) if is_empty(scalar) else leaf(prefix + name, scalar)
        else:
            assert isinstance(inner, StructType)
            fields[name] = StructValue(inner, fields_of(inner, leaf, f"{prefix}{name}."))
    return fields
