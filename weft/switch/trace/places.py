"""The places of a program that report events, with the same numbers wherever the program is loaded.

The oracle reports a place directly, instrumented code its number (engine/switch/trace.hpp). Every place has the
widths of its values; values are modulo their width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from weft.switch import bmv2json
from weft.switch.bmv2json.primitives import SIGNATURES, Parameter

OPERAND_BITS = 64
"""Width of indices, counts, sessions and similar values, and of log_msg's values."""


@dataclass(frozen=True, slots=True)
class StateEntered:
    """A parser state begins."""

    state: str


@dataclass(frozen=True, slots=True)
class Extracted:
    """A header was extracted; the value is the index in a stack (else 0), the data its bytes."""

    operation: bmv2json.Extract


@dataclass(frozen=True, slots=True)
class FieldSet:
    """A parser state assigned a field; the value is the field's."""

    operation: bmv2json.SetField


@dataclass(frozen=True, slots=True)
class Selected:
    """A select of `cases` cases read its key, with fields padded to whole bytes."""

    state: str
    key_bits: int
    cases: int


@dataclass(frozen=True, slots=True)
class ParserEnded:
    """Parsing ended: bytes consumed, error code."""


@dataclass(frozen=True, slots=True)
class ChecksumVerified:
    """A checksum was compared; 1 if it holds."""

    name: str


@dataclass(frozen=True, slots=True)
class ChecksumUpdated:
    """A checksum was written; the value is the field's."""

    name: str
    target: bmv2json.FieldRef


@dataclass(frozen=True, slots=True)
class Branched:
    """A condition was evaluated; 1 if it holds."""

    node: str


@dataclass(frozen=True, slots=True)
class TableApplied:
    """A table was looked up; the values are the key's fields."""

    table: str
    key_bits: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ActionChosen:
    """The next node depends on the action that a table chose; only counted, as traces have the action."""

    table: str
    actions: int


@dataclass(frozen=True, slots=True)
class ActionRun:
    """An action begins; the values are its parameters."""

    action_id: int
    parameter_bits: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PrimitiveRun:
    """A primitive ran; the values are its `operands` before it and its `result` after it."""

    call: bmv2json.PrimitiveCall
    operands: tuple[tuple[bmv2json.Expression, int], ...]
    result: bmv2json.Expression | None
    result_bits: int


@dataclass(frozen=True, slots=True)
class HeaderEmitted:
    """The deparser wrote a header."""

    header: str


Place: TypeAlias = (
    StateEntered
    | Extracted
    | FieldSet
    | Selected
    | ParserEnded
    | ChecksumVerified
    | ChecksumUpdated
    | Branched
    | TableApplied
    | ActionChosen
    | ActionRun
    | PrimitiveRun
    | HeaderEmitted
)


def value_bits(place: Place) -> tuple[int, ...]:
    """Widths of the values that a place reports."""
    match place:
        case StateEntered() | HeaderEmitted() | ActionChosen():
            return ()
        case Extracted():
            return (32,)
        case FieldSet(operation):
            return (operation.target.width_bits,)
        case Selected(_, key_bits, _):
            return (key_bits,)
        case ParserEnded():
            return (32, 32)
        case ChecksumVerified() | Branched():
            return (1,)
        case ChecksumUpdated(_, target):
            return (target.width_bits,)
        case TableApplied(_, key_bits):
            return key_bits
        case ActionRun(_, parameter_bits):
            return parameter_bits
        case PrimitiveRun(_, operands, result, result_bits):
            widths = tuple(width for _, width in operands)
            return widths if result is None else (*widths, result_bits)


def outcomes(place: Place) -> int:
    """Return the number of outcomes of a place. False and miss are 0, true and hit are 1.

    A select has its cases in order, then no match; a table has its actions, then no action.
    """
    match place:
        case Selected(cases=count) | ActionChosen(actions=count):
            return count + 1
        case Branched() | ChecksumVerified() | TableApplied():
            return 2
        case PrimitiveRun(call):
            return 2 if call.name == "_jump_if_zero" else 1
    return 1


# ---- the place of each object


def table_place(table: bmv2json.Table) -> TableApplied:
    """Return the place of a table's lookup."""
    return TableApplied(table.name, tuple(key.field.width_bits for key in table.key))


def action_place(action: bmv2json.Action) -> ActionRun:
    """Return the place of an action's start."""
    return ActionRun(action.id, tuple(parameter.width_bits for parameter in action.parameters))


def select_place(state: bmv2json.ParseState) -> Selected:
    """Return the place of a state's select."""
    return Selected(state.name, state.key_width_bits, len(state.transitions))


def choice_place(table: bmv2json.Table) -> ActionChosen | None:
    """Return the place of a branch on a table's action; None if all actions have the same next node."""
    behind = {table.next_nodes.get(action.id, table.base_default_next) for action in table.actions}
    if table.branches_on_hit or len(behind) < 2:
        return None
    return ActionChosen(table.name, len(table.actions))


def updated_place(checksum: bmv2json.Checksum) -> ChecksumUpdated:
    """Return the place of a checksum's update."""
    return ChecksumUpdated(checksum.name, checksum.target)


def primitive_place(program: bmv2json.Program, call: bmv2json.PrimitiveCall) -> PrimitiveRun:
    """Return the place of a primitive, with the values to show: its result, and the cells that it used."""
    roles = SIGNATURES[call.name]
    result = None
    if call.name != "assign_VL":  # a variable-length field is no number
        result = next(
            (argument for role, argument in zip(roles, call.arguments, strict=False) if role is Parameter.LVALUE),
            None,
        )
    operands: list[tuple[bmv2json.Expression, int]] = []
    shows_operands = result is None or call.name in ("register_read", "execute_meter")
    for role, argument in zip(roles, call.arguments, strict=False):
        if isinstance(argument, bmv2json.ParametersVector):
            operands.extend((element, _operand_bits(element)) for element in argument.elements)
        elif shows_operands and role in (Parameter.DATA, Parameter.BOOL):
            operands.append((argument, _operand_bits(argument)))  # type: ignore[arg-type]
    if call.name == "register_write":
        array = call.arguments[0]
        assert isinstance(array, bmv2json.RegisterArrayRef)
        width_bits = program.register_arrays[array.name].width_bits
        # In addition to index and value: the cell's old value.
        index, value = (expression for expression, _ in operands)
        cell = bmv2json.RegisterRef(array.name, index, width_bits)
        operands = [operands[0], (value, width_bits), (cell, width_bits)]
    bits = getattr(result, "width_bits", 0) if result is not None else 0
    return PrimitiveRun(call, tuple(operands), result, bits)  # type: ignore[arg-type]


def _operand_bits(expression: bmv2json.Expression) -> int:
    return 1 if expression.kind is bmv2json.Kind.BOOL else OPERAND_BITS


# ---- numbers


class Places:
    """All places of a program by number, from 0."""

    def __init__(self, program: bmv2json.Program) -> None:
        self._numbers: dict[Place, int] = {}
        for place in _places(program):
            self._numbers.setdefault(place, len(self._numbers))
        self._by_number = tuple(self._numbers)
        self._first_counts = (0, *accumulate(map(outcomes, self._by_number)))

    def number(self, place: Place) -> int:
        """Return the number of a place. Raises KeyError if the program lacks it."""
        return self._numbers[place]

    def counts(self, place: Place) -> range:
        """Return the count indices of a place's outcomes."""
        number = self._numbers[place]
        return range(self._first_counts[number], self._first_counts[number + 1])

    @property
    def count(self) -> int:
        """Number of outcomes of all places."""
        return self._first_counts[-1]

    def __iter__(self) -> Iterator[Place]:
        return iter(self._by_number)

    def __getitem__(self, number: int) -> Place:
        """Return the place with a number. Raises IndexError if it does not exist."""
        return self._by_number[number]

    def __len__(self) -> int:
        return len(self._by_number)


def _places(program: bmv2json.Program) -> Iterator[Place]:
    yield ParserEnded()
    for parser in program.parsers.values():
        yield from _parser_places(program, parser)
    for checksum in program.checksums.values():
        yield ChecksumVerified(checksum.name)
        yield updated_place(checksum)
    for pipeline in program.pipelines.values():
        for node in pipeline.nodes.values():
            if isinstance(node, bmv2json.Table):
                yield table_place(node)
                if (choice := choice_place(node)) is not None:
                    yield choice
            elif isinstance(node, bmv2json.Conditional):
                yield Branched(node.name)
    for action in program.actions.values():
        yield action_place(action)
        for call in action.primitives:
            yield primitive_place(program, call)
    for deparser in program.deparsers.values():
        for call in deparser.primitives:
            yield primitive_place(program, call)
        for header in deparser.order:
            yield HeaderEmitted(header)


def _parser_places(program: bmv2json.Program, parser: bmv2json.Parser) -> Iterator[Place]:
    for state in parser.states.values():
        yield StateEntered(state.name)
        for operation in state.operations:
            match operation:
                case bmv2json.Extract():
                    yield Extracted(operation)
                case bmv2json.SetField():
                    yield FieldSet(operation)
                case bmv2json.ParserPrimitive(call):
                    yield primitive_place(program, call)
        if state.transition_key:
            yield select_place(state)
