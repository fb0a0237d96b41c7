"""Runs a pipeline: tables, conditionals and action calls from node to node."""

from __future__ import annotations

from weft.switch.bmv2json import ActionCallNode, Conditional, Pipeline, Table
from weft.switch.oracle.expressions import Environment, boolean
from weft.switch.oracle.objects import OracleObjects, counted
from weft.switch.oracle.primitives import run_action
from weft.switch.oracle.state import PacketState
from weft.switch.oracle.tracing import report
from weft.switch.trace.places import Branched, table_place


def run_pipeline(pipeline: Pipeline, packet: PacketState, objects: OracleObjects) -> None:
    """Run until the end of the pipeline or an `exit`."""
    name = pipeline.initial_node
    env = Environment(packet, objects)
    while name is not None and not packet.requests.exit:
        node = pipeline.nodes[name]
        if isinstance(node, Table):
            name = _apply_table(node, packet, objects)
        elif isinstance(node, Conditional):
            holds = boolean(node.expression, env)
            report(packet, Branched(node.name), (int(holds),))
            name = node.true_next if holds else node.false_next
        else:
            assert isinstance(node, ActionCallNode)
            run_action(node.action, (), packet, objects)
            name = node.next_node
    packet.requests.exit = False


def _apply_table(table: Table, packet: PacketState, objects: OracleObjects) -> str | None:
    """Apply a table; returns the next node."""
    state = objects.tables[table.name]
    found = state.look_up(packet)
    entry = found.entry
    report(packet, table_place(table), found.key, match=found.match)
    if found.hit:
        entry.last_hit_ns = objects.now_ns
    if table.with_counters:
        entry.counter = counted(entry.counter, packet)
    if table.direct_meter is not None and found.hit:  # like BMv2: a miss has no meter
        array = objects.program.meter_arrays[table.direct_meter]
        if array.result is not None:
            packet.set(array.result, objects.colour(array.name, entry.meter, packet))
    call = state.action_of(entry, packet)
    action = None if call is None else state.action_named(call)
    if action is not None and call is not None:
        run_action(action, call.arguments, packet, objects)
    if table.branches_on_hit:
        return table.hit_next if found.hit else table.miss_next
    return table.base_default_next if action is None else table.next_nodes[action.id]
