"""Tables, lowered where they are applied first."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Apply, Assign, Const, Expr, FieldRef, Stmt, Table
from weft.compiler.lower import build
from weft.compiler.lower.actions import lower_table_actions
from weft.compiler.lower.assign import assign
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate, evaluate_scalar
from weft.compiler.lower.entries import lower_entries
from weft.compiler.lower.instances import instantiate
from weft.compiler.lower.sizes import control_plane_size
from weft.compiler.lower.table_keys import check_prefixes, has_effects, lower_key
from weft.compiler.lower.values import ExternValue, P4Value, TableValue
from weft.compiler.types import BOOL

DEFAULT_TABLE_SIZE = 1024


def table_of(context: Context, value: TableValue) -> Table:
    """The lowered table; keys that are no fields are computed into variables now."""
    identity = (id(value.declaration), id(value.frame))
    table = context.tables.lowered.get(identity)
    if table is None:
        table = _lower_table(context, value)
        context.tables.lowered[identity] = table
    else:
        for copy, expression in context.tables.key_copies[id(table)]:
            assign(context, copy, evaluate_scalar(context, expression), expression.span)
    return table


def _lower_table(context: Context, value: TableValue) -> Table:
    declaration = value.declaration
    frame = value.frame
    name = frame.name_of(declaration)
    if name in context.control_plane.table_sources:
        context.diagnostics.error(
            f"table '{name}' would exist twice: its control is applied more than once", declaration.span
        )
    context.control_plane.table_sources[name] = (declaration, frame)
    copies: list[tuple[FieldRef, ast.Expression]] = []
    with context.in_frame(frame):
        # Where a key has effects, each application evaluates all of them, in order.
        copied = any(has_effects(key.expression) for key in declaration.keys)
        keys = [lower_key(context, key, copies, copied=copied) for key in declaration.keys]
        check_prefixes(context, keys, declaration)
        table = Table(name, keys, [], None, [], False, DEFAULT_TABLE_SIZE, declaration.span)
        context.tables.key_copies[id(table)] = copies
        lower_table_actions(context, table, declaration, frame)
        _lower_properties(context, table, declaration)
        if declaration.entries is not None:
            table.entries = lower_entries(context, table, declaration)
            table.entries_const = declaration.entries_const
    assert context.tables.pipeline is not None
    context.tables.pipeline.tables.append(table)
    return table


def _lower_properties(context: Context, table: Table, declaration: ast.TableDeclaration) -> None:
    properties = declaration.properties
    if "size" in properties:
        given = properties["size"].expression
        size = control_plane_size(context, evaluate(context, given), f"the size of table '{table.name}'", given)
        table.size = size or DEFAULT_TABLE_SIZE
    if "support_timeout" in properties:
        flag = evaluate(context, properties["support_timeout"].expression)
        if not isinstance(flag, Const) or flag.type is not BOOL:
            context.refuse("'support_timeout' is true or false", properties["support_timeout"])
        table.support_timeout = bool(flag.value)
    if "implementation" in properties:
        _implementation(context, table, declaration, properties["implementation"])
    if "counters" in properties:
        _direct_resource(context, table, properties["counters"], "direct_counter")
        table.with_counters = True
    if "meters" in properties:
        meter = _direct_resource(context, table, properties["meters"], "direct_meter")
        table.direct_meter = meter.name


def _property_instance(
    context: Context, entry: ast.TableProperty, kinds: tuple[str, ...], default_name: str
) -> ExternValue:
    expression = entry.expression
    if isinstance(expression, ast.Call) and expression.kind == "constructor":
        name = next((text for note in entry.annotations if note.name == "name" for text in note.strings()), None)
        value: P4Value = instantiate(context, expression, name or default_name, None)
        if isinstance(value, ExternValue):
            value.annotations = entry.annotations
    else:
        value = evaluate(context, expression)
    if not isinstance(value, ExternValue) or value.kind not in kinds:
        listed = " or ".join(f"'{kind}'" for kind in kinds)
        found = value.kind if isinstance(value, ExternValue) else "something else"
        context.refuse(f"'{entry.name}' needs an instance of {listed}, not of '{found}'", entry)
    return value


def _direct_resource(context: Context, table: Table, entry: ast.TableProperty, kind: str) -> ExternValue:
    value = _property_instance(context, entry, (kind,), context.storage.unique(f"{table.name}.{entry.name}"))
    attached = value.table
    if attached is not None and attached is not table:
        context.refuse(f"'{value.name}' is attached to table '{attached.name}' already", entry)
    value.table = table
    return value


def _implementation(
    context: Context, table: Table, declaration: ast.TableDeclaration, entry: ast.TableProperty
) -> None:
    kinds = ("action_profile", "action_selector")
    value = _property_instance(context, entry, kinds, f"action_profile_{len(context.control_plane.table_sources)}")
    profile = value.profile
    assert profile is not None
    assert context.tables.pipeline is not None
    if not any(known is profile for known in context.tables.pipeline.profiles):
        context.tables.pipeline.profiles.append(profile)
    table.profile = profile
    if value.kind == "action_selector":
        inputs = [key.target for key in table.keys if key.match_kind == "selector"]
        if profile.selector_input is not None and profile.selector_input != inputs:
            context.refuse(f"tables that share selector '{profile.name}' have different selector keys", entry)
        profile.selector_input = inputs


def apply_table(
    context: Context,
    expression: ast.Call,
    hit: list[Stmt] | None = None,
    miss: list[Stmt] | None = None,
    branches: dict[str, list[Stmt]] | None = None,
    default: list[Stmt] | None = None,
) -> None:
    """table.apply(), with what follows a hit, a miss or an action."""
    callee = expression.callee
    assert isinstance(callee, ast.Member)
    value = evaluate(context, callee.base)
    assert isinstance(value, TableValue)
    table = table_of(context, value)
    context.emit(Apply(table, hit, miss, branches, default, expression.span))


def table_result(context: Context, call: ast.Call, member: str) -> Expr:
    """table.apply().hit or .miss as a value: kept in a variable."""
    result = context.scalar_temporary(BOOL)
    hit: list[Stmt] = [Assign(result, build.constant(member == "hit", BOOL), call.span)]
    miss: list[Stmt] = [Assign(result, build.constant(member == "miss", BOOL), call.span)]
    apply_table(context, call, hit, miss)
    return result
