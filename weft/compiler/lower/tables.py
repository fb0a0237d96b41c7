"""Tables, their actions and entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.compiler import ast, keysets
from weft.compiler.check.statements import action_name
from weft.compiler.ir import (
    Action,
    ActionParameter,
    ActionProfile,
    Const,
    Entry,
    Expr,
    FieldRef,
    KeyField,
    ParamRef,
    Pipeline,
    Table,
    Valid,
    bit_width,
)
from weft.compiler.lower import build
from weft.compiler.lower.externs import Externs
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.key_names import key_name
from weft.compiler.lower.priorities import entry_priorities
from weft.compiler.lower.storage import scalar_type
from weft.compiler.lower.values import ActionValue, ExternValue, TableValue
from weft.compiler.subexpressions import walk
from weft.compiler.types import BOOL, BitsType, bits

DEFAULT_TABLE_SIZE = 1024
_CALLS_WITH_EFFECTS = ("function", "method", "table")


class Tables(Externs):
    """`table_of` lowers a table when it is applied."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.pipeline: Pipeline | None = None
        self._tables: dict[tuple[int, int], Table] = {}
        self._key_copies: dict[int, list[tuple[FieldRef, ast.Expression]]] = {}
        self._actions: dict[tuple[int, int, int], Action] = {}
        self._table_origin: dict[str, Table] = {}
        self.table_sources: dict[str, tuple[ast.TableDeclaration, Frame]] = {}
        self.action_sources: dict[int, tuple[ast.ActionDeclaration, Frame]] = {}
        self.table_actions: dict[str, list[tuple[Action, ast.ActionReference | None]]] = {}

    def instantiate(self, call: ast.Call, name: str, declaration: ast.InstanceDeclaration | None) -> Any:
        """An instance of an extern, control or parser."""
        raise NotImplementedError

    def table_of(self, value: TableValue) -> Table:
        """The lowered table; keys that are no fields are computed into variables now."""
        identity = (id(value.declaration), id(value.frame))
        table = self._tables.get(identity)
        if table is None:
            table = self._table(value)
            self._tables[identity] = table
        else:
            for copy, expression in self._key_copies[id(table)]:
                self.assign(copy, self._key_value(expression), expression.span)
        return table

    def _table(self, value: TableValue) -> Table:
        declaration = value.declaration
        frame: Frame = value.frame
        name = frame.name_of(declaration)
        if name in self.table_sources:
            self.diagnostics.error(
                f"table '{name}' would exist twice: its control is applied more than once", declaration.span
            )
        self.table_sources[name] = (declaration, frame)
        copies: list[tuple[FieldRef, ast.Expression]] = []
        with self.in_frame(frame):
            # Where a key has effects, each application evaluates all of them, in order.
            copied = any(_has_effects(key.expression) for key in declaration.keys)
            keys = [self._key(key, copies, copied=copied) for key in declaration.keys]
            self._one_prefix(keys, declaration)
            table = Table(name, keys, [], None, [], False, DEFAULT_TABLE_SIZE, declaration.span)
            self._key_copies[id(table)] = copies
            self._table_actions(table, declaration, frame)
            self._properties(table, declaration)
            if declaration.entries is not None:
                table.entries = self._entries(table, declaration)
                table.entries_const = declaration.entries_const
        assert self.pipeline is not None
        self.pipeline.tables.append(table)
        return table

    # ------------------------------------------------------------------------------ keys

    def _one_prefix(self, keys: list[KeyField], declaration: ast.TableDeclaration) -> None:
        kinds = [key.match_kind for key in keys]
        if kinds.count("lpm") > 1 and not {"ternary", "range", "optional"} & set(kinds):
            second = [key for key in declaration.keys if key.match_kind.name == "lpm"][1]
            self.diagnostics.error("BMv2 matches one lpm key a table", second.span)

    def _key_value(self, expression: ast.Expression) -> Expr:
        return self.scalar(expression)

    def _key(
        self, key: ast.KeyElement, copies: list[tuple[FieldRef, ast.Expression]], *, copied: bool
    ) -> KeyField:
        """A key; `copied`: through a variable, even if BMv2 could match the field itself."""
        expression = key.expression
        name = next(
            (text for entry in key.annotations if entry.name == "name" for text in entry.strings()), None
        )
        name = name or key_name(expression)
        if name is None:
            name = "key"
            self.diagnostics.error("this key needs a @name for the control plane", expression.span)
        with self.collecting() as steps:
            value, mask = self._key_value(expression), None
        self.out += steps
        # What is computed in steps must be so wherever the table is applied.
        copied = copied or bool(steps)
        if not copied:
            # Looked at once more, which does no harm: nothing in it has an effect.
            value, mask = self._field_of_key(expression, value)
        width = bit_width(value.type)
        if copied or not isinstance(value, FieldRef | Valid):
            copy = self.temporary(value.type, "key")
            self.assign(copy, value, expression.span)
            copies.append((copy, expression))
            value, mask = copy, None
        return KeyField(key.match_kind.name, value, mask, name, width)

    def _field_of_key(self, expression: ast.Expression, value: Expr) -> tuple[Expr, int | None]:
        """The field and the mask that BMv2 can match by itself; else the value as it is."""
        if isinstance(expression, ast.Slice) and not expression.plus:
            base = self.value(expression.base)
            if isinstance(base, FieldRef):
                high, low = self.bound(expression.high), self.bound(expression.low)
                if low == 0 and high - low + 1 == bit_width(base.type):
                    value = base
        if isinstance(expression, ast.Binary) and expression.operator == "&":
            mask, value = self._masked(expression, value)
            return value, mask
        return value, None

    def _masked(self, expression: ast.Binary, value: Expr) -> tuple[int | None, Expr]:
        """`field & constant` is BMv2's masked key."""
        left, right = self.scalar(expression.left), self.scalar(expression.right)
        if isinstance(right, Const) and isinstance(left, FieldRef):
            return int(right.value), left
        if isinstance(left, Const) and isinstance(right, FieldRef):
            return int(left.value), right
        return None, value

    # ------------------------------------------------------------------------------ actions

    def _table_actions(self, table: Table, declaration: ast.TableDeclaration, frame: Frame) -> None:
        listed: list[tuple[Action, ast.ActionReference | None]] = []
        for reference in declaration.actions:
            action = self._action_of(reference, frame)
            listed.append((action, reference))
            table.actions.append(action)
        default = declaration.properties.get("default_action")
        if default is None:
            no_action = next((action for action in table.actions if action.name == "NoAction"), None)
            if no_action is None:
                no_action = self._no_action(frame)
                if no_action is not None:
                    table.actions.append(no_action)
                    listed.append((no_action, None))
            table.default_action = no_action
        else:
            table.default_is_const = default.is_const
            table.default_action, table.default_arguments = self._chosen_action(
                declaration, listed, default.expression
            )
        self.table_actions[table.name] = listed

    def _no_action(self, frame: Frame) -> Action | None:
        declaration = self.no_action
        if declaration is None:
            return None
        return self._lower_action(ActionValue(declaration, self.globals), None)

    no_action: ast.ActionDeclaration | None = None

    def _action_of(self, reference: ast.ActionReference, frame: Frame) -> Action:
        declaration = reference.declaration
        call = reference.call
        value = frame.find(declaration)
        if not isinstance(value, ActionValue):
            value = ActionValue(declaration, self.globals)
        return self._lower_action(value, call if isinstance(call, ast.Call) and call.arguments else None)

    def _lower_action(self, value: ActionValue, bound: ast.Call | None) -> Action:
        declaration = value.declaration
        identity = (id(declaration), id(value.frame), id(bound) if bound is not None else 0)
        known = self._actions.get(identity)
        if known is not None:
            return known
        outer: Frame = value.frame
        action = Action(outer.name_of(declaration), [], [], declaration.span)
        self._actions[identity] = action
        frame = Frame(outer, outer.path)
        with self.collecting() as before:
            copy_out = self._bind_parameters(action, declaration, bound, frame)
        saved = self.in_action
        self.in_action = True
        try:
            with self.collecting() as body:
                self.out += before
                with self.copying(copy_out):
                    self.inline_body(frame, declaration.body.statements, declaration.span)
                self.copy_back(copy_out, declaration.span)
        finally:
            self.in_action = saved
        action.body = body
        self.program.actions.append(action)
        self.action_sources[id(action)] = (declaration, outer)
        return action

    def _bind_parameters(
        self, action: Action, declaration: ast.ActionDeclaration, bound: ast.Call | None, frame: Frame
    ) -> list[tuple[Any, Any]]:
        copy_out: list[tuple[Any, Any]] = []
        directed = [parameter for parameter in declaration.parameters if parameter.direction]
        arguments = [argument.expression for argument in bound.arguments] if bound is not None else []
        if directed and bound is not None:
            copy_out = self.bind_arguments(directed, arguments, frame, self._may_write_any, bound)
        for parameter in declaration.parameters:
            if parameter.direction:
                continue
            type_ = frame.type(parameter.type)
            scalar = scalar_type(type_)
            if scalar is None:
                self.refuse(f"the data of an action cannot be of type '{type_}' on BMv2", parameter)
            index = len(action.parameters)
            action.parameters.append(ActionParameter(parameter.external_name(), type_, bit_width(scalar)))
            if scalar is BOOL:
                frame.bind(parameter, build.convert(ParamRef(index, bits(1)), BOOL))
            else:
                frame.bind(parameter, ParamRef(index, scalar))
        return copy_out

    @staticmethod
    def _may_write_any(_: Any) -> bool:
        return True

    def _chosen_action(
        self,
        declaration: ast.TableDeclaration,
        listed: list[tuple[Action, ast.ActionReference | None]],
        expression: ast.Expression,
    ) -> tuple[Action | None, list[Const]]:
        """The action and action data of a default action or an entry."""
        name = action_name(expression)
        for action, reference in listed:
            if reference is not None and action_name(reference.call) == name:
                source = reference.declaration
                given = list(expression.arguments) if isinstance(expression, ast.Call) else []
                data = [parameter for parameter in source.parameters if not parameter.direction]
                if len(given) > len(data):
                    given = given[len(given) - len(data) :]
                return action, [
                    self._data(argument.expression, parameter)
                    for argument, parameter in zip(given, data, strict=True)
                ]
        self.refuse(f"'{name}' is not an action of table '{declaration.name}'", expression)

    def _data(self, expression: ast.Expression | None, parameter: ast.Parameter) -> Const:
        assert expression is not None
        value = self.value(expression)
        if not isinstance(value, Const):
            self.refuse("this argument must be known at compile time", expression)
        scalar = scalar_type(self.frame.type(parameter.type))
        if isinstance(scalar, BitsType):
            return build.constant(int(value.value), scalar)
        return value

    def action_label(self, table: TableValue, name: str) -> str:
        """The lowered action's name for a label of a switch."""
        for reference in table.declaration.actions:
            if action_name(reference.call) == name:
                return self._action_of(reference, table.frame).name
        return name

    # ------------------------------------------------------------------------------ properties

    def _properties(self, table: Table, declaration: ast.TableDeclaration) -> None:
        properties = declaration.properties
        if "size" in properties:
            given = properties["size"].expression
            size = self.control_plane_size(self.value(given), f"the size of table '{table.name}'", given)
            table.size = size or DEFAULT_TABLE_SIZE
        if "support_timeout" in properties:
            flag = self.value(properties["support_timeout"].expression)
            if not isinstance(flag, Const) or flag.type is not BOOL:
                self.refuse("'support_timeout' is true or false", properties["support_timeout"])
            table.support_timeout = bool(flag.value)
        if "implementation" in properties:
            self._implementation(table, declaration, properties["implementation"])
        if "counters" in properties:
            self._direct_resource(table, properties["counters"], "direct_counter")
            table.with_counters = True
        if "meters" in properties:
            meter = self._direct_resource(table, properties["meters"], "direct_meter")
            table.direct_meter = meter.name

    def _property_instance(
        self, entry: ast.TableProperty, kinds: tuple[str, ...], default_name: str
    ) -> ExternValue:
        expression = entry.expression
        if isinstance(expression, ast.Call) and expression.kind == "constructor":
            name = next(
                (text for note in entry.annotations if note.name == "name" for text in note.strings()), None
            )
            value = self.instantiate(expression, name or default_name, None)
            value.data["annotations"] = entry.annotations
        else:
            value = self.value(expression)
        if not isinstance(value, ExternValue) or value.kind not in kinds:
            listed = " or ".join(f"'{kind}'" for kind in kinds)
            found = value.kind if isinstance(value, ExternValue) else "something else"
            self.refuse(f"'{entry.name}' needs an instance of {listed}, not of '{found}'", entry)
        return value

    def _direct_resource(self, table: Table, entry: ast.TableProperty, kind: str) -> ExternValue:
        value = self._property_instance(entry, (kind,), self.storage.unique(f"{table.name}.{entry.name}"))
        attached = value.data.get("table")
        if attached is not None and attached is not table:
            self.refuse(f"'{value.name}' is attached to table '{attached.name}' already", entry)
        value.data["table"] = table
        return value

    def _implementation(
        self, table: Table, declaration: ast.TableDeclaration, entry: ast.TableProperty
    ) -> None:
        kinds = ("action_profile", "action_selector")
        value = self._property_instance(entry, kinds, f"action_profile_{len(self.table_sources)}")
        profile: ActionProfile = value.data["profile"]
        assert self.pipeline is not None
        if not any(known is profile for known in self.pipeline.profiles):
            self.pipeline.profiles.append(profile)
        table.profile = profile
        if value.kind == "action_selector":
            inputs = [key.target for key in table.keys if key.match_kind == "selector"]
            if profile.selector_input is not None and profile.selector_input != inputs:
                self.refuse(
                    f"tables that share selector '{profile.name}' have different selector keys", entry
                )
            profile.selector_input = inputs

    # ------------------------------------------------------------------------------ entries

    def _entries(self, table: Table, declaration: ast.TableDeclaration) -> list[Entry]:
        assert declaration.entries is not None
        entries: list[Entry] = []
        matchable = [key for key in table.keys if key.match_kind != "selector"]
        priorities = entry_priorities(declaration, self.diagnostics)
        for entry, priority in zip(declaration.entries, priorities, strict=True):
            keyset = entry.keyset
            elements = (
                keyset.elements if isinstance(keyset, ast.KeysetTuple | ast.ListExpression) else [keyset]
            )
            if len(elements) == 1 and isinstance(elements[0], ast.DefaultExpression):
                keys: list[object] = [None] * len(matchable)
            else:
                keys = [self.keyset_value(element) for element in elements]
            self._check_entry_key(matchable, keys, elements)
            action, arguments = self._chosen_action(declaration, self.table_actions[table.name], entry.action)
            assert action is not None
            is_const = entry.is_const or declaration.entries_const
            entries.append(
                Entry(keys, action, arguments, priority.bmv2, priority.control, is_const, entry.span)
            )
        self._check_duplicates(matchable, entries)
        return entries

    def _check_entry_key(
        self, keys: list[KeyField], values: list[object], elements: Sequence[ast.Expression]
    ) -> None:
        """Each value has a form that its key's match kind takes (specification, section 14.2.1.4)."""
        for key, value, element in zip(keys, values, elements, strict=False):
            form = keysets.form(value)
            if form not in keysets.FORMS.get(key.match_kind, keysets.FORM_NAMES):
                name = keysets.FORM_NAMES[form]
                self.diagnostics.error(
                    f"a key that is matched as {key.match_kind} takes no {name}", element.span
                )
            elif key.match_kind == "lpm" and not keysets.is_prefix(
                keysets.value_and_mask(value, key.width)[1], key.width
            ):
                self.diagnostics.error(f"the mask is no prefix of the key's {key.width} bits", element.span)

    def _check_duplicates(self, keys: list[KeyField], entries: list[Entry]) -> None:
        prioritised = any(key.match_kind in ("ternary", "range", "optional") for key in keys)
        seen: dict[object, Entry] = {}
        for entry in entries:
            values = zip(entry.keys, keys, strict=True)
            key = tuple(keysets.canonical(value, field.match_kind, field.width) for value, field in values)
            first = seen.setdefault((key, entry.priority if prioritised else 0), entry)
            if first is not entry:
                message = self.diagnostics.error("an earlier entry has the same key", entry.span)
                message.note("the earlier entry is here", first.span)

    def keyset_value(self, element: ast.Expression) -> object:
        """None for any value, an int, ("mask", value, mask) or ("range", low, high)."""
        if isinstance(element, ast.DefaultExpression):
            return None
        if isinstance(element, ast.Binary) and element.operator in ("&&&", ".."):
            left, right = self.value(element.left), self.value(element.right)
            if not isinstance(left, Const) or not isinstance(right, Const):
                self.refuse("a key set must be known at compile time", element)
            return ("mask" if element.operator == "&&&" else "range", int(left.value), int(right.value))
        value = self.value(element)
        if not isinstance(value, Const):
            self.refuse("a key set must be known at compile time", element)
        return int(value.value)


def _has_effects(expression: ast.Expression) -> bool:
    return any(isinstance(part, ast.Call) and part.kind in _CALLS_WITH_EFFECTS for part in walk(expression))
