"""Checking of declarations (specification, sections 7, 10, 13, 14)."""

from __future__ import annotations

from compiler import ast
from compiler.check.allowed_types import allowed_in, parameter_problem
from compiler.check.annotations import StructuredAnnotations
from compiler.check.base import Context
from compiler.check.scope import article, hint
from compiler.check.tables import Tables
from compiler.diagnostics import Diagnostics
from compiler.fold import wrap
from compiler.source import Token
from compiler.types import (
    BOOL,
    ERROR,
    INTEGER,
    STRING,
    UNKNOWN,
    VOID,
    BitsType,
    ControlType,
    EnumType,
    ExternType,
    FunctionType,
    NewType,
    PackageType,
    ParserType,
    SetType,
    TupleType,
    Type,
    TypeVariable,
    VarbitType,
    strip_new,
)

_KINDS = {"struct": "struct", "header": "header", "header_union": "header union"}


class Checker(Tables, StructuredAnnotations):
    """The type checker; `check_program` is the entry. It annotates the tree in place."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(diagnostics)
        self.error_declarations: dict[str, ast.EnumMember] = {}

    def check_program(self, program: ast.Program) -> None:
        """All declarations in order."""
        for declaration in program.declarations:
            self.check_declaration(declaration)
        for annotation in program.structured_annotations:
            self.check_structured_annotation(annotation)

    def check_declaration(self, declaration: ast.Declaration) -> None:
        """One declaration of any kind, declared in the current scope."""
        self._texts(declaration)
        at_top = self.context.kind == "top"
        if at_top and declaration.name == "main" and not isinstance(declaration, ast.InstanceDeclaration):
            self.error("'main' is an instance of a package", declaration)
        if isinstance(declaration, ast.ConstantDeclaration):
            self.check_constant(declaration)
        elif isinstance(declaration, ast.StructDeclaration):
            self._struct(declaration)
        elif isinstance(declaration, ast.EnumDeclaration):
            self._enum(declaration)
        elif isinstance(declaration, ast.MembersDeclaration):
            self._members(declaration)
        elif isinstance(declaration, ast.TypedefDeclaration):
            self._typedef(declaration)
        elif isinstance(declaration, ast.FunctionDeclaration):
            self._function(declaration)
        elif isinstance(declaration, ast.ExternDeclaration):
            self._extern(declaration)
        elif isinstance(declaration, ast.ActionDeclaration):
            self._action(declaration)
        elif isinstance(declaration, ast.ControlDeclaration):
            self._control(declaration)
        elif isinstance(declaration, ast.ParserDeclaration):
            self._parser(declaration)
        elif isinstance(declaration, ast.PackageDeclaration):
            self._package(declaration)
        elif isinstance(declaration, ast.InstanceDeclaration):
            self.check_instance(declaration)
        elif isinstance(declaration, ast.VariableDeclaration):
            self.check_variable(declaration)
        elif isinstance(declaration, ast.TableDeclaration):
            self.check_table(declaration)
        elif isinstance(declaration, ast.ValueSetDeclaration):
            self._value_set(declaration)

    def _texts(self, declaration: ast.Declaration) -> None:
        for annotation in declaration.annotations:
            kinds = [token.kind for token in annotation.tokens]
            if annotation.name in ("name", "deprecated") and set(kinds) - {"text", "++"}:
                self.error(f"'@{annotation.name}' takes a string", annotation)
            if annotation.name == "p4runtime_translation" and not _translated(annotation.tokens):
                self.error(
                    "'@p4runtime_translation' takes a string and then a width, bit<width> or string",
                    annotation,
                )

    # --------------------------------------------------------------------------------- types

    def _type_parameters(self, parameters: list[ast.TypeParameter]) -> tuple[TypeVariable, ...]:
        variables = []
        for parameter in parameters:
            self.declare(parameter)
            type_ = self.type_of_declaration(parameter)
            assert isinstance(type_, TypeVariable)
            variables.append(type_)
        return tuple(variables)

    def _struct(self, declaration: ast.StructDeclaration) -> None:
        with self.inner_scope():
            self._type_parameters(declaration.type_parameters)
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
        self.type_of_declaration(declaration)
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

    # --------------------------------------------------------------------------------- functions

    def _parameters(
        self, parameters: list[ast.Parameter], declare: bool = True, *, constructor: bool = False
    ) -> None:
        for parameter in parameters:
            parameter.type = self.resolve(parameter.node)
            problem = parameter_problem(parameter.type, parameter.direction, constructor=constructor)
            if problem is not None:
                self.error(problem, parameter)
            if parameter.default is not None and parameter.direction in ("out", "inout"):
                self.error(f"an '{parameter.direction}' parameter has no default", parameter.default)
            elif parameter.default is not None:
                self._default(parameter, parameter.default)
            if declare:
                self.declare(parameter)

    def _default(self, parameter: ast.Parameter, default: ast.Expression) -> None:
        good = self.check(default, parameter.type or UNKNOWN, f"the default of '{parameter.name}'")
        if good and isinstance(default, ast.Call) and default.kind != "constructor" and default.value is None:
            self.error(f"the default of '{parameter.name}' must be known at compile time", default)

    def _optional_only_without_body(self, parameters: list[ast.Parameter], what: str) -> None:
        """@optional is for externs, packages and types of blocks: a body could not tell what it was given."""
        for parameter in parameters:
            if parameter.annotation("optional") is not None:
                self.error(f"{what} with a body has no @optional parameters", parameter)

    def _differing_names(
        self, declaration: ast.ControlDeclaration | ast.ParserDeclaration | ast.FunctionDeclaration
    ) -> None:
        """Type parameters and parameters share one name space."""
        names = {parameter.name: parameter for parameter in declaration.type_parameters}
        given = list(declaration.parameters)
        if not isinstance(declaration, ast.FunctionDeclaration):
            given += declaration.constructor_parameters
        for parameter in given:
            if parameter.name in names:
                self.error(f"'{parameter.name}' is a type parameter already", parameter).note(
                    "declared here", names[parameter.name].span
                )

    def _signature(self, declaration: ast.FunctionDeclaration) -> None:
        with self.inner_scope():
            variables = self._type_parameters(declaration.type_parameters)
            with self.inner_scope():
                self._parameters(declaration.parameters)
            result = VOID if declaration.result is None else self.resolve(declaration.result)
        declaration.signature = FunctionType(
            declaration.name, variables, self.parameter_types(declaration.parameters), result, declaration
        )

    def _function(self, declaration: ast.FunctionDeclaration) -> None:
        self._signature(declaration)
        self._differing_names(declaration)
        self.declare(declaration)
        if declaration.body is None:
            return
        self._optional_only_without_body(declaration.parameters, "a function")
        with self.inner_scope(), self.inside(declaration):
            for parameter in declaration.type_parameters:
                self.declare(parameter)
            with self.inner_scope():
                for parameter_ in declaration.parameters:
                    self.declare(parameter_)
                result = declaration.signature.result
                with self.in_context(Context("function", declaration.name, result)):
                    self.check_block(declaration.body)
                if result is not VOID and not returns(declaration.body):
                    self.error(
                        f"function '{declaration.name}' may end without returning its '{result}'", declaration
                    )

    def _extern(self, declaration: ast.ExternDeclaration) -> None:
        self.type_of_declaration(declaration)
        self.declare(declaration)
        with self.inner_scope(), self.inside(declaration):
            self._type_parameters(declaration.type_parameters)
            for method in declaration.methods:
                if method.name == declaration.name and method.result is not None:
                    self.error(f"the constructor of '{declaration.name}' returns nothing", method)
                self._signature(method)

    def _action(self, declaration: ast.ActionDeclaration) -> None:
        with self.inner_scope():
            self._parameters(declaration.parameters)
            self._directions_first(declaration)
            with self.in_context(Context("action", declaration.name)):
                self.check_block(declaration.body)
        self.declare(declaration)

    def _directions_first(self, declaration: ast.ActionDeclaration) -> None:
        data_seen: ast.Parameter | None = None
        for parameter in declaration.parameters:
            if isinstance(parameter.type, ExternType) or parameter.type is INTEGER:
                self.error(f"an action's parameter cannot be of type '{parameter.type}'", parameter)
            if not parameter.direction:
                data_seen = parameter
            elif data_seen is not None:
                self.error("parameters with a direction come before those without", parameter).note(
                    "a parameter without direction", data_seen.span
                )

    # --------------------------------------------------------------------------------- blocks

    def _control(self, declaration: ast.ControlDeclaration) -> None:
        self.type_of_declaration(declaration)
        self.declare(declaration)
        with self.inner_scope():
            self._type_parameters(declaration.type_parameters)
            with self.inner_scope():
                self._parameters(declaration.parameters)
                if declaration.body is None:
                    return
                self._parameters(declaration.constructor_parameters, constructor=True)
                self._differing_names(declaration)
                self._optional_only_without_body(
                    [*declaration.parameters, *declaration.constructor_parameters], "a control"
                )
                here = Context("control", declaration.name)
                with self.inside(declaration), self.in_context(here), self.inner_scope():
                    for local in declaration.locals:
                        self.check_declaration(local)
                    self.check_block(declaration.body)

    def _parser(self, declaration: ast.ParserDeclaration) -> None:
        self.type_of_declaration(declaration)
        self.declare(declaration)
        with self.inner_scope():
            self._type_parameters(declaration.type_parameters)
            with self.inner_scope():
                self._parameters(declaration.parameters)
                if declaration.states is None:
                    return
                self._parameters(declaration.constructor_parameters, constructor=True)
                self._differing_names(declaration)
                self._optional_only_without_body(
                    [*declaration.parameters, *declaration.constructor_parameters], "a parser"
                )
                here = Context("parser", declaration.name)
                with self.inside(declaration), self.in_context(here), self.inner_scope():
                    for local in declaration.locals:
                        self.check_declaration(local)
                    self._states(declaration)

    def _states(self, declaration: ast.ParserDeclaration) -> None:
        assert declaration.states is not None
        with self.inner_scope():
            names = {"accept", "reject"}
            for state in declaration.states:
                if state.name in ("accept", "reject"):
                    self.error(f"the state '{state.name}' is built in and cannot be declared", state)
                self.declare(state)
                names.add(state.name)
            if "start" not in names:
                self.error(f"parser '{declaration.name}' has no state 'start'", declaration)
            for state in declaration.states:
                with self.inner_scope():
                    for statement in state.statements:
                        self.check_statement(statement)
                    self._transition(state, names)
        self._endless(declaration)

    def _transition(self, state: ast.StateDeclaration, names: set[str]) -> None:
        transition = state.transition
        if isinstance(transition, ast.Name):
            self._state_name(transition, names)
        elif isinstance(transition, ast.Select):
            types = []
            for expression in transition.expressions:
                type_ = self.infer(expression)
                if not self._selectable(type_):
                    self.error(f"a select key cannot be of type '{type_}'", expression)
                    type_ = UNKNOWN
                types.append(type_)
            if len(transition.expressions) == 1 and isinstance(transition.expressions[0], ast.ListExpression):
                elements = transition.expressions[0].elements
                types = [element.type or UNKNOWN for element in elements]
            for case in transition.cases:
                self._state_name(case.state, names)
                self.check_keyset(case.keyset, types, "a select case")

    def _selectable(self, type_: Type) -> bool:
        plain = strip_new(type_)
        if isinstance(plain, TupleType):
            return all(self._selectable(element) for element in plain.elements)
        return isinstance(plain, BitsType | EnumType | TypeVariable) or plain in (BOOL, ERROR, UNKNOWN)

    def _state_name(self, name: ast.Name, names: set[str]) -> None:
        if name.name not in names:
            from difflib import get_close_matches

            matches = get_close_matches(name.name, names, 1, 0.7)
            self.error(f"there is no state '{name.name}'{hint(matches[0] if matches else None)}", name)

    def _endless(self, declaration: ast.ParserDeclaration) -> None:
        assert declaration.states is not None
        states = {state.name: state for state in declaration.states}
        reached = {"start"}
        pending = ["start"]
        while pending:
            state = states.get(pending.pop())
            if state is None or state.transition is None:
                continue
            transition = state.transition
            targets = (
                [transition]
                if isinstance(transition, ast.Name)
                else [case.state for case in transition.cases]
            )
            for target in targets:
                if target.name not in reached:
                    reached.add(target.name)
                    pending.append(target.name)
        if (
            "start" in states
            and not reached & {"accept", "reject"}
            and not any(states[name].transition is None for name in reached if name in states)
        ):
            self.error(f"parser '{declaration.name}' never reaches 'accept' or 'reject'", declaration)

    def _value_set(self, declaration: ast.ValueSetDeclaration) -> None:
        element = self.resolve(declaration.node)
        if element in (INTEGER, STRING):
            self.error(f"a value set cannot hold values of type '{element}'", declaration.node)
            element = UNKNOWN
        self.constant(declaration.size, "a value set's size")
        declaration.type = SetType(element)
        self.declare(declaration)

    def _package(self, declaration: ast.PackageDeclaration) -> None:
        self.type_of_declaration(declaration)
        self.declare(declaration)
        with self.inner_scope():
            self._type_parameters(declaration.type_parameters)
            with self.inner_scope():
                self._parameters(declaration.parameters, constructor=True)

    # --------------------------------------------------------------------------------- instances

    def check_instance(self, declaration: ast.InstanceDeclaration) -> None:
        """An instantiation: its call is checked like any other."""
        callee = ast.TypeExpression(declaration.node.span, declaration.node)
        call = ast.Call(declaration.span, callee, [], declaration.arguments)
        declaration.call = call
        declaration.type = self.infer(call)
        self._instance_place(declaration)
        if declaration.block is not None:
            self.error(
                f"instance '{declaration.name}' gives bodies to abstract methods, which is not supported",
                declaration,
            )
        self.declare(declaration)

    def _instance_place(self, declaration: ast.InstanceDeclaration) -> None:
        type_ = declaration.type
        if self.context.kind in ("function", "action"):
            self.error(f"nothing can be instantiated in {article(self.context.kind)}", declaration)
        elif self.context.kind == "top" and isinstance(type_, ControlType | ParserType):
            self.error(f"'{type_}' is instantiated within a block or as an argument only", declaration)
        elif self.context.kind == "top" and declaration.name == "main":
            if not isinstance(type_, PackageType) and type_ is not UNKNOWN:
                self.error(f"'main' is an instance of a package, not of '{type_}'", declaration)
        elif isinstance(type_, ExternType) and declaration.block is None:
            self._abstract(type_, declaration)

    def _abstract(self, type_: ExternType, where: ast.Node) -> None:
        for method in type_.declaration.methods:
            if method.is_abstract:
                self.error(f"'{type_}' has an abstract method: an instance gives it a body", where).note(
                    "declared here", method.span
                )


def _translated(tokens: list[Token]) -> bool:
    """Whether the tokens of a @p4runtime_translation say what a type is for the control plane."""
    target = [token.kind for token in tokens[2:]]
    forms = (["integer"], ["string"], ["bit", "<", "integer", ">"])
    return len(tokens) > 2 and tokens[0].kind == "text" and tokens[1].kind == "," and target in forms


def returns(statement: ast.Node) -> bool:
    """Whether every way through a statement ends in a return (or exit)."""
    if isinstance(statement, ast.Return | ast.Exit):
        return True
    if isinstance(statement, ast.Block):
        return any(returns(inner) for inner in statement.statements)
    if isinstance(statement, ast.If):
        if statement.condition.value is not None:
            chosen = statement.then if statement.condition.value else statement.otherwise
            return chosen is not None and returns(chosen)
        return statement.otherwise is not None and returns(statement.then) and returns(statement.otherwise)
    if isinstance(statement, ast.Switch):
        bodies = [case.body for case in statement.cases if case.body is not None]
        default = any(case.label is None for case in statement.cases)
        return default and all(returns(body) for body in bodies)
    return False
