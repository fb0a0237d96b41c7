"""Controls: a graph of tables, conditionals and action calls, each a few basic blocks of one function."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from weft.switch.bmv2json import Action, ActionCallNode, Conditional, FieldRef, Pipeline, RuntimeData, Table
from weft.switch.drop_sites import marks_to_drop
from weft.switch.lowering.emitter import I32, POINTER, VOID, Emitter, ModuleContext, Value, constant
from weft.switch.lowering.errors import UnsupportedError
from weft.switch.lowering.expressions import lower, lower_condition
from weft.switch.lowering.fields import field_place, store_field
from weft.switch.lowering.layout import Temporary
from weft.switch.lowering.primitives import emit_primitives, may_leave_early
from weft.switch.lowering.tables import (
    action_arguments,
    action_number,
    apply_table,
    count_miss,
    default_arguments,
)
from weft.switch.lowering.tracing import count_outcome, report, report_lookup
from weft.switch.trace.places import Branched, action_place, choice_place


class Actions:
    """The module's action functions: void action(PacketState*, SwitchContext*, const data*, temporaries*...), made
    when first used.
    """

    def __init__(self, shared: ModuleContext) -> None:
        self._shared = shared
        self._functions: dict[int, Value] = {}

    def function(self, action: Action) -> Value:
        """The function of `action`. UnsupportedError names the action."""
        known = self._functions.get(action.id)
        if known is None:
            known = self._functions[action.id] = self._emit(action)
        return known

    def temporaries(self, action: Action) -> tuple[Temporary, ...]:
        """Return the kinds of temporaries that the function of `action` gets from the pipeline."""
        kinds = tuple(Temporary) if action.id in self._shared.called_once else (Temporary.SHARED,)
        return tuple(kind for kind in kinds if kind in self._shared.layout.temporaries_bytes)

    def _emit(self, action: Action) -> Value:
        name = f"action_{action.id}"
        kinds = self.temporaries(action)
        function = ir.Function(self._shared.module, ir.FunctionType(VOID, [POINTER] * (3 + len(kinds))), name)
        function.linkage = "internal"
        mark_arguments(function)
        if action.id in self._shared.called_once:
            # As a part of its caller, its temporaries stay in registers.
            function.attributes.add("alwaysinline")
        emit = Emitter(self._shared, function, function.args[0], function.args[1])
        for kind, address in zip(kinds, function.args[3:], strict=True):
            size_bytes = self._shared.layout.temporaries_bytes[kind]
            emit.temporaries[kind] = emit.extent(address, size_bytes, "its pipeline's temporaries")
        emit.place = f"action '{action.name}'"
        emit.action = action
        emit.action_layout = self._shared.action_data[action.id]
        emit.action_data = emit.extent(function.args[2], emit.action_layout.size_bytes, "its data")
        end = emit.block("end")
        if self._shared.places is not None:
            widths = [parameter.width_bits for parameter in action.parameters]
            values = [lower(emit, RuntimeData(i, width), width) for i, width in enumerate(widths)]
            report(emit, action_place(action), values)
        try:
            emit_primitives(emit, action.primitives, end)
        except UnsupportedError as error:
            raise UnsupportedError(error, place=f"action '{action.name}'") from None
        emit.continue_in(end)
        emit.builder.ret_void()
        return function


def mark_arguments(function: Any) -> None:
    """Declare to LLVM that the function's pointers do not alias and that it does not throw."""
    for argument in function.args:
        if isinstance(argument.type, ir.PointerType):
            argument.add_attribute("noalias")
    function.attributes.add("nounwind")


class PipelineLowering:
    """Writes a pipeline to `emit`, which continues in `end`."""

    def __init__(self, emit: Emitter, pipeline: Pipeline, actions: Actions, end: Value) -> None:
        self._emit = emit
        self._pipeline = pipeline
        self._actions = actions
        self._end = end
        self._blocks: dict[str, Value] = {}

    def run(self) -> None:
        """Emit every reachable node, then continue in the end block."""
        emit = self._emit
        emit.make_temporaries()
        # Metadata begins as 0. These fields are not in the state that is cleared, so the pipeline clears them on its
        # stack.
        for header, name in emit.shared.zeroed[self._pipeline.name]:
            slot = emit.layout.blocks[header].fields[name]
            place = field_place(emit, FieldRef(header, name, slot.width_bits, slot.signed))
            store_field(emit, place, constant(slot.width_bits, 0))
        emit.builder.branch(self._target(self._pipeline.initial_node))
        emitted: set[str] = set()
        while waiting := [name for name in self._blocks if name not in emitted]:
            for name in waiting:
                emitted.add(name)
                emit.continue_in(self._blocks[name])
                self._node(name)
        emit.continue_in(self._end)

    def _target(self, name: str | None) -> Value:
        if name is None:
            return self._end
        if name not in self._blocks:
            self._blocks[name] = self._emit.block(f"node_{len(self._blocks)}")
        return self._blocks[name]

    def _node(self, name: str) -> None:
        match self._pipeline.nodes[name]:
            case Table() as table:
                try:
                    self._table(table)
                except UnsupportedError as error:
                    raise UnsupportedError(error, place=f"table '{name}'") from None
            case Conditional(expression=expression, true_next=true_next, false_next=false_next):
                condition = lower_condition(self._emit, expression)
                report(self._emit, Branched(name), [condition])
                self._emit.builder.cbranch(condition, self._target(true_next), self._target(false_next))
            case ActionCallNode(action=action, next_node=next_node):
                self._note_drop(name, action, None)
                self._call(action, POINTER(None), self._target(next_node))

    def _call(self, action: Action, data: Value, target: Value) -> None:
        emit = self._emit
        temporaries = [emit.temporaries[kind] for kind in self._actions.temporaries(action)]
        emit.call(self._actions.function(action), [emit.state, emit.context, data, *temporaries])
        # Only actions that contain `exit` pay for the test.
        if may_leave_early(action.primitives):
            leave = emit.builder.icmp_unsigned("!=", emit.load_state("exit_requested"), I32(0))
            emit.builder.cbranch(leave, self._end, target)
        else:
            emit.builder.branch(target)

    def _table(self, table: Table) -> None:
        emit = self._emit
        # No key and a constant default action: there is nothing to look up.
        if table.has_fixed_action:
            assert table.default_entry is not None
            action = table.default_entry.action
            report_lookup(emit, table, POINTER(None), None, POINTER(None))
            self._count_choice(table, action)
            self._note_drop(table.name, action, None)
            self._call(action, POINTER(None), self._next(table, action, None))
            return
        assumed = emit.shared.assumed
        always = None if assumed is None else assumed.default_of(table)
        if always is not None:
            self._always_missed(table, always)
            return
        # Where a miss does nothing the default entry, another cache line, is not read.
        missed = emit.block("missed") if table.misses_do_nothing else None
        result = apply_table(emit, table, missed)
        nothing = emit.block("no_action")
        choice = emit.builder.switch(action_number(emit, result.action), nothing)
        for action in table.actions:
            if assumed is not None and not assumed.uses(action):
                continue
            block = emit.block("action")
            choice.add_case(I32(action.id), block)
            emit.continue_in(block)
            self._count_choice(table, action)
            data = action_arguments(emit, result.action)
            self._note_drop(table.name, action, result.hit if table.key else None)
            self._call(action, data, self._next(table, action, result.hit))
        emit.continue_in(nothing)
        self._count_choice(table, None)
        emit.builder.branch(self._next(table, None, result.hit))
        if missed is not None:
            assert table.default_entry is not None
            emit.continue_in(missed)
            if table.with_counters:
                count_miss(emit, table)
            action = table.default_entry.action
            self._count_choice(table, action)
            self._call(action, POINTER(None), self._next(table, action, constant(1, 0)))

    def _always_missed(self, table: Table, action: Action) -> None:
        """A table without entries: its default action, whose data are read only where they may differ."""
        emit = self._emit
        if table.with_counters:
            count_miss(emit, table)
        missed = constant(1, 0)
        self._note_drop(table.name, action, missed if table.key else None)
        assumed = emit.shared.assumed
        assert assumed is not None
        data = default_arguments(emit, table) if assumed.varies(action) else POINTER(None)
        self._call(action, data, self._next(table, action, missed))

    def _note_drop(self, node: str, action: Action, hit: Value | None) -> None:
        """Store the site of an action that may mark the packet to be dropped in its state; others cost nothing."""
        if not marks_to_drop(action):
            return
        sites, emit, pipeline = self._emit.shared.drop_sites, self._emit, self._pipeline.name
        if hit is None:
            number = I32(sites[pipeline, node, action.id, ""])
        else:
            numbers = (I32(sites[pipeline, node, action.id, outcome]) for outcome in ("hit", "miss"))
            number = emit.builder.select(hit, *numbers)
        emit.store_state("drop_site", number)

    def _count_choice(self, table: Table, action: Action | None) -> None:
        """Count the action after which the program continues (None: without one), if the next node depends on it."""
        place = choice_place(table)
        if place is not None:
            number = len(table.actions) if action is None else table.actions.index(action)
            count_outcome(self._emit, place, number)

    def _next(self, table: Table, action: Action | None, hit: Value | None) -> Value:
        """Return the block after `action` (None: no action was executed)."""
        if table.branches_on_hit:
            if hit is None:
                return self._target(table.miss_next)
            return self._branch_on(hit, self._target(table.hit_next), self._target(table.miss_next))
        if action is not None and action.id in table.next_nodes:
            return self._target(table.next_nodes[action.id])
        return self._target(table.base_default_next)

    def _branch_on(self, hit: Value, if_hit: Value, if_miss: Value) -> Value:
        if if_hit is if_miss:
            return if_hit
        here, block = self._emit.builder.block, self._emit.block("hit_or_miss")
        self._emit.continue_in(block)
        self._emit.builder.cbranch(hit, if_hit, if_miss)
        self._emit.continue_in(here)
        return block
