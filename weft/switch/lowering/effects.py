"""Effects of primitives, actions and pipeline nodes on fields: fields read, and fields certainly written."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from weft.switch.bmv2json import (
    Action,
    ActionCallNode,
    CalculationRef,
    Conditional,
    Constant,
    FieldAccess,
    FieldRef,
    HeaderRef,
    Operation,
    ParametersVector,
    Pipeline,
    PrimitiveCall,
    Program,
    RegisterRef,
    Table,
    UnionMemberAccess,
)

Name: TypeAlias = tuple[str, str]
"""Instance and field."""

_Place: TypeAlias = tuple[str, int | None]
"""A node of a pipeline, or one of the actions of a table."""

_Node = TypeVar("_Node", bound=Hashable)

ASSIGNMENTS = frozenset(
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
"""Primitives that write their whole first argument without reading it. Fields written by others also count as read."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A step's effect on fields: it may read `reads` before writing them, and always writes `writes`."""

    reads: frozenset[Name]
    writes: frozenset[Name]


# ---- names in expressions


def names_in(item: object) -> Iterator[Name]:
    """Yield the fields that an expression or argument mentions; (instance, "") for an instance used as a whole."""
    match item:
        case FieldRef(header=header, field=field):
            yield header, field
        case HeaderRef(name):
            yield name, ""
        case Operation(operands=operands):
            for operand in operands:
                yield from names_in(operand)
        case FieldAccess(header=inner) | UnionMemberAccess(union=inner) | RegisterRef(index=inner):
            yield from names_in(inner)
        case ParametersVector(elements=elements):
            for element in elements:
                yield from names_in(element)


def all_names(items: Iterable[object]) -> frozenset[Name]:
    """Return all fields that these expressions or arguments mention."""
    return frozenset(name for item in items for name in names_in(item))


def touched(effect: Effect) -> frozenset[Name]:
    """Return all fields that a step mentions."""
    return effect.reads | effect.writes


# ---- effects of primitives and actions


class Effects:
    """Effects of a program's primitives and (cached) actions."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._actions: dict[int, Effect] = {}

    def primitive(self, call: PrimitiveCall) -> Effect:
        """Return the effect of one primitive."""
        target = call.arguments[0] if call.arguments else None
        inputs: list[object] = list(call.arguments)
        writes: frozenset[Name] = frozenset()
        if call.name in ASSIGNMENTS and isinstance(target, FieldRef):
            inputs = inputs[1:]
            writes = frozenset({(target.header, target.field)})
        for argument in call.arguments:
            if isinstance(argument, CalculationRef):
                inputs += self._program.calculations[argument.name].input
        return Effect(all_names(inputs), writes)

    def action(self, action: Action) -> Effect:
        """Return the effect of a whole action, which may jump and end early."""
        known = self._actions.get(action.id)
        if known is None:
            calls = action.primitives
            steps = {index: self.primitive(call) for index, call in enumerate(calls)}
            steps[len(calls)] = Effect(frozenset(), frozenset())

            def following(index: int) -> Sequence[int]:
                return _next_primitives(calls, index)

            written = _written_before(0, following, lambda index: steps[index].writes)
            reads = [steps[index].reads - before for index, before in written.items()]
            known = Effect(frozenset().union(*reads), written.get(len(calls), frozenset()))
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
    """Return for each reachable node the fields written on every path to it."""
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


def mentioned(program: Program, pipeline: Pipeline, effects: Effects) -> set[Name]:
    """Return the fields that a pipeline may read or write."""
    found: set[Name] = set()
    for node in pipeline.nodes.values():
        actions: Iterable[Action] = ()
        match node:
            case Conditional(expression=expression):
                found |= all_names((expression,))
            case ActionCallNode(action=action):
                actions = (action,)
            case Table():
                actions = executed(node)
                found |= _lookup_reads(pipeline, node)
                if node.direct_meter is not None:
                    found |= all_names((program.meter_arrays[node.direct_meter].result,))
        for action in actions:
            found.update(*(touched(effects.primitive(call)) for call in action.primitives))
    return found


def _lookup_reads(pipeline: Pipeline, table: Table) -> frozenset[Name]:
    reads = all_names(key.field for key in table.key)
    if table.action_profile is not None:
        reads |= all_names(pipeline.action_profiles[table.action_profile].selector_input)
    return reads


def read_too_early(pipeline: Pipeline, effects: Effects) -> set[Name]:
    """Return the fields that a pipeline may read before writing them."""
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
    """A pipeline's nodes, with a further node for each action of a table."""

    def __init__(self, pipeline: Pipeline, effects: Effects) -> None:
        self._pipeline = pipeline
        self._effects = effects

    def effect(self, place: _Place) -> Effect:
        """Return the effect of the node."""
        name, action_id = place
        match self._pipeline.nodes[name]:
            case Conditional(expression=expression):
                return Effect(all_names((expression,)), frozenset())
            case ActionCallNode(action=action):
                return self._effects.action(action)
            case Table() as table if action_id is None:
                return Effect(_lookup_reads(self._pipeline, table), frozenset())
            case Table() as table:
                return self._effects.action(next(item for item in executed(table) if item.id == action_id))

    def following(self, place: _Place) -> Iterator[_Place]:
        """Yield the nodes that may follow the node."""
        name, action_id = place
        targets: tuple[str | None, ...]
        match self._pipeline.nodes[name]:
            case Conditional(true_next=true_next, false_next=false_next):
                targets = (true_next, false_next)
            case ActionCallNode(next_node=next_node):
                targets = (next_node,)
            case Table() as table if action_id is None:
                yield from ((name, action.id) for action in executed(table))
                targets = () if table.has_fixed_action else _targets(table, None)
            case Table() as table:
                targets = _targets(table, action_id)
        yield from ((target, None) for target in targets if target is not None)


def executed(table: Table) -> Iterable[Action]:
    """Return the actions that a table may execute."""
    if table.has_fixed_action:
        assert table.default_entry is not None
        return (table.default_entry.action,)
    return table.actions


def _targets(table: Table, action_id: int | None) -> tuple[str | None, ...]:
    """Return the next nodes after a table's action, or after a lookup without an action to execute."""
    if table.branches_on_hit:
        return table.hit_next, table.miss_next
    if action_id is not None and action_id in table.next_nodes:
        return (table.next_nodes[action_id],)
    return (table.base_default_next,)
