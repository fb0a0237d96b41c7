"""Reads expressions and primitive calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.switch.bmv2json.expressions import (
    OPERATORS,
    Argument,
    BoolConstant,
    CalculationRef,
    Constant,
    CounterArrayRef,
    Expression,
    FieldAccess,
    FieldRef,
    HeaderRef,
    Kind,
    Lookahead,
    MeterArrayRef,
    Operation,
    ParametersVector,
    RegisterArrayRef,
    RegisterRef,
    RuntimeData,
    StackField,
    StackRef,
    StringLiteral,
    UnionMemberAccess,
    UnionRef,
    UnionStackField,
    UnionStackRef,
)
from weft.switch.bmv2json.model_pipelines import ActionParameter
from weft.switch.bmv2json.node import Node, choices
from weft.switch.bmv2json.primitives import PACKET_PATH_PRIMITIVES, SIGNATURES, Parameter, PrimitiveCall
from weft.switch.bmv2json.scope import MAX_WIDTH_BITS, Scope, type_field, width
from weft.switch.bmv2json.static_types import header_type_of, is_variable, union_type_of

MAX_EXPRESSION_DEPTH = 200
_SAME_KIND = ("==", "!=")
_STACK_OPERATORS = ("last_stack_index", "size_stack")
_LEAF_TYPES = (
    "field",
    "hexstr",
    "bool",
    "local",
    "runtime_data",
    "header",
    "header_stack",
    "header_union",
    "header_union_stack",
    "stack_field",
    "union_stack_field",
    "lookahead",
    "register",
    "expression",
)
_ALL_OPERATORS = (*OPERATORS, *_SAME_KIND, *_STACK_OPERATORS, "?", "access_field", "access_union_header")


class ExpressionReader:
    """Reads expressions; `parameters` belong to the enclosing action; a parser state may look ahead."""

    def __init__(self, scope: Scope, parameters: Sequence[ActionParameter] = (), in_parser: bool = False) -> None:
        self._scope = scope
        self._parameters = parameters
        self._in_parser = in_parser

    def read_kind(self, node: Node, kind: Kind) -> Expression:
        """Read an expression that must be of `kind`."""
        expression = self.read(node)
        if expression.kind is not kind:
            node.fail(f"expected a {kind.value} expression, got a {expression.kind.value} expression")
        return expression

    def read(self, node: Node, depth: int = 0) -> Expression:
        """Read a type-value object."""
        if depth > MAX_EXPRESSION_DEPTH:
            node.fail(f"expressions are nested more than {MAX_EXPRESSION_DEPTH} deep")
        type_node = node["type"]
        type_name = type_node.string()
        value = node["value"]
        if type_name == "expression":
            # the outermost operation is often wrapped twice
            if isinstance(value.value, dict) and "type" in value.value and "op" not in value.value:
                return self.read(value, depth + 1)
            return self._operation(value, depth + 1)
        if type_name == "register":
            return self._register(value, depth)
        leaf = self._leaf(type_name, value)
        if leaf is None:
            type_node.fail(f"unknown expression type {type_name!r}", valid=choices(_LEAF_TYPES))
        return leaf

    def _leaf(self, type_name: str, value: Node) -> Expression | None:
        scope = self._scope
        match type_name:
            case "field":
                return scope.field_ref(value)
            case "hexstr":
                return Constant(value.hexstr())
            case "bool":
                return BoolConstant(value.boolean())
            case "local" | "runtime_data":
                return self._runtime_data(value)
            case "header":
                # p4c writes "header" for a union within a stack, too.
                name = value.string()
                if name in scope.header_unions and name not in scope.headers:
                    return UnionRef(name)
                return HeaderRef(value.name_in(scope.headers, "header"))
            case "header_stack":
                return StackRef(value.name_in(scope.header_stacks, "header stack"))
            case "header_union":
                return UnionRef(value.name_in(scope.header_unions, "header union"))
            case "header_union_stack":
                return UnionStackRef(value.name_in(scope.header_union_stacks, "header union stack"))
            case "stack_field":
                return self.stack_field(value)
            case "union_stack_field":
                return self.union_stack_field(value)
            case "lookahead" if self._in_parser:
                return lookahead(value)
            case "lookahead":
                value.fail("lookahead is possible in parsers only")
        return None

    def _runtime_data(self, value: Node) -> RuntimeData:
        index = value.integer()
        if index >= len(self._parameters):
            value.fail(f"parameter {index} does not exist: the action has {len(self._parameters)} parameters")
        return RuntimeData(index, self._parameters[index].width_bits)

    def stack_field(self, value: Node) -> StackField:
        """A field of the last header of a stack, from [stack, field]."""
        stack_node, field_node = value.items(2)
        stack = self._scope.header_stacks[stack_node.name_in(self._scope.header_stacks, "header stack")]
        return StackField(stack.name, field_node.string(), type_field(stack.type, field_node).width_bits)

    def union_stack_field(self, value: Node) -> UnionStackField:
        """A field of the last union of a union stack, from [stack, member, field]."""
        stacks = self._scope.header_union_stacks
        stack_node, member_node, field_node = value.items(3)
        stack = stacks[stack_node.name_in(stacks, "header union stack")]
        member = member_node.name_in(dict(stack.type.members), "union member")
        header_type = dict(stack.type.members)[member]
        return UnionStackField(stack.name, member, field_node.string(), type_field(header_type, field_node).width_bits)

    def _register(self, value: Node, depth: int) -> RegisterRef:
        array_node, index_node = value.items(2)
        registers = self._scope.register_arrays
        array = registers[array_node.name_in(registers, "register array")]
        index = self.read(index_node, depth + 1)
        if index.kind is not Kind.DATA:
            index_node.fail("a register index must be an integer expression")
        return RegisterRef(array.name, index, array.width_bits)

    def _operation(self, node: Node, depth: int) -> Expression:
        operator = node["op"].one_of(_ALL_OPERATORS)
        right_node = node["right"]
        if operator in ("access_field", "access_union_header"):
            return self._member_access(operator, node, depth)
        left_node = node.optional("left")
        nodes = [right_node] if left_node is None else [left_node, right_node]
        # a unary operation on a stack or header may stand on either side
        if left_node is not None and right_node.value is None:
            nodes = [left_node]
        if operator == "?":
            nodes.insert(0, node["cond"])
        operands = tuple(self.read(each, depth) for each in nodes)
        return Operation(operator, operands, self._result_kind(node, operator, operands))

    def _result_kind(self, node: Node, operator: str, operands: tuple[Expression, ...]) -> Kind:
        kinds = tuple(operand.kind for operand in operands)
        if operator in _SAME_KIND:
            if len(kinds) == 2 and kinds[0] is kinds[1]:
                return Kind.BOOL
            node.fail(f"{operator!r} compares two operands of one kind, got {_kinds(kinds)}")
        if operator == "?":
            if len(kinds) == 3 and kinds[0] is Kind.BOOL and kinds[1] is kinds[2]:
                return kinds[1]
            node.fail(f"'?' takes a boolean and two operands of one kind, got {_kinds(kinds)}")
        if operator in _STACK_OPERATORS:
            if kinds in ((Kind.STACK,), (Kind.UNION_STACK,)):
                return Kind.DATA
            node.fail(f"{operator!r} takes a header stack, got {_kinds(kinds)}")
        if operator in ("+", "-") and kinds == (Kind.DATA,):
            return Kind.DATA
        expected, result = OPERATORS[operator]
        if kinds != expected:
            node.fail(f"{operator!r} takes {_kinds(expected)}, got {_kinds(kinds)}")
        return result

    def _member_access(self, operator: str, node: Node, depth: int) -> Expression:
        left_node = node["left"]
        left = self.read(left_node, depth)
        expected = Kind.HEADER if operator == "access_field" else Kind.UNION
        if left.kind is not expected:
            left_node.fail(f"expected a {expected.value} expression, got a {left.kind.value} expression")
        if expected is Kind.HEADER:
            fields = header_type_of(self._scope, left).fields
            index = node["right"].integer(0, len(fields) - 1)
            return FieldAccess(left, index, fields[index].width_bits)
        index = node["right"].integer(0, len(union_type_of(self._scope, left).members) - 1)
        return UnionMemberAccess(left, index)


def lookahead(value: Node) -> Lookahead:
    """A Lookahead from [offset, width] in bits."""
    offset_node, width_node = value.items(2)
    return Lookahead(offset_node.integer(0, MAX_WIDTH_BITS), width(width_node))


def read_primitive(scope: Scope, node: Node, reader: ExpressionReader, count: int | None) -> PrimitiveCall:
    """Read one of `count` consecutive calls (None: a single call)."""
    name = node["op"].one_of(SIGNATURES)
    arguments = node.array("parameters")
    signature = SIGNATURES[name]
    if len(arguments) != len(signature) and not (name == "mark_to_drop" and not arguments):
        node.fail(f"primitive {name!r} takes {len(signature)} parameters, got {len(arguments)}")
    read = tuple(
        _argument(scope, argument, parameter, reader) for argument, parameter in zip(arguments, signature, strict=False)
    )
    if Parameter.JUMP in signature:
        _check_jump(arguments[-1], read[-1], count)
    if name in PACKET_PATH_PRIMITIVES:
        _check_list_id(scope, name, arguments[-1], read[-1])
    if name == "assign_VL":
        _check_variable(scope, arguments, read)
    return PrimitiveCall(name, read, source_of(node))


def _check_jump(node: Node, target: Argument, count: int | None) -> None:
    if count is None:
        node.fail("a parser state has no place to jump to")
    if not isinstance(target, Constant) or not 0 <= target.value <= count:
        node.fail(f"a jump must go to a constant index from 0 to {count}")


def _check_list_id(scope: Scope, name: str, node: Node, argument: Argument) -> None:
    if not isinstance(argument, Constant):
        node.fail(f"the list id of {name!r} must be a constant")
    lists = scope.learn_lists if name == "generate_digest" else scope.field_lists
    if argument.value not in lists and (argument.value != 0 or name == "generate_digest"):
        node.fail(f"unknown list id {argument.value}", valid=choices(lists))


def _check_variable(scope: Scope, nodes: list[Node], arguments: tuple[Argument, ...]) -> None:
    for node, argument in zip(nodes, arguments, strict=True):
        if not isinstance(argument, FieldRef) or not is_variable(scope, argument):
            node.fail("'assign_VL' takes two variable-length fields")


def _argument(scope: Scope, node: Node, parameter: Parameter, reader: ExpressionReader) -> Argument:
    named = _NAMED_ARGUMENTS.get(parameter)
    if named is not None:
        type_name, attribute, make = named
        node["type"].one_of((type_name,))
        value = node["value"]
        if attribute is None:
            return make(value.string())
        return make(value.name_in(getattr(scope, attribute), type_name))
    if parameter is Parameter.VECTOR:
        node["type"].one_of(("parameters_vector",))
        if node["value"].value == {}:  # as p4c writes an empty one
            return ParametersVector(())
        return ParametersVector(tuple(reader.read_kind(element, Kind.DATA) for element in node["value"].items()))
    expression = reader.read(node)
    if parameter is Parameter.BOOL and expression.kind is Kind.DATA:  # as p4c writes a condition: b2d(…)
        return Operation("d2b", (expression,), Kind.BOOL)
    if expression.kind not in _ACCEPTED_KINDS[parameter]:
        node.fail(f"expected {parameter.value}, got a {expression.kind.value} expression")
    if parameter is Parameter.LVALUE:
        _check_lvalue(scope, node, expression)
    return expression


def _check_lvalue(scope: Scope, node: Node, expression: Expression) -> None:
    if isinstance(expression, FieldRef) and expression.is_validity:
        node.fail("validity is changed by 'add_header' and 'remove_header', not by assignment")
    if not isinstance(expression, FieldRef | FieldAccess | StackField | RegisterRef):
        node.fail(f"expected {Parameter.LVALUE.value}, got {type(expression).__name__}")


def source_of(node: Node) -> str | None:
    """Return `file:line: fragment` from source_info. It is only for display, so invalid parts are ignored."""
    info = node.value.get("source_info")
    if not isinstance(info, dict):
        return None
    return f"{info.get('filename', '?')}:{info.get('line', '?')}: {info.get('source_fragment', '')}"


def _kinds(kinds: tuple[Kind, ...]) -> str:
    return " and ".join(kind.value for kind in kinds)


_NAMED_ARGUMENTS: dict[Parameter, tuple[str, str | None, Callable[[str], Argument]]] = {
    Parameter.CALCULATION: ("calculation", "calculations", CalculationRef),
    Parameter.METER: ("meter_array", "meter_arrays", MeterArrayRef),
    Parameter.COUNTER: ("counter_array", "counter_arrays", CounterArrayRef),
    Parameter.REGISTER: ("register_array", "register_arrays", RegisterArrayRef),
    Parameter.STRING: ("string", None, StringLiteral),
}
_ACCEPTED_KINDS: dict[Parameter, tuple[Kind, ...]] = {
    Parameter.DATA: (Kind.DATA,),
    Parameter.JUMP: (Kind.DATA,),
    Parameter.LVALUE: (Kind.DATA,),
    Parameter.BOOL: (Kind.BOOL,),
    Parameter.HEADER: (Kind.HEADER,),
    Parameter.STACK: (Kind.STACK,),
    Parameter.UNION: (Kind.UNION,),
    Parameter.UNION_STACK: (Kind.UNION_STACK,),
    Parameter.ANY_STACK: (Kind.STACK, Kind.UNION_STACK),
}
