"""Which types may stand where (specification, section 7.2.8 and 6.8)."""

from __future__ import annotations

from weft.compiler.types import (
    BOOL,
    INTEGER,
    MATCH_KIND,
    STRING,
    UNKNOWN,
    VOID,
    ActionType,
    BitsType,
    ControlType,
    EnumType,
    ExternType,
    ListType,
    PackageType,
    ParserType,
    SetType,
    StackType,
    StructType,
    TableType,
    TupleType,
    Type,
    TypeVariable,
    VarbitType,
    is_header,
    is_union,
    strip_new,
)


def is_number(type_: Type) -> bool:
    """Whether arithmetic is defined on it."""
    return isinstance(type_, BitsType) or type_ is INTEGER


BLOCKS = (ControlType, ParserType, PackageType)


# Things that exist once and cannot be copied, stored or passed as data.
OBJECTS = (*BLOCKS, ExternType, TableType, ActionType)


def is_data(type_: Type) -> bool:
    """Whether values of the type can be parts of others."""
    return not isinstance(type_, (*OBJECTS, SetType)) and type_ is not VOID


def allowed_in(kind: str, type_: Type) -> bool:
    """Whether a field of a struct, header or header_union can be of the type."""
    if type_ is UNKNOWN or isinstance(type_, TypeVariable):
        return True
    if kind == "header_union":
        return is_header(type_)
    if kind == "header":
        return _allowed_in_header(type_)
    return is_data(type_) and not isinstance(type_, ListType) and type_ not in (INTEGER, STRING, MATCH_KIND)


def is_storable(type_: Type) -> bool:
    """Whether a variable can be of the type: its values can be known at run time only."""
    if isinstance(type_, TupleType):
        return all(is_storable(element) for element in type_.elements)
    if isinstance(type_, StackType):
        return is_storable(type_.element)
    return is_data(type_) and not isinstance(type_, ListType) and type_ not in (INTEGER, STRING, MATCH_KIND)


def _allowed_in_header(type_: Type) -> bool:
    plain = strip_new(type_)
    if isinstance(plain, StructType) and plain.kind == "struct":
        return all(_allowed_in_header(inner) for inner in plain.fields.values())
    if isinstance(plain, EnumType):
        return plain.underlying is not None
    return isinstance(plain, BitsType | VarbitType | TypeVariable) or plain in (BOOL, UNKNOWN)


def parameter_problem(type_: Type, direction: str, *, constructor: bool) -> str | None:
    """Say what is wrong with a parameter; None if nothing is."""
    if isinstance(type_, ControlType | ParserType):
        if not constructor:
            return f"a {_kind(type_)} cannot be passed at run time"
        declared = type_.declaration.states if isinstance(type_, ParserType) else type_.declaration.body
        if declared is not None:
            return f"a parameter's type is a {_kind(type_)} without a body, which '{type_}' is not"
    if direction and (isinstance(type_, OBJECTS) or type_ in (STRING, INTEGER, VOID)):
        return f"a parameter of type '{type_}' has no direction"
    return None


def _kind(type_: Type) -> str:
    return "parser" if isinstance(type_, ParserType) else "control"


def looked_ahead(type_: Type) -> bool:
    """Whether packet_in.lookahead can give the type: its width is fixed."""
    plain = strip_new(type_)
    if isinstance(plain, StructType):
        return not is_union(plain) and all(looked_ahead(inner) for inner in plain.fields.values())
    if isinstance(plain, TupleType):
        return all(looked_ahead(inner) for inner in plain.elements)
    if isinstance(plain, StackType):
        return looked_ahead(plain.element)
    if isinstance(plain, EnumType):
        return plain.underlying is not None
    return isinstance(plain, BitsType | TypeVariable) or plain in (BOOL, UNKNOWN)
