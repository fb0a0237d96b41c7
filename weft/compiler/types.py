"""The types of P4_16 (specification, section 7), as the checker and the later stages see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.compiler import ast


class Type:
    """Base of all types; `str()` gives what a message shows."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class BasicType(Type):
    """bool, error, string, void, match_kind, the arbitrary-precision int, and pseudo-types of the checker."""

    name: str

    def __str__(self) -> str:
        return self.name


BOOL = BasicType("bool")
ERROR = BasicType("error")
STRING = BasicType("string")
VOID = BasicType("void")
MATCH_KIND = BasicType("match_kind")
INTEGER = BasicType("int")
STATE = BasicType("state")
# The type of an expression already reported as wrong: compatible with everything.
UNKNOWN = BasicType("<unknown>")
# The types of `_`/`default`/`...` and of `{#}`.
DEFAULT = BasicType("default")
INVALID_HEADER = BasicType("{#}")


@dataclass(frozen=True, slots=True)
class BitsType(Type):
    """bit<width>, or int<width> when signed."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


@cache
def bits(width: int, signed: bool = False) -> BitsType:
    """The shared instance of a bit type."""
    return BitsType(width, signed)


@dataclass(frozen=True, slots=True)
class VarbitType(Type):
    """varbit<width>; `width` is the maximum."""

    width: int

    def __str__(self) -> str:
        return f"varbit<{self.width}>"


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """tuple<…>, and the type of a list expression."""

    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


@dataclass(frozen=True, slots=True)
class ListType(Type):
    """list<element>."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class StackType(Type):
    """element[size], of headers or header unions."""

    element: Type
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


@dataclass(frozen=True, slots=True)
class SetType(Type):
    """set<element>: key sets and value sets."""

    element: Type

    def __str__(self) -> str:
        return f"set<{self.element}>"


@dataclass(frozen=True, slots=True)
class AnonymousStructType(Type):
    """The type of `{a = …}` without a type's name."""

    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return "struct {" + ", ".join(f"{type_} {name}" for name, type_ in self.fields) + "}"


@dataclass(frozen=True, slots=True, eq=False)
class TypeVariable(Type):
    """A type parameter, the same object wherever it is used."""

    name: str

    def __str__(self) -> str:
        return self.name


class NominalType(Type):
    """A declared type: equal when the declaration and the type arguments are."""

    __slots__ = ("arguments", "declaration")
    declaration: ast.Declaration
    arguments: tuple[Type, ...]

    def __init__(self, declaration: ast.Declaration, arguments: tuple[Type, ...] = ()) -> None:
        self.declaration = declaration
        self.arguments = arguments

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NominalType)
            and self.declaration is other.declaration
            and self.arguments == other.arguments
        )

    def __hash__(self) -> int:
        return hash((id(self.declaration), self.arguments))

    @property
    def name(self) -> str:
        """The declared name."""
        return self.declaration.name

    def __str__(self) -> str:
        if self.arguments:
            return f"{self.name}<{', '.join(map(str, self.arguments))}>"
        return self.name


class StructType(NominalType):
    """A header, struct or header_union (`kind`) with its fields in order."""

    __slots__ = ("_fields",)
    declaration: ast.StructDeclaration

    def __init__(self, declaration: ast.StructDeclaration, arguments: tuple[Type, ...] = ()) -> None:
        super().__init__(declaration, arguments)
        self._fields: dict[str, Type] | None = None

    @property
    def kind(self) -> str:
        """ "header", "struct" or "header_union"."""
        return self.declaration.kind

    @property
    def fields(self) -> dict[str, Type]:
        """Field types by name, with the type arguments put in."""
        if self._fields is None:
            variables = [parameter.type for parameter in self.declaration.type_parameters]
            mapping: dict[Type, Type] = {
                variable: argument
                for variable, argument in zip(variables, self.arguments, strict=False)
                if variable is not None
            }
            fields = {}
            for entry in self.declaration.fields:
                type_ = entry.type if entry.type is not None else UNKNOWN
                fields[entry.name] = substitute(type_, mapping) if mapping else type_
            self._fields = fields
        return self._fields


class EnumType(NominalType):
    """An enum; `underlying` is its type when serializable, `values` the members' numbers by name."""

    __slots__ = ("underlying", "values")
    declaration: ast.EnumDeclaration

    def __init__(self, declaration: ast.EnumDeclaration, underlying: BitsType | None) -> None:
        super().__init__(declaration)
        self.underlying = underlying
        self.values: dict[str, int] = {}

    def member_of(self, value: int) -> str:
        """Name of the first member with that number."""
        return next(name for name, number in self.values.items() if number == value)


class NewType(NominalType):
    """`type underlying name`."""

    __slots__ = ("underlying",)

    def __init__(self, declaration: ast.Declaration, underlying: Type) -> None:
        super().__init__(declaration)
        self.underlying = underlying


class ExternType(NominalType):
    """An extern object's type."""

    __slots__ = ()
    declaration: ast.ExternDeclaration


class ControlType(NominalType):
    """A control (declared, or its type)."""

    __slots__ = ()
    declaration: ast.ControlDeclaration


class ParserType(NominalType):
    """A parser (declared, or its type)."""

    __slots__ = ()
    declaration: ast.ParserDeclaration


class PackageType(NominalType):
    """A package."""

    __slots__ = ()
    declaration: ast.PackageDeclaration


class ActionType(NominalType):
    """An action used as a value."""

    __slots__ = ()
    declaration: ast.ActionDeclaration

    def __str__(self) -> str:
        return f"action {super().__str__()}"


class TableType(NominalType):
    """A table used as a value."""

    __slots__ = ()
    declaration: ast.TableDeclaration

    def __str__(self) -> str:
        return f"table {super().__str__()}"


class ApplyResultType(NominalType):
    """The type that table.apply() returns."""

    __slots__ = ()
    declaration: ast.TableDeclaration


class ActionRunType(NominalType):
    """The enumeration table.apply().action_run."""

    __slots__ = ()
    declaration: ast.TableDeclaration


@dataclass(frozen=True, slots=True)
class ParameterType:
    """A parameter as a caller sees it."""

    name: str
    direction: str
    type: Type
    optional: bool
    declaration: ast.Parameter


@dataclass(frozen=True, slots=True, eq=False)
class FunctionType(Type):
    """The signature of something that can be called."""

    name: str
    variables: tuple[TypeVariable, ...]
    parameters: tuple[ParameterType, ...]
    result: Type
    declaration: ast.Declaration | None = None

    def __str__(self) -> str:
        inner = ", ".join(
            " ".join(part for part in (parameter.direction, str(parameter.type), parameter.name) if part)
            for parameter in self.parameters
        )
        return f"{self.result} {self.name}({inner})"


@dataclass(frozen=True, slots=True, eq=False)
class OverloadType(Type):
    """Several functions or methods of one name; `receiver` is the expression left of the dot."""

    name: str
    functions: tuple[FunctionType, ...]
    kind: str
    mapping: dict[Type, Type] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"function {self.name}"


def substitute(type_: Type, mapping: Mapping[Type, Type]) -> Type:
    """`type_` with type variables replaced."""
    if not mapping:
        return type_
    if isinstance(type_, TypeVariable):
        found = mapping.get(type_)
        if found is None or found is type_:
            return type_
        return substitute(found, mapping) if isinstance(found, TypeVariable) else found
    if isinstance(type_, TupleType):
        return TupleType(tuple(substitute(element, mapping) for element in type_.elements))
    if isinstance(type_, StackType):
        return StackType(substitute(type_.element, mapping), type_.size)
    if isinstance(type_, ListType):
        return ListType(substitute(type_.element, mapping))
    if isinstance(type_, SetType):
        return SetType(substitute(type_.element, mapping))
    if isinstance(type_, NominalType) and type_.arguments:
        return with_arguments(type_, tuple(substitute(argument, mapping) for argument in type_.arguments))
    return type_


def with_arguments(type_: NominalType, arguments: Sequence[Type]) -> Type:
    """The same declared type with other type arguments."""
    declaration = type_.declaration
    if isinstance(type_, StructType):
        return StructType(type_.declaration, tuple(arguments))
    if isinstance(type_, EnumType | NewType):
        return type_
    return type(type_)(declaration, tuple(arguments))


def strip_new(type_: Type) -> Type:
    """`type_` without `type` wrappers."""
    while isinstance(type_, NewType):
        type_ = type_.underlying
    return type_


def strip_enum(type_: Type) -> Type:
    """A serializable enum's underlying type; other types themselves."""
    if isinstance(type_, EnumType) and type_.underlying is not None:
        return type_.underlying
    return type_


def width_of(type_: Type) -> int | None:
    """Width in bits of a fixed-size type (varbit: its maximum), or None."""
    type_ = strip_new(type_)
    if isinstance(type_, BitsType | VarbitType):
        return type_.width
    if type_ is BOOL:
        return 1
    if isinstance(type_, EnumType):
        return type_.underlying.width if type_.underlying is not None else None
    members: Sequence[Type]
    if isinstance(type_, StructType):
        members = list(type_.fields.values())
        if type_.kind == "header_union":
            widths = [width_of(member) for member in members]
            return None if None in widths else max((width for width in widths if width is not None), default=0)
    elif isinstance(type_, TupleType):
        members = type_.elements
    elif isinstance(type_, StackType):
        inner = width_of(type_.element)
        return None if inner is None else inner * type_.size
    else:
        return None
    total = 0
    for member in members:
        width = width_of(member)
        if width is None:
            return None
        total += width
    return total


def parts_of(type_: Type, known: dict[Type, int]) -> int:
    """Count scalars within a type, the type itself being one; `known` remembers the counts of declared types."""
    type_ = strip_new(type_)
    if isinstance(type_, StructType):
        count = known.get(type_)
        if count is None:
            count = known[type_] = 1 + sum(parts_of(field, known) for field in type_.fields.values())
        return count
    if isinstance(type_, TupleType):
        return 1 + sum(parts_of(element, known) for element in type_.elements)
    if isinstance(type_, StackType):
        return 1 + type_.size * parts_of(type_.element, known)
    return 1


def is_header(type_: Type) -> bool:
    """Whether it is a header type."""
    return isinstance(type_, StructType) and type_.kind == "header"


def is_union(type_: Type) -> bool:
    """Whether it is a header union type."""
    return isinstance(type_, StructType) and type_.kind == "header_union"
