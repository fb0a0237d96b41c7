"""Which metadata fields are temporaries: written before they are read, wherever they are read.

Nothing of a temporary lasts from one pipeline to the next, so it need not travel with a packet. Compilers make many:
fabric.p4 has some hundred, nearly all of them for packets of in-network aggregation.

The analysis is that of definite assignment: forward over a pipeline's graph, and over an action's primitives, which
fields every way there has written. All other places that name a field, the parser's among them, make it lasting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from weft.switch.bmv2json import (
    Action,
    ActionCallNode,
    CalculationRef,
    Conditional,
    Constant,
    Extract,
    FieldAccess,
    FieldRef,
    HeaderRef,
    Operation,
    ParametersVector,
    ParserPrimitive,
    Pipeline,
    PrimitiveCall,
    Program,
    RegisterRef,
    SetField,
    Table,
    UnionMemberAccess,
    Verify,
)
from weft.switch.lowering import intrinsics
from weft.switch.lowering.layout import BLOCK_ALIGNMENT, Temporary, align, native_bytes
from weft.switch.lowering.tables import has_fixed_action

Name: TypeAlias = tuple[str, str]
"""Instance and field."""

_Place: TypeAlias = tuple[str, int | None]
"""A node of a pipeline, or one of the actions of a table."""

_Node = TypeVar("_Node", bound=Hashable)

_ASSIGNMENTS = frozenset(
    {
        "assign",
        "modify_field",
        "add",
        "subtract",
        "bit_xor",
        "bit_or",
        "bit_and",
        "shift_left",
        "shift_right",
        "modify_field_with_hash_based_offset",
    }
)
"""Primitives that write all of their first argument and do not read it. What others write counts as read, too."""


MOST_TEMPORARIES_BYTES = 64 * 1024
"""Of a program, all of which each pipeline keeps on its stack; what is beyond stays in the packet's state."""


@dataclass(frozen=True, slots=True)
class _Effect:
    """What a step does to fields: `reads` before it writes any of them, `writes` whatever happens."""

    reads: frozenset[Name]
    writes: frozenset[Name]


def temporaries(program: Program) -> dict[Name, Temporary]:
    """All temporaries among the metadata fields of `program`, in the order of their names."""
    whole_instances = set(program.headers)
    fields = {
        (header.name, item.name): item.width_bits
        for header in program.headers.values()
        if header.metadata
        for item in header.type.fields
        if not item.variable
    }
    lasting = set(_lasting(program))
    effects = _Effects(program)
    for pipeline in program.pipelines.values():
        lasting |= _read_too_early(pipeline, effects)
    used_whole = {header for header, field in lasting if not field} & whole_instances
    shared = _in_shared_actions(program, effects)
    found: dict[Name, Temporary] = {}
    room_bytes = MOST_TEMPORARIES_BYTES
    for name in sorted(fields.keys() - lasting):
        size_bytes = align(native_bytes(fields[name]), BLOCK_ALIGNMENT)
        if name[0] in used_whole or size_bytes > room_bytes:
            continue
        room_bytes -= size_bytes
        found[name] = Temporary.SHARED if name in shared else Temporary.PRIVATE
    return found


def called_once(program: Program) -> frozenset[int]:
    """Ids of the actions that one place calls: a table, or a node of a pipeline."""
    calls: Counter[int] = Counter()
    for pipeline in program.pipelines.values():
        for node in pipeline.nodes.values():
            match node:
                case Table():
                    calls.update(action.id for action in _executed(node))
                case ActionCallNode(action=action):
                    calls[action.id] += 1
    return frozenset(action_id for action_id, count in calls.items() if count == 1)


def _in_shared_actions(program: Program, effects: _Effects) -> frozenset[Name]:
    """Fields that actions called from several places mention."""
    once = called_once(program)
    mentioned = (
        _touched(effects.primitive(call))
        for action in program.actions.values()
        if action.id not in once
        for call in action.primitives
    )
    return frozenset[Name]().union(*mentioned)


# ---- names in expressions


def _names(item: object) -> Iterator[Name]:
    """Fields that an expression or argument mentions; (instance, "") for one that is used as a whole."""
    match item:
        case FieldRef(header=header, field=field):
            yield header, field
        case HeaderRef(name):
            yield name, ""
        case Operation(operands=operands):
            for operand in operands:
                yield from _names(operand)
        case FieldAccess(header=inner) | UnionMemberAccess(union=inner) | RegisterRef(index=inner):
            yield from _names(inner)
        case ParametersVector(elements=elements):
            for element in elements:
                yield from _names(element)


def _all_names(items: Iterable[object]) -> frozenset[Name]:
    return frozenset(name for item in items for name in _names(item))


# ---- fields that last


def _lasting(program: Program) -> Iterator[Name]:
    """Fields that something else than a pipeline reads or writes."""
    for header in ("standard_metadata", "intrinsic_metadata", "queueing_metadata"):
        yield header, ""
    for name in intrinsics.NAMES:
        intrinsic = program.intrinsic(name)
        if intrinsic is not None:
            yield intrinsic.header, intrinsic.field
    for field_list in (*program.field_lists.values(), *program.learn_lists.values()):
        yield from _all_names(field_list.elements)
    for checksum in program.checksums.values():
        yield from _all_names((checksum.target, checksum.condition))
        yield from _all_names(program.calculations[checksum.calculation].input)
    effects = _Effects(program)
    for deparser in program.deparsers.values():
        for call in deparser.primitives:
            yield from _touched(effects.primitive(call))
    for parser in program.parsers.values():
        for state in parser.states.values():
            yield from _all_names(state.transition_key)
            for operation in state.operations:
                yield from _in_parser(operation, effects)


def _in_parser(operation: object, effects: _Effects) -> Iterator[Name]:
    match operation:
        case Extract(length_bits=length):
            yield from _names(length)
        case SetField(target, source):
            yield from _all_names((target, source))
        case Verify(condition, error):
            yield from _all_names((condition, error))
        case ParserPrimitive(call):
            yield from _touched(effects.primitive(call))
        case other:
            yield from _names(getattr(other, "bits", None))


def _touched(effect: _Effect) -> frozenset[Name]:
    return effect.reads | effect.writes


# ---- effects of primitives and actions


class _Effects:
    """Effects of a program's primitives and, remembered, its actions."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._actions: dict[int, _Effect] = {}

    def primitive(self, call: PrimitiveCall) -> _Effect:
        """The effect of one primitive."""
        target = call.arguments[0] if call.arguments else None
        inputs: list[object] = list(call.arguments)
        writes: frozenset[Name] = frozenset()
        if call.name in _ASSIGNMENTS and isinstance(target, FieldRef):
            inputs = inputs[1:]
            writes = frozenset({(target.header, target.field)})
        for argument in call.arguments:
            if isinstance(argument, CalculationRef):
                inputs += self._program.calculations[argument.name].input
        return _Effect(_all_names(inputs), writes)

    def action(self, action: Action) -> _Effect:
        """The effect of a whole action, which may jump and end early."""
        known = self._actions.get(action.id)
        if known is None:
            calls = action.primitives
            steps = {index: self.primitive(call) for index, call in enumerate(calls)}
            steps[len(calls)] = _Effect(frozenset(), frozenset())

            def following(index: int) -> Sequence[int]:
                return _next_primitives(calls, index)

            written = _written_before(0, following, lambda index: steps[index].writes)
            reads = [steps[index].reads - before for index, before in written.items()]
            known = _Effect(frozenset().union(*reads), written.get(len(calls), frozenset()))
            self._actions[action.id] = known
        return known


def _next_primitives(calls: Sequence[PrimitiveCall], index: int) -> Sequence[int]:
    if index == len(calls):
        return ()
    call = calls[index]
    target = call.arguments[-1] if call.arguments else None
    if call.name == "exit":
        return ()
    if call.name == "_jump" and isinstance(target, Constant):
        return (target.value,)
    if call.name == "_jump_if_zero" and isinstance(target, Constant):
        return (index + 1, target.value)
    return (index + 1,)


# ---- over graphs


def _written_before(
    start: _Node,
    following: Callable[[_Node], Iterable[_Node]],
    writes: Callable[[_Node], frozenset[Name]],
) -> dict[_Node, frozenset[Name]]:
    """For each node that can be reached: the fields that have been written on every way there."""
    before: dict[_Node, frozenset[Name]] = {start: frozenset()}
    waiting = [start]
    while waiting:
        node = waiting.pop()
        after = before[node] | writes(node)
        for target in following(node):
            known = before.get(target)
            common = after if known is None else known & after
            if known is None or common != known:
                before[target] = common
                waiting.append(target)
    return before


def _read_too_early(pipeline: Pipeline, effects: _Effects) -> set[Name]:
    """Fields that a pipeline reads where not every way there has written them."""
    if pipeline.initial_node is None:
        return set()
    graph = _Graph(pipeline, effects)
    start: _Place = (pipeline.initial_node, None)
    written = _written_before(start, graph.following, lambda place: graph.effect(place).writes)
    early: set[Name] = set()
    for place, before in written.items():
        early |= graph.effect(place).reads - before
    return early


class _Graph:
    """A pipeline's nodes, and behind each table one node for each of its actions."""

    def __init__(self, pipeline: Pipeline, effects: _Effects) -> None:
        self._pipeline = pipeline
        self._effects = effects

    def effect(self, place: _Place) -> _Effect:
        """What the node does."""
        name, action_id = place
        match self._pipeline.nodes[name]:
            case Conditional(expression=expression):
                return _Effect(_all_names((expression,)), frozenset())
            case ActionCallNode(action=action):
                return self._effects.action(action)
            case Table() as table if action_id is None:
                return _Effect(self._lookup_reads(table), frozenset())
            case Table() as table:
                return self._effects.action(next(item for item in _executed(table) if item.id == action_id))

    def _lookup_reads(self, table: Table) -> frozenset[Name]:
        reads = _all_names(key.field for key in table.key)
        if table.action_profile is not None:
            reads |= _all_names(self._pipeline.action_profiles[table.action_profile].selector_input)
        return reads

    def following(self, place: _Place) -> Iterator[_Place]:
        """Where a packet may go from the node."""
        name, action_id = place
        targets: tuple[str | None, ...]
        match self._pipeline.nodes[name]:
            case Conditional(true_next=true_next, false_next=false_next):
                targets = (true_next, false_next)
            case ActionCallNode(next_node=next_node):
                targets = (next_node,)
            case Table() as table if action_id is None:
                yield from ((name, action.id) for action in _executed(table))
                targets = () if has_fixed_action(table) else _targets(table, None)
            case Table() as table:
                targets = _targets(table, action_id)
        yield from ((target, None) for target in targets if target is not None)


def _executed(table: Table) -> Iterable[Action]:
    if has_fixed_action(table):
        assert table.default_entry is not None
        return (table.default_entry.action,)
    return table.actions


def _targets(table: Table, action_id: int | None) -> tuple[str | None, ...]:
    """Next nodes behind an action of a table, or behind a lookup that found none to execute."""
    if table.branches_on_hit:
        return table.hit_next, table.miss_next
    if action_id is not None and action_id in table.next_nodes:
        return (table.next_nodes[action_id],)
    return (table.base_default_next,)
