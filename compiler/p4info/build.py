"""The P4Info message of a lowered program (P4Runtime specification, section 6)."""

from __future__ import annotations

from typing import Any

from finsy.proto import p4i as p4info_pb2

from compiler import ast
from compiler.check.scope import choices
from compiler.diagnostics import Diagnostics
from compiler.ir import Action, Table
from compiler.lower.program import ProgramLowering
from compiler.lower.values import ActionValue, ExternValue
from compiler.p4info.annotations import add_annotations, add_documentation, wanted_id
from compiler.p4info.ids import IdAllocator, IdConflict, Prefix, field_ids
from compiler.p4info.types import TypeSpecs, annotations_of, control_plane_width, type_name
from compiler.source import Span
from compiler.types import (
    ERROR,
    BitsType,
    EnumType,
    ExternType,
    SetType,
    StructType,
    Type,
    strip_new,
)
from compiler.warnings.kinds import Kind

ARCHITECTURE = "v1model"
_MATCH_TYPES: dict[str, Any] = {"exact": 2, "lpm": 3, "ternary": 4, "range": 5, "optional": 6}
_COUNTER_UNITS: dict[str, Any] = {"bytes": 1, "packets": 2, "packets_and_bytes": 3}
_METER_UNITS: dict[str, Any] = {"bytes": 1, "packets": 2}
_EXTERN_PREFIXES = {
    "counter": Prefix.COUNTER,
    "direct_counter": Prefix.DIRECT_COUNTER,
    "meter": Prefix.METER,
    "direct_meter": Prefix.DIRECT_METER,
    "register": Prefix.REGISTER,
    "action_profile": Prefix.ACTION_PROFILE,
    "action_selector": Prefix.ACTION_PROFILE,
}


_PROFILE_ANNOTATIONS = ("max_group_size", "selector_size_semantics", "max_member_weight")


def is_hidden(annotations: ast.Annotations) -> bool:
    """@hidden objects are not the control plane's business."""
    return any(annotation.name == "hidden" for annotation in annotations)


class P4InfoBuilder:
    """Builds the message from what the lowering found."""

    def __init__(self, lowering: ProgramLowering, diagnostics: Diagnostics) -> None:
        self.lowering = lowering
        self.diagnostics = diagnostics
        self.ids = IdAllocator()
        self.info = p4info_pb2.P4Info()
        self.types = TypeSpecs(self.info.type_info, lowering.program.errors)
        self.tables = [
            table for pipeline in lowering.program.pipelines for table in pipeline.tables if not table.hidden
        ]
        self.actions = self._collect_actions()
        self.controller_headers = [
            declaration
            for declaration in lowering.tree.declarations
            if isinstance(declaration, ast.StructDeclaration)
            and declaration.kind == "header"
            and declaration.annotation("controller_header") is not None
        ]

    def build(self) -> Any:
        """The P4Info message. Errors are in the diagnostics."""
        self._announce()
        self.info.pkg_info.arch = ARCHITECTURE
        self._package()
        for table in self.tables:
            self._table(table)
        for name, (declaration, _) in self.actions.items():
            self._action(name, declaration)
        for value in self.lowering.externs:
            self._extern(value)
        self._value_sets()
        self._digests()
        for header in self.controller_headers:
            self._controller_header(header)
        if self.lowering.extern_functions:
            # As p4c does: empty type information where something could have had a type.
            self.info.type_info.SetInParent()
        return self.info

    # ------------------------------------------------------------------------------ names

    def _collect_actions(self) -> dict[str, tuple[ast.ActionDeclaration, Any]]:
        actions: dict[str, tuple[ast.ActionDeclaration, Any]] = {}
        for table in self.tables:
            for action in table.actions:
                declaration, frame = self.lowering.action_sources[id(action)]
                known, _ = actions.setdefault(action.name, (declaration, frame))
                if known is not declaration:
                    self.diagnostics.error(
                        f"two actions have the control-plane name '{action.name}'", declaration.span
                    ).note("the other one", known.span)
        called: list[ActionValue] = self.lowering.called_actions
        for value in called:
            actions.setdefault(value.frame.name_of(value.declaration), (value.declaration, value.frame))
        return {name: entry for name, entry in actions.items() if not is_hidden(entry[0].annotations)}

    def _add(self, prefix: Prefix, name: str, annotations: ast.Annotations, span: Span | None) -> None:
        try:
            self.ids.add(prefix, name, wanted_id(annotations))
        except IdConflict as conflict:
            self.diagnostics.error(str(conflict), span)
            self.ids.add(prefix, name)

    def _announce(self) -> None:
        for table in self.tables:
            declaration, _ = self.lowering.table_sources[table.name]
            self._add(Prefix.TABLE, table.name, declaration.annotations, declaration.span)
        for name, (action, _) in self.actions.items():
            self._add(Prefix.ACTION, name, action.annotations, action.span)
        for value in self.lowering.externs:
            prefix = _EXTERN_PREFIXES[value.kind]
            if value.kind.startswith("direct") and "table" not in value.data:
                continue
            self._add(prefix, value.name, annotations_of(value.declaration), value.call.span)
        for name, (declaration_, _) in self.lowering.value_set_sources.items():
            self._add(Prefix.VALUE_SET, name, declaration_.annotations, declaration_.span)
        for header in self.controller_headers:
            self._add(Prefix.CONTROLLER_HEADER, header.external_name(), header.annotations, header.span)
        for name in self.lowering.digest_types:
            self.ids.add(Prefix.DIGEST, name)
        self.ids.assign()

    def _preamble(self, message: Any, prefix: Prefix, name: str, annotations: ast.Annotations) -> None:
        preamble = message.preamble
        preamble.id = self.ids.id(prefix, name)
        preamble.name = name
        preamble.alias = self.ids.alias(name)
        add_annotations(preamble, annotations)
        add_documentation(preamble, annotations)

    # ------------------------------------------------------------------------------ package

    def _package(self) -> None:
        main = next(
            declaration
            for declaration in self.lowering.tree.declarations
            if isinstance(declaration, ast.InstanceDeclaration) and declaration.name == "main"
        )
        package = self.info.pkg_info
        for annotation in main.annotations:
            if annotation.name not in ("pkginfo", "platform_property"):
                continue
            target = package if annotation.name == "pkginfo" else package.platform_properties
            tokens = annotation.tokens
            for index, token in enumerate(tokens):
                if token.kind == "=" and 0 < index < len(tokens) - 1:
                    self._package_field(target, tokens[index - 1], tokens[index + 1])
        add_annotations(package, main.annotations, skip=["pkginfo", "platform_property"])
        add_documentation(package, main.annotations)

    def _package_field(self, target: Any, name: Any, value: Any) -> None:
        if name.text not in target.DESCRIPTOR.fields_by_name:
            self.diagnostics.warning(f"unknown key '{name.text}' is ignored", name, Kind.IGNORE)
        elif value.kind == "text":
            setattr(target, name.text, ast.unquote(value.text))
        else:
            setattr(target, name.text, ast.parse_integer(value.text)[0])

    # ------------------------------------------------------------------------------ tables

    def _table(self, table: Table) -> None:
        declaration, frame = self.lowering.table_sources[table.name]
        if is_hidden(declaration.annotations):
            return
        self.info.type_info.SetInParent()
        message = self.info.tables.add()
        self._preamble(message, Prefix.TABLE, table.name, declaration.annotations)
        message.size = table.size
        self._match_fields(message, table, declaration, frame)
        for action, reference in self.lowering.table_actions[table.name]:
            self._action_reference(message, action, reference)
        self._default_action(message, table)
        if declaration.entries is not None and declaration.entries_const:
            message.is_const_table = True
        if declaration.entries:
            message.has_initial_entries = True
        if table.profile is not None:
            message.implementation_id = self.ids.id(Prefix.ACTION_PROFILE, table.profile.name)
        for value in self.lowering.externs:
            if value.data.get("table") is table:
                message.direct_resource_ids.append(self.ids.id(_EXTERN_PREFIXES[value.kind], value.name))
        if table.support_timeout:
            message.idle_timeout_behavior = p4info_pb2.Table.NOTIFY_CONTROL

    def _match_fields(
        self, message: Any, table: Table, declaration: ast.TableDeclaration, frame: Any
    ) -> None:
        ids = field_ids([wanted_id(key.annotations) for key in declaration.keys])
        for key, field, number in zip(declaration.keys, table.keys, ids, strict=True):
            if field.match_kind == "selector":
                continue
            match = message.match_fields.add()
            match.id = number
            match.name = field.name
            add_annotations(match, key.annotations)
            add_documentation(match, key.annotations)
            type_ = frame.type(key.expression.type)
            unsized = type_name(type_) is not None or type_ is ERROR
            match.bitwidth = control_plane_width(type_) or (0 if unsized else field.width)
            match.match_type = _MATCH_TYPES[field.match_kind]
            self._name_type(match, type_)

    def _name_type(self, message: Any, type_: Type) -> None:
        self.info.type_info.SetInParent()
        self.types.note(type_)
        name = type_name(type_)
        if name is not None:
            message.type_name.name = name

    def _action_reference(self, message: Any, action: Action, reference: ast.ActionReference | None) -> None:
        if action.name not in self.actions:
            return
        entry = message.action_refs.add()
        entry.id = self.ids.id(Prefix.ACTION, action.name)
        if reference is None:
            entry.annotations.append("@defaultonly")
            entry.scope = p4info_pb2.ActionRef.DEFAULT_ONLY
            return
        add_annotations(entry, reference.annotations)
        names = {annotation.name for annotation in reference.annotations}
        if "tableonly" in names and "defaultonly" in names:
            self.diagnostics.error("an action cannot be both @tableonly and @defaultonly", reference.span)
        if "tableonly" in names:
            entry.scope = p4info_pb2.ActionRef.TABLE_ONLY
        elif "defaultonly" in names:
            entry.scope = p4info_pb2.ActionRef.DEFAULT_ONLY

    def _default_action(self, message: Any, table: Table) -> None:
        action = table.default_action
        if action is None or action.name not in self.actions:
            return
        number = self.ids.id(Prefix.ACTION, action.name)
        if table.default_is_const:
            message.const_default_action_id = number
        message.initial_default_action.action_id = number
        declaration, _ = self.actions[action.name]
        ids = field_ids(
            [
                wanted_id(parameter.annotations)
                for parameter in declaration.parameters
                if not parameter.direction
            ]
        )
        for identifier, parameter, value in zip(
            ids, action.parameters, table.default_arguments, strict=False
        ):
            argument = message.initial_default_action.arguments.add()
            argument.param_id = identifier
            bytes_ = (parameter.width + 7) // 8
            argument.value = (int(value.value) & ((1 << parameter.width) - 1)).to_bytes(bytes_, "big")

    # ------------------------------------------------------------------------------ actions

    def _action(self, name: str, declaration: ast.ActionDeclaration) -> None:
        _, frame = self.actions[name]
        message = self.info.actions.add()
        self._preamble(message, Prefix.ACTION, name, declaration.annotations)
        # An action that is only called has no data: each call binds its parameters.
        in_table = any(action.name == name for table in self.tables for action in table.actions)
        parameters = [
            parameter for parameter in declaration.parameters if in_table and not parameter.direction
        ]
        ids = field_ids([wanted_id(parameter.annotations) for parameter in parameters])
        for parameter, number in zip(parameters, ids, strict=True):
            entry = message.params.add()
            entry.id = number
            entry.name = parameter.external_name()
            add_annotations(entry, parameter.annotations)
            add_documentation(entry, parameter.annotations)
            type_ = frame.type(parameter.type)
            if isinstance(type_, EnumType) and type_.underlying is None:
                entry.type_name.name = type_.name
                self.types.note(type_)
                continue
            entry.bitwidth = control_plane_width(type_)
            self._name_type(entry, type_)

    # ------------------------------------------------------------------------------ externs

    def _extern(self, value: ExternValue) -> None:
        message: Any
        if value.declaration is not None:
            self.info.type_info.SetInParent()
        if value.kind == "counter":
            message = self.info.counters.add()
            self._extern_preamble(message, value)
            message.spec.unit = _COUNTER_UNITS[self.lowering.unit(value)]
            self._indexed(message, value)
        elif value.kind == "meter":
            message = self.info.meters.add()
            self._extern_preamble(message, value)
            message.spec.unit = _METER_UNITS[self.lowering.unit(value)]
            self._indexed(message, value)
        elif value.kind == "register":
            message = self.info.registers.add()
            self._extern_preamble(message, value)
            self.types.fill(message.type_spec, value.data["element"])
            self._indexed(message, value)
        elif value.kind in ("direct_counter", "direct_meter"):
            self._direct(value)
        else:
            self._profile(value)

    def _extern_preamble(self, message: Any, value: ExternValue) -> None:
        self._preamble(message, _EXTERN_PREFIXES[value.kind], value.name, annotations_of(value.declaration))

    def _indexed(self, message: Any, value: ExternValue) -> None:
        message.size = int(value.arguments["size"].value)
        assert isinstance(value.type, ExternType)
        index_position = 1 if value.kind == "register" else 0
        if len(value.type.arguments) > index_position:
            index = value.type.arguments[index_position]
            self.types.note(index)
            name = type_name(index)
            if name is not None:
                message.index_type_name.name = name

    def _direct(self, value: ExternValue) -> None:
        table = value.data.get("table")
        if table is None:
            return
        counter = value.kind == "direct_counter"
        message: Any = self.info.direct_counters.add() if counter else self.info.direct_meters.add()
        self._extern_preamble(message, value)
        message.spec.unit = (_COUNTER_UNITS if counter else _METER_UNITS)[self.lowering.unit(value)]
        message.direct_table_id = self.ids.id(Prefix.TABLE, table.name)

    def _profile(self, value: ExternValue) -> None:
        annotations = value.data.get("annotations", annotations_of(value.declaration))
        message = self.info.action_profiles.add()
        plain = [annotation for annotation in annotations if annotation.name not in _PROFILE_ANNOTATIONS]
        self._preamble(message, Prefix.ACTION_PROFILE, value.name, plain)
        message.size = value.data["profile"].size
        message.with_selector = value.kind == "action_selector"
        if message.with_selector:
            self._selector_sizes(message, annotations)
        tables = sorted(table.name for table in self.tables if table.profile is value.data["profile"])
        message.table_ids.extend(self.ids.id(Prefix.TABLE, name) for name in tables)

    def _selector_sizes(self, message: Any, annotations: ast.Annotations) -> None:
        """@max_group_size, @selector_size_semantics and @max_member_weight (P4Runtime, section 6.4.4)."""
        given = {annotation.name: annotation for annotation in annotations}
        if "max_group_size" in given:
            message.max_group_size = given["max_group_size"].integers()[0]
        semantics = given.get("selector_size_semantics")
        members = semantics is not None and semantics.strings() == ["sum_of_members"]
        if members:
            message.sum_of_members.SetInParent()
            if "max_member_weight" in given:
                message.sum_of_members.max_member_weight = given["max_member_weight"].integers()[0]
        elif semantics is not None:
            message.sum_of_weights.SetInParent()

    # ------------------------------------------------------------------------------ the rest

    def _value_sets(self) -> None:
        for name, (declaration, frame) in self.lowering.value_set_sources.items():
            message = self.info.value_sets.add()
            self._preamble(message, Prefix.VALUE_SET, name, declaration.annotations)
            message.size = self.lowering.value_set_size(name)
            assert isinstance(declaration.type, SetType)
            element = frame.type(declaration.type.element)
            if isinstance(element, StructType):
                self._struct_matches(message, element)
            elif isinstance(element, BitsType):
                match = message.match.add()
                match.id = 1
                match.bitwidth = element.width
                match.match_type = _MATCH_TYPES["exact"]
            elif isinstance(element, EnumType) and element.underlying is not None:
                for index, member in enumerate(element.declaration.members):
                    match = message.match.add()
                    match.id = index + 1
                    match.name = member.external_name()
                    match.bitwidth = element.underlying.width
                    match.match_type = _MATCH_TYPES["exact"]

    def _struct_matches(self, message: Any, element: StructType) -> None:
        fields = element.declaration.fields
        ids = field_ids([wanted_id(field.annotations) for field in fields])
        for field, number in zip(fields, ids, strict=True):
            match = message.match.add()
            match.id = number
            match.name = field.external_name()
            match.bitwidth = control_plane_width(element.fields[field.name])
            annotation = field.annotation("match")
            kind = "".join(token.text for token in annotation.tokens) if annotation is not None else "exact"
            if kind not in _MATCH_TYPES:
                self.diagnostics.error(f"'{kind}' is not a match kind {choices(_MATCH_TYPES)}", field.span)
                continue
            if not isinstance(strip_new(element.fields[field.name]), BitsType):
                self.diagnostics.error(
                    "P4Runtime knows bit<…> fields only in a value set's struct, not "
                    f"'{element.fields[field.name]}'",
                    field.span,
                )
            match.match_type = _MATCH_TYPES[kind]
            add_annotations(match, field.annotations, skip=["match"])
            add_documentation(match, field.annotations)

    def _digests(self) -> None:
        for name, type_ in self.lowering.digest_types.items():
            message = self.info.digests.add()
            annotations = type_.declaration.annotations if isinstance(type_, StructType) else []
            self._preamble(message, Prefix.DIGEST, name, annotations)
            self.types.fill(message.type_spec, type_)

    def _controller_header(self, declaration: ast.StructDeclaration) -> None:
        annotation = declaration.annotation("controller_header")
        assert annotation is not None
        name = annotation.strings()[0] if annotation.strings() else declaration.name
        message = self.info.controller_packet_metadata.add()
        message.preamble.id = self.ids.id(Prefix.CONTROLLER_HEADER, declaration.external_name())
        message.preamble.name = name
        message.preamble.alias = name
        add_annotations(message.preamble, declaration.annotations)
        add_documentation(message.preamble, declaration.annotations)
        fields = controller_fields(declaration.fields, [], [])
        ids = field_ids([wanted_id(notes) for _, notes, _ in fields])
        for (path, notes, type_), number in zip(fields, ids, strict=True):
            entry = message.metadata.add()
            entry.id = number
            entry.name = path
            add_annotations(entry, notes)
            entry.bitwidth = control_plane_width(type_)
            self._name_type(entry, type_)


def controller_fields(
    fields: list[ast.Field], path: list[str], outer: ast.Annotations
) -> list[tuple[str, ast.Annotations, Type]]:
    """Name, annotations and type of a controller header's fields, nested structs flattened with dots."""
    flat: list[tuple[str, ast.Annotations, Type]] = []
    for field in fields:
        if is_hidden(field.annotations) or field.type is None:
            continue
        if isinstance(field.type, StructType):
            inner = field.type.declaration.fields
            flat += controller_fields(inner, [*path, field.name], [*outer, *field.annotations])
        else:
            name = field.external_name() if not path else ".".join([*path, field.name])
            flat.append((name, [*outer, *field.annotations], field.type))
    return flat


def build_p4info(lowering: ProgramLowering, diagnostics: Diagnostics) -> Any:
    """The P4Info message. Raises CompileError."""
    info = P4InfoBuilder(lowering, diagnostics).build()
    diagnostics.raise_if_errors()
    return info
