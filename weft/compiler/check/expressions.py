"""Typing of expressions (specification, section 8)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.operators import Operators, is_number
from weft.compiler.check.scope import TypeDeclaration, choices, hint
from weft.compiler.fold import wrap
from weft.compiler.types import (
    BOOL,
    DEFAULT,
    ERROR,
    INTEGER,
    INVALID_HEADER,
    MATCH_KIND,
    STATE,
    STRING,
    UNKNOWN,
    ActionRunType,
    ActionType,
    AnonymousStructType,
    ApplyResultType,
    BitsType,
    ControlType,
    EnumType,
    ExternType,
    ListType,
    NewType,
    ParserType,
    SetType,
    StackType,
    StructType,
    TableType,
    TupleType,
    Type,
    TypeVariable,
    bits,
    is_header,
    is_union,
    strip_new,
)
from weft.compiler.warnings.kinds import Kind

_HEADER_METHODS = ("isValid", "setValid", "setInvalid")
_STACK_MEMBERS = ("next", "last", "lastIndex", "size", "push_front", "pop_front")


class Expressions(Operators):
    """`infer` for every kind of expression; calls are completed by check/calls.py."""

    def infer(self, expression: ast.Expression, expected: Type | None = None) -> Type:
        """Type an expression and fold it; `expected` guides literals that have no type of their own."""
        if expression.type is not None and not isinstance(
            expression, ast.ListExpression | ast.StructExpression
        ):
            return expression.type
        type_ = self._infer(expression, expected)
        expression.type = type_
        return type_

    def _infer(self, expression: ast.Expression, expected: Type | None) -> Type:
        if isinstance(expression, ast.Name):
            return self._name(expression)
        if isinstance(expression, ast.Member):
            return self.infer_member(expression, expected)
        if isinstance(expression, ast.IntegerLiteral):
            return self._integer(expression)
        if isinstance(expression, ast.Binary):
            return self.infer_binary(expression, expected)
        if isinstance(expression, ast.Call):
            return self.infer_call(expression, expected)
        if isinstance(expression, ast.Unary):
            return self.infer_unary(expression, expected)
        if isinstance(expression, ast.Cast):
            return self._cast(expression)
        if isinstance(expression, ast.Slice):
            return self.infer_slice(expression)
        if isinstance(expression, ast.Index):
            return self._index(expression)
        if isinstance(expression, ast.BooleanLiteral):
            expression.value = expression.truth
            return BOOL
        if isinstance(expression, ast.StringLiteral):
            expression.value = expression.text
            return STRING
        if isinstance(expression, ast.Ternary):
            return self.infer_ternary(expression, expected)
        if isinstance(expression, ast.ListExpression):
            return self._list(expression, expected)
        if isinstance(expression, ast.StructExpression):
            return self._struct_literal(expression, expected)
        if isinstance(expression, ast.InvalidHeader):
            return INVALID_HEADER
        if isinstance(expression, ast.DefaultExpression):
            return DEFAULT
        if isinstance(expression, ast.TypeExpression):
            return self.fail(expression, "a type cannot stand here as a value")
        return self.fail(expression, "this expression cannot stand here")

    def infer_call(self, expression: ast.Call, expected: Type | None) -> Type:
        """A call of any kind."""
        raise NotImplementedError

    def overload(self, name: str, declarations: list[ast.FunctionDeclaration]) -> Type:
        """The type of a name that stands for functions."""
        raise NotImplementedError

    def extern_method(self, expression: ast.Member, base: Type) -> Type | None:
        """The type of a member of an extern, control, parser or table, or None when it is none."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------ names, literals

    def _integer(self, expression: ast.IntegerLiteral) -> Type:
        if expression.width is None:
            expression.value = expression.number
            return INTEGER
        if expression.width < (2 if expression.signed else 1):
            return self.fail(expression, f"a literal of {expression.width} bits is not possible")
        type_ = bits(expression.width, expression.signed)
        value = wrap(expression.number, type_)
        if value != expression.number and not (
            expression.signed and expression.number < 1 << expression.width
        ):
            self.warning(
                f"the value {expression.number} does not fit '{type_}' and is truncated to {value}",
                expression,
                Kind.MISMATCH,
            )
        expression.value = value
        return type_

    def _name(self, expression: ast.Name) -> Type:
        scope = self.root if expression.absolute else self.scope
        declaration = scope.lookup(expression.name)
        if declaration is None:
            if expression.name in self.match_kinds:
                expression.value = expression.name
                return MATCH_KIND
            return self.fail(
                expression, f"'{expression.name}' is not declared{hint(scope.nearest(expression.name))}"
            )
        expression.declaration = declaration
        if isinstance(declaration, list):
            if len(declaration) == 1 and self.refers_to_itself(declaration[0], expression):
                return UNKNOWN
            return self.overload(expression.name, declaration)
        if isinstance(declaration, ast.ConstantDeclaration):
            expression.value = declaration.value
            return declaration.type or UNKNOWN
        if isinstance(
            declaration,
            ast.Parameter | ast.VariableDeclaration | ast.InstanceDeclaration | ast.ValueSetDeclaration,
        ):
            return declaration.type or UNKNOWN
        if isinstance(declaration, ast.ActionDeclaration):
            return ActionType(declaration)
        if isinstance(declaration, ast.TableDeclaration):
            return TableType(declaration)
        if isinstance(declaration, ast.StateDeclaration):
            return STATE
        if isinstance(declaration, TypeDeclaration):
            return self.fail(expression, f"'{expression.name}' is a type, not a value")
        return UNKNOWN

    # ------------------------------------------------------------------------------ members

    def infer_member(self, expression: ast.Member, expected: Type | None) -> Type:
        """base.name."""
        if isinstance(expression.base, ast.TypeExpression):
            return self._type_member(expression, self.resolve_base(expression.base))
        base = self.infer(expression.base)
        if base is UNKNOWN:
            return UNKNOWN
        name = expression.name
        if isinstance(base, StructType):
            field = base.fields.get(name)
            if field is not None:
                if isinstance(expression.base.value, dict):
                    expression.value = expression.base.value.get(name)
                return field
            if name == "minSizeInBits" or name in ("minSizeInBytes", "maxSizeInBits", "maxSizeInBytes"):
                return STATE
            if base.kind != "struct" and name in _HEADER_METHODS:
                return STATE
            nearest = hint(_nearest(name, base.fields))
            valid = "" if nearest else f" {choices(base.fields)}"
            diagnostic = self.error(f"'{base}' has no field '{name}'{nearest}{valid}", expression.name_token)
            diagnostic.note(f"'{base}' declared here", base.declaration.span)
            return UNKNOWN
        if isinstance(base, AnonymousStructType):
            for field_name, type_ in base.fields:
                if field_name == name:
                    return type_
        if isinstance(base, StackType):
            return self._stack_member(expression, base)
        if isinstance(base, ApplyResultType):
            if name in ("hit", "miss"):
                return BOOL
            if name == "action_run":
                return ActionRunType(base.declaration)
            return self.fail(
                expression, f"table.apply() has no member '{name}' (valid: 'hit', 'miss', 'action_run')"
            )
        method = self.extern_method(expression, base)
        if method is not None:
            return method
        if name in ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes"):
            return STATE
        return self.fail(expression, f"'{base}' has no member '{name}'{hint(_nearest(name, _methods(base)))}")

    def resolve_base(self, expression: ast.TypeExpression) -> Type:
        """The type left of a dot; generic types may lack their arguments there."""
        node = expression.node
        if isinstance(node, ast.NamedTypeNode):
            declaration = (self.root if node.absolute else self.scope).lookup(node.name)
            if isinstance(declaration, ast.ControlDeclaration | ast.ParserDeclaration):
                if self.refers_to_itself(declaration, expression):
                    return UNKNOWN
                return self.type_of_declaration(declaration)
        return self.resolve(node)

    def _type_member(self, expression: ast.Member, base: Type) -> Type:
        name = expression.name
        if base is UNKNOWN:
            return UNKNOWN
        if base is ERROR:
            if name not in self.errors:
                return self.fail(expression, f"there is no error '{name}'{hint(_nearest(name, self.errors))}")
            expression.value = self.errors[name]
            return ERROR
        if base is MATCH_KIND:
            return MATCH_KIND
        if isinstance(base, EnumType):
            if name not in base.values:
                valid = choices(base.values)
                diagnostic = self.error(f"'{base}' has no member '{name}' {valid}", expression.name_token)
                diagnostic.note(f"'{base}' declared here", base.declaration.span)
                return UNKNOWN
            expression.value = base.values[name]
            return base
        expression.base.type = base
        method = self.extern_method(expression, base)
        if method is not None:
            return method
        if name in ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes"):
            return STATE
        return self.fail(expression, f"'{base}' has no member '{name}'{hint(_nearest(name, _methods(base)))}")

    def _stack_member(self, expression: ast.Member, base: StackType) -> Type:
        name = expression.name
        if name != "size" and not (
            is_header(base.element) or is_union(base.element) or isinstance(base.element, TypeVariable)
        ):
            return self.fail(expression, f"an array has no member '{name}' (valid: 'size')")
        if name in ("next", "last", "lastIndex"):
            if self.context.kind not in ("parser", "function"):
                return self.fail(expression, f"'{name}' can be used in parsers only")
            return bits(32) if name == "lastIndex" else base.element
        if name == "size":
            expression.value = base.size
            return bits(32)
        if name in _STACK_MEMBERS or name in (
            "minSizeInBits",
            "minSizeInBytes",
            "maxSizeInBits",
            "maxSizeInBytes",
        ):
            return STATE
        return self.fail(expression, f"a header stack has no member '{name}' {choices(_STACK_MEMBERS)}")

    def _index(self, expression: ast.Index) -> Type:
        base = self.infer(expression.base)
        index = self.infer(expression.index)
        if base is UNKNOWN or index is UNKNOWN:
            return UNKNOWN
        if isinstance(base, TupleType):
            position = self.constant(expression.index, "the index of a tuple")
            if position is None:
                return UNKNOWN
            if not 0 <= position < len(base.elements):
                return self.fail(
                    expression, f"index {position} is out of the range of '{base}'", expression.index
                )
            if isinstance(expression.base.value, list):
                expression.value = expression.base.value[position]
            return base.elements[position]
        if not is_number(strip_enum(index)):
            return self.fail(expression, f"an index is a number, not '{index}'", expression.index)
        if isinstance(base, ListType):
            return base.element
        if not isinstance(base, StackType):
            return self.fail(
                expression, f"only header stacks and tuples have an index, not '{base}'", expression.base
            )
        value = expression.index.value
        if value is not None and not 0 <= value < base.size:
            return self.fail(
                expression, f"index {value} is out of the range of '{base}' (valid: 0 to {base.size - 1})",
                expression.index,
            )  # fmt: skip
        return base.element

    # ------------------------------------------------------------------------------ casts, lists

    def _cast(self, expression: ast.Cast) -> Type:
        target = self.resolve(expression.target)
        if target is UNKNOWN:
            self.infer(expression.operand)
            return UNKNOWN
        source = self.infer(expression.operand, target)
        if source is UNKNOWN:
            return UNKNOWN
        value = expression.operand.value
        literals = (ast.ListExpression, ast.StructExpression, ast.InvalidHeader, ast.DefaultExpression)
        if isinstance(expression.operand, literals):
            self.coerce(expression.operand, target)
            expression.value = expression.operand.value
            return target
        if not _castable(source, target):
            diagnostic = self.error(f"cannot cast '{source}' to '{target}'", expression)
            if isinstance(source, BitsType) and isinstance(target, BitsType):
                diagnostic.note(
                    f"width and sign change one after the other: ({target})({bits(target.width, source.signed)})…",
                    None,
                )
            return UNKNOWN
        if value is not None and isinstance(value, int):
            stripped = strip_enum(strip_new(target))
            if stripped is BOOL:
                expression.value = bool(value)
            else:
                expression.value = wrap(int(value), stripped)
        elif value is not None and source == target:
            expression.value = value
        return target

    def _list(self, expression: ast.ListExpression, expected: Type | None) -> Type:
        from weft.compiler.check.coerce import element_types

        count = len(expression.elements)
        wanted = element_types(expected, count, expression.rest) if expected is not None else None
        elements = []
        for index, element in enumerate(expression.elements):
            elements.append(self.infer(element, wanted[index] if wanted else None))
        values = [element.value for element in expression.elements]
        if all(value is not None for value in values):
            expression.value = values
        if UNKNOWN in elements:
            return UNKNOWN
        return TupleType(tuple(elements))

    def _struct_literal(self, expression: ast.StructExpression, expected: Type | None) -> Type:
        target = self.resolve(expression.target) if expression.target is not None else expected
        fields = target.fields if isinstance(target, StructType) else {}
        types: list[tuple[str, Type]] = []
        seen: set[str] = set()
        for element in expression.elements:
            if element.name in seen:
                self.error(f"field '{element.name}' is given twice", element)
            seen.add(element.name)
            types.append((element.name, self.infer(element.expression, fields.get(element.name))))
        values = {element.name: element.expression.value for element in expression.elements}
        if all(value is not None for value in values.values()):
            expression.value = values
        anonymous = AnonymousStructType(tuple(types))
        if expression.target is None:
            return anonymous
        expression.type = anonymous
        if target is not None and target is not UNKNOWN:
            self.coerce(expression, target)
        return target or UNKNOWN

    # ------------------------------------------------------------------------------ constants

    def constant(self, expression: ast.Expression, what: str) -> int | None:
        """The value of an expression that must be a known integer; None after an error."""
        type_ = self.infer(expression)
        if type_ is UNKNOWN:
            return None
        if not is_number(strip_enum(type_)):
            self.error(f"{what} is a number, not '{type_}'", expression)
            return None
        if not isinstance(expression.value, int):
            self.error(f"{what} must be known at compile time", expression)
            return None
        return expression.value


def strip_enum(type_: Type) -> Type:
    """A serializable enum's underlying type; other types themselves."""
    if isinstance(type_, EnumType) and type_.underlying is not None:
        return type_.underlying
    return type_


def _methods(base: Type) -> list[str]:
    """What may be called on an extern, control, parser or table."""
    if isinstance(base, ExternType):
        return [method.name for method in base.declaration.methods if method.result]
    return ["apply"] if isinstance(base, ControlType | ParserType | TableType) else []


def _nearest(name: str, names: object) -> str | None:
    from difflib import get_close_matches

    assert hasattr(names, "__iter__")
    matches = get_close_matches(name, list(names), 1, 0.7)
    return matches[0] if matches else None


def _castable(source: Type, target: Type) -> bool:
    """Explicit casts (specification, section 8.11.1)."""
    if source == target or isinstance(source, TypeVariable) or isinstance(target, TypeVariable):
        return True
    plain_source, plain_target = strip_enum(strip_new(source)), strip_enum(strip_new(target))
    if isinstance(source, NewType) or isinstance(target, NewType):
        if plain_source == plain_target:
            return True
        if plain_source is INTEGER and isinstance(plain_target, BitsType):
            return True
        if isinstance(plain_source, BitsType) and isinstance(plain_target, BitsType):
            return False
    if isinstance(plain_source, BitsType) and isinstance(plain_target, BitsType):
        return plain_source.signed == plain_target.signed or plain_source.width == plain_target.width
    if plain_source is INTEGER:
        return isinstance(plain_target, BitsType) or plain_target in (INTEGER, BOOL)
    if plain_source is BOOL:
        return isinstance(plain_target, BitsType) and plain_target.width == 1 and not plain_target.signed
    if plain_target is BOOL:
        return isinstance(plain_source, BitsType) and plain_source.width == 1 and not plain_source.signed
    if plain_target is INTEGER:
        return isinstance(plain_source, BitsType)
    if isinstance(source, TupleType | AnonymousStructType):
        return isinstance(target, TupleType | StructType | ListType | SetType)
    return is_header(source) and source == target
