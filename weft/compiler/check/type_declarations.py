"""Checking of declarations of types (specification, section 7.2)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.allowed_types import allowed_in
from weft.compiler.check.tables import Tables
from weft.compiler.diagnostics import Diagnostics
from weft.compiler.fold import wrap
from weft.compiler.types import (
    UNKNOWN,
    BitsType,
    EnumType,
    NewType,
    TypeVariable,
    VarbitType,
    strip_new,
)

_KINDS = {"struct": "struct", "header": "header", "header_union": "header union"}


class TypeDeclarations(Tables):
    """Structs, headers, unions, enums, errors, match kinds, typedef and type."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(diagnostics)
        self.error_declarations: dict[str, ast.EnumMember] = {}

    def check_declaration(self, declaration: ast.Declaration) -> None:
        """One declaration of any kind."""
        raise NotImplementedError

    def check_type_parameters(self, parameters: list[ast.TypeParameter]) -> tuple[TypeVariable, ...]:
        """Declare type parameters; returns their variables."""
        variables = []
        for parameter in parameters:
            self.declare(parameter)
            type_ = self.type_of_declaration(parameter)
            assert isinstance(type_, TypeVariable)
            variables.append(type_)
        return tuple(variables)

    def _struct(self, declaration: ast.StructDeclaration) -> None:
        with self.inner_scope():
            self.check_type_parameters(declaration.type_parameters)
            seen: dict[str, ast.Field] = {}
            varbits = 0
            for field in declaration.fields:
                field.type = self.resolve(field.node)
                if field.name in seen:
                    self.error(f"field '{field.name}' is declared twice", field).note(
                        "first declared here", seen[field.name].span
                    )
                seen[field.name] = field
                varbits += isinstance(field.type, VarbitType)
                self._field(declaration, field)
            if declaration.kind == "header" and varbits > 1:
                self.error(
                    f"header '{declaration.name}' has {varbits} varbit fields; one is possible", declaration
                )
        self.bounded(self.type_of_declaration(declaration), declaration)
        self.declare(declaration)

    def _field(self, declaration: ast.StructDeclaration, field: ast.Field) -> None:
        type_ = field.type or UNKNOWN
        if isinstance(field.node, ast.BaseTypeNode) and field.node.name == "_":
            self.error("a field needs a type, not '_'", field.node)
        elif not allowed_in(declaration.kind, type_):
            self.error(f"a {_KINDS[declaration.kind]} cannot hold a '{type_}'", field.node)
            field.type = UNKNOWN

    def _enum(self, declaration: ast.EnumDeclaration) -> None:
        underlying: BitsType | None = None
        if declaration.underlying is not None:
            type_ = self.resolve(declaration.underlying)
            if isinstance(type_, BitsType):
                underlying = type_
            elif type_ is not UNKNOWN:
                self.error(
                    f"an enum's underlying type is bit<…> or int<…>, not '{type_}'", declaration.underlying
                )
        enum = EnumType(declaration, underlying)
        self.types[id(declaration)] = enum
        for index, member in enumerate(declaration.members):
            if member.name in enum.values:
                self.error(f"member '{member.name}' is declared twice", member)
            number: int | None = index
            if underlying is not None:
                if member.expression is None:
                    self.error(f"member '{member.name}' of an enum with a type needs a value", member)
                else:
                    number = self._member_value(member.expression, underlying)
            elif member.expression is not None:
                self.error("only an enum with an underlying type has values", member)
            enum.values[member.name] = number if number is not None else 0
        self.declare(declaration)

    def _member_value(self, expression: ast.Expression, underlying: BitsType) -> int | None:
        value = self.constant(expression, "an enum member's value")
        if value is not None and wrap(value, underlying) != value:
            self.error(f"the value {value} does not fit '{underlying}'", expression)
            return None
        self.coerce(expression, underlying)
        return value

    def _members(self, declaration: ast.MembersDeclaration) -> None:
        for member in declaration.members:
            if declaration.name == "error":
                if member.name in self.errors:
                    self.error(f"error '{member.name}' is declared twice", member).note(
                        "first declared here", self.error_declarations[member.name].span
                    )
                    continue
                self.errors[member.name] = len(self.errors)
                self.error_declarations[member.name] = member
            else:
                if member.name in self.match_kinds:
                    self.error(f"match kind '{member.name}' is declared twice", member).note(
                        "first declared here", self.match_kinds[member.name].span
                    )
                self.match_kinds[member.name] = member

    def _typedef(self, declaration: ast.TypedefDeclaration) -> None:
        if declaration.derived is not None:
            self.check_declaration(declaration.derived)
            type_ = self.types.get(id(declaration.derived), UNKNOWN)
        else:
            assert declaration.node is not None
            type_ = self.resolve(declaration.node)
        if declaration.is_new and type_ is not UNKNOWN:
            if not isinstance(strip_new(type_), BitsType) and str(type_) != "bool":
                self.error(
                    f"'type' makes new types of bit, int and bool types, not of '{type_}'", declaration
                )
            type_ = NewType(declaration, type_)
        self.types[id(declaration)] = type_
        self.declare(declaration)
