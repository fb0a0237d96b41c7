"""Reads pipelines: tables, conditionals, action calls and action profiles."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from weft.switch.bmv2json.expressions import Kind
from weft.switch.bmv2json.model_pipelines import (
    Action,
    ActionCallNode,
    ActionProfile,
    Conditional,
    ConstantEntry,
    DefaultEntry,
    KeyField,
    MatchKind,
    MatchValue,
    Pipeline,
    PipelineNode,
    Table,
    TableType,
)
from weft.switch.bmv2json.node import Node
from weft.switch.bmv2json.read_expressions import ExpressionReader, source_of
from weft.switch.bmv2json.scope import Scope, by_id, frozen, optional_string, read_named
from weft.switch.bmv2json.static_types import is_variable

_KINDS = [kind.value for kind in MatchKind]
_STRENGTH = {
    MatchKind.VALID: 0,
    MatchKind.EXACT: 0,
    MatchKind.LPM: 1,
    MatchKind.TERNARY: 2,
    MatchKind.RANGE: 3,
}


def read_pipeline(scope: Scope, node: Node) -> Pipeline:
    """Read one of `pipelines` and check that its graph has no cycle."""
    profiles = read_named(node.array("action_profiles"), "action profile", lambda each: _action_profile(scope, each))
    sections = ("tables", "conditionals", "action_calls")
    names = {each["name"].string() for section in sections for each in node.array(section)}
    nodes: dict[str, PipelineNode] = {}
    tables = read_named(node.array("tables"), "table", lambda each: _table(scope, each, names, profiles))
    conditionals = read_named(node.array("conditionals"), "conditional", lambda each: _conditional(scope, each, names))
    calls = read_named(node.array("action_calls"), "action call", lambda each: _action_call(scope, each, names))
    for group in (tables, conditionals, calls):
        for name in group:
            if name in nodes:
                node.fail(f"two nodes of the pipeline are called {name!r}")
        nodes.update(group)
    pipeline = Pipeline(
        node["name"].string(), node["id"].integer(), _next(node, "init_table", names), frozen(nodes), profiles
    )
    _check_acyclic(node, pipeline)
    return pipeline


def _next(node: Node, key: str, names: set[str]) -> str | None:
    found = node.optional(key)
    return None if found is None else found.name_in(names, "pipeline node")


def successors(node: PipelineNode) -> set[str]:
    """Names of the nodes that may follow `node`."""
    if isinstance(node, Table):
        found = {*node.next_nodes.values(), node.hit_next, node.miss_next, node.base_default_next}
    elif isinstance(node, Conditional):
        found = {node.true_next, node.false_next}
    else:
        found = {node.next_node}
    return {name for name in found if name is not None}


def _check_acyclic(document: Node, pipeline: Pipeline) -> None:
    # iterative depth-first search: real programs have chains longer than Python's stack
    finished: set[str] = set()
    for root in pipeline.nodes:
        on_path: dict[str, list[str]] = {}
        stack = [root]
        while stack:
            name = stack[-1]
            if name not in on_path:
                on_path[name] = [] if name in finished else sorted(successors(pipeline.nodes[name]))
            if not on_path[name]:
                finished.add(name)
                del on_path[name]
                stack.pop()
                continue
            following = on_path[name].pop()
            if following in on_path:
                document.fail(f"the pipeline runs in a circle through {following!r} and {name!r}")
            stack.append(following)


def _action_profile(scope: Scope, node: Node) -> ActionProfile:
    selector = node.optional("selector")
    algorithm, fields = None, []
    if selector is not None:
        algorithm = selector["algo"].string()
        for element in selector.array("input"):
            element["type"].one_of(("field",))
            fields.append(scope.field_ref(element["value"]))
    return ActionProfile(
        node["name"].string(),
        node["id"].integer(),
        node["max_size"].integer(0, 2**31 - 1),
        algorithm,
        tuple(fields),
    )


def _conditional(scope: Scope, node: Node, names: set[str]) -> Conditional:
    return Conditional(
        node["name"].string(),
        node["id"].integer(),
        ExpressionReader(scope).read_kind(node["expression"], Kind.BOOL),
        _next(node, "true_next", names),
        _next(node, "false_next", names),
        source_of(node),
    )


def _action_call(scope: Scope, node: Node, names: set[str]) -> ActionCallNode:
    action = by_id(node["action_id"], scope.actions, "action")
    if action.parameters:
        node["action_id"].fail(f"action {action.name!r} has parameters, so only a table can call it")
    return ActionCallNode(node["name"].string(), node["id"].integer(), action, _next(node, "next_node", names))


def _table(scope: Scope, node: Node, names: set[str], profiles: Mapping[str, ActionProfile]) -> Table:
    kind = MatchKind(node["match_type"].one_of(_KINDS))
    key = tuple(_key_field(scope, element) for element in node.array("key"))
    _check_kinds(node, kind, key)
    actions = _table_actions(scope, node)
    table_type = TableType(node["type"].one_of([each.value for each in TableType]))
    entries = node.optional("entries")
    next_nodes, hit_next, miss_next, on_hit = _next_nodes(node, actions, names)
    meter = node.optional("direct_meters")
    return Table(
        name=node["name"].string(),
        id=node["id"].integer(),
        kind=kind,
        type=table_type,
        max_size=node["max_size"].integer(0, 2**31 - 1),
        key=key,
        actions=actions,
        next_nodes=next_nodes,
        branches_on_hit=on_hit,
        hit_next=hit_next,
        miss_next=miss_next,
        base_default_next=_next(node, "base_default_next", names),
        with_counters=node.flag("with_counters"),
        supports_timeout=node.flag("support_timeout"),
        direct_meter=None if meter is None else meter.name_in(scope.meter_arrays, "meter array"),
        action_profile=_profile_of(node, table_type, profiles),
        default_entry=_default_entry(node, actions),
        constant_entries=() if entries is None else _entries(entries, key, actions),
        immutable=entries is not None,
        source=source_of(node),
    )


def _profile_of(node: Node, table_type: TableType, profiles: Mapping[str, ActionProfile]) -> str | None:
    if table_type is TableType.SIMPLE:
        return None
    profile_node = node["action_profile"]
    name = profile_node.name_in(profiles, "action profile")
    if table_type is TableType.INDIRECT_WITH_SELECTOR and profiles[name].selector_algorithm is None:
        profile_node.fail(f"action profile {name!r} has no selector, which table type 'indirect_ws' needs")
    return name


def _key_field(scope: Scope, node: Node) -> KeyField:
    kind = MatchKind(node["match_type"].one_of(_KINDS))
    target = node["target"]
    if kind is MatchKind.VALID and isinstance(target.value, str):
        target = Node([target.value, "$valid$"], target.path)
    field = scope.field_ref(target)
    if is_variable(scope, field):
        target.fail(f"variable-length field {field} cannot be matched")
    mask_node = node.optional("mask")
    mask = None if mask_node is None else _fitting(mask_node, field.width_bits)
    return KeyField(optional_string(node, "name") or str(field), kind, field, mask)


def _check_kinds(node: Node, kind: MatchKind, key: tuple[KeyField, ...]) -> None:
    strongest = max((_STRENGTH[field.kind] for field in key), default=0)
    if strongest > _STRENGTH[kind]:
        node["match_type"].fail(f"a table of match type {kind.value!r} cannot have such key fields")
    if kind is MatchKind.LPM and sum(field.kind is MatchKind.LPM for field in key) != 1:
        node["key"].fail("a table of match type 'lpm' has exactly one 'lpm' key field")


def _table_actions(scope: Scope, node: Node) -> tuple[Action, ...]:
    id_nodes = node.optional("action_ids")
    if id_nodes is not None:
        actions = [by_id(each, scope.actions, "action") for each in id_nodes.items()]
    else:
        by_name = {action.name: action for action in scope.actions.values()}
        actions = [by_name[each.name_in(by_name, "action")] for each in node["actions"].items()]
    if len({action.name for action in actions}) != len(actions):
        node["actions"].fail("two actions of the table have the same name")
    return tuple(actions)


def _next_nodes(
    node: Node, actions: tuple[Action, ...], names: set[str]
) -> tuple[Mapping[int, str | None], str | None, str | None, bool]:
    next_node = node["next_tables"]
    listed = dict(next_node.entries())
    by_name = {action.name: action.id for action in actions}
    valid = {*by_name, "__HIT__", "__MISS__"}
    for key, each in listed.items():
        if key not in valid:
            each.fail(f"unknown action {key!r} in next_tables")
    on_hit = "__HIT__" in listed or "__MISS__" in listed
    base_default = _next(node, "base_default_next", names)
    by_id_map = {number: _next_of(next_node, name, names, base_default) for name, number in by_name.items()}
    hit = _next_of(next_node, "__HIT__", names, base_default)
    miss = _next_of(next_node, "__MISS__", names, base_default)
    return MappingProxyType(by_id_map), hit, miss, on_hit


def _next_of(next_node: Node, key: str, names: set[str], default: str | None) -> str | None:
    return _next(next_node, key, names) if key in next_node.value else default


def _default_entry(node: Node, actions: tuple[Action, ...]) -> DefaultEntry | None:
    entry = node.optional("default_entry")
    if entry is None:
        return None
    action, arguments = _action_entry(entry, actions)
    return DefaultEntry(action, arguments, entry.flag("action_const") or entry.flag("action_entry_const"))


def _action_entry(node: Node, actions: tuple[Action, ...]) -> tuple[Action, tuple[int, ...]]:
    action = by_id(node["action_id"], {each.id: each for each in actions}, "action")
    data = node.array("action_data")
    if len(data) != len(action.parameters):
        node.fail(f"action {action.name!r} takes {len(action.parameters)} arguments, got {len(data)}")
    values = zip(data, action.parameters, strict=True)
    return action, tuple(_fitting(value, parameter.width_bits) for value, parameter in values)


def _entries(node: Node, key: tuple[KeyField, ...], actions: tuple[Action, ...]) -> tuple[ConstantEntry, ...]:
    """Read the program's entries; as in BMv2, no two may have the same key (and priority, if used)."""
    listed = [(each, _entry(each, key, actions)) for each in node.items()]
    prioritised = any(field.kind in (MatchKind.TERNARY, MatchKind.RANGE) for field in key)
    first: dict[object, Node] = {}
    for each, entry in listed:
        earlier = first.setdefault((entry.key, entry.priority if prioritised else 0), each)
        if earlier is not each:
            each.fail(f"the entry at {earlier.path} has the same key")
    return tuple(entry for _, entry in listed)


def _entry(node: Node, key: tuple[KeyField, ...], actions: tuple[Action, ...]) -> ConstantEntry:
    values = node["match_key"].items(len(key))
    action, arguments = _action_entry(node["action_entry"], actions)
    priority = node.optional("priority")
    return ConstantEntry(
        tuple(_match_value(value, field) for value, field in zip(values, key, strict=True)),
        action,
        arguments,
        0 if priority is None else priority.integer(0, 2**31 - 1),
        source_of(node),
    )


def _match_value(node: Node, field: KeyField) -> MatchValue:
    kind = MatchKind(node["match_type"].one_of((field.kind.value,)))
    width_bits = field.field.width_bits
    if kind is MatchKind.VALID:
        return MatchValue(kind, int(node["key"].boolean()))
    if kind is MatchKind.RANGE:
        low, high = _fitting(node["start"], width_bits), _fitting(node["end"], width_bits)
        if low > high:
            node.fail(f"the range's start {low:#x} lies above its end {high:#x}")
        return MatchValue(kind, low, high)
    value = _fitting(node["key"], width_bits)
    if kind is MatchKind.LPM:
        length = node["prefix_length"].integer(0, width_bits)
        return MatchValue(kind, value >> width_bits - length << width_bits - length, length)
    if kind is MatchKind.TERNARY:
        mask = _fitting(node["mask"], width_bits)
        return MatchValue(kind, value & mask, mask)
    return MatchValue(kind, value)


def _fitting(node: Node, width_bits: int) -> int:
    """The value of `width_bits`; a negative one (of an int<W>) in two's complement."""
    value = node.hexstr()
    if not -(1 << width_bits - 1) <= value < 1 << width_bits:
        node.fail(f"{node.value} does not fit {width_bits} bits")
    return value % (1 << width_bits)
