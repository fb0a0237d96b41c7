"""Loads a BMv2 JSON document, section by section, in the order in which sections refer to each other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from weft.cache import collector_paused
from weft.switch.bmv2json.expressions import Constant, FieldRef, HeaderRef, Kind
from weft.switch.bmv2json.model import (
    Calculation,
    Checksum,
    CounterArray,
    FieldList,
    MeterArray,
    Payload,
    Program,
    RegisterArray,
)
from weft.switch.bmv2json.model_parsers import ValueSet
from weft.switch.bmv2json.model_pipelines import Action, ActionParameter, Pipeline
from weft.switch.bmv2json.node import Bmv2JsonError, Node
from weft.switch.bmv2json.read_expressions import ExpressionReader, read_primitive
from weft.switch.bmv2json.read_headers import read_headers
from weft.switch.bmv2json.read_parsers import read_deparser, read_parser
from weft.switch.bmv2json.read_pipelines import read_pipeline
from weft.switch.bmv2json.scope import MAX_ARRAY_SIZE, Scope, frozen, read_named, width

SUPPORTED_MAJOR_VERSION = 2
MAX_DOCUMENT_BYTES = 256 << 20
"""Most bytes of a file."""


def load_program(document: str | bytes) -> Program:
    """Return the program in a BMv2 JSON document.

    Raises Bmv2JsonError, with the path in the document, if it is invalid.
    """
    data = document.encode() if isinstance(document, str) else document
    try:
        with collector_paused():
            return _read_program(Node(_parse(data)), hashlib.sha256(data).hexdigest())
    except RecursionError:
        raise Bmv2JsonError("the document is nested too deeply", place="$") from None


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise Bmv2JsonError(f"the document is not UTF-8 text: {error}", place="$") from None
    except ValueError as error:
        raise Bmv2JsonError(f"the document is not JSON: {error}", place="$") from None


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON value")


def _read_program(document: Node, content_hash: str) -> Program:
    version, compiler = _meta(document)
    for required in ("header_types", "headers", "parsers", "deparsers", "actions", "pipelines"):
        document[required].items()
    scope = Scope()
    read_headers(scope, document)
    enums = frozen({node["name"].string(): _numbered(node["entries"]) for node in document.array("enums")})
    errors_node = document.optional("errors")
    errors = frozen({}) if errors_node is None else _numbered(errors_node)
    scope.value_sets = read_named(document.array("parse_vsets"), "parser value set", _value_set)
    scope.register_arrays = read_named(document.array("register_arrays"), "register array", _register_array)
    scope.counter_arrays = read_named(document.array("counter_arrays"), "counter array", _counter_array)
    scope.meter_arrays = read_named(
        document.array("meter_arrays"), "meter array", lambda node: _meter_array(scope, node)
    )
    scope.calculations = read_named(
        document.array("calculations"), "calculation", lambda node: _calculation(scope, node)
    )
    scope.field_lists = _field_lists(scope, document.array("field_lists"))
    scope.learn_lists = _field_lists(scope, document.array("learn_lists"))
    if document.array("extern_instances"):
        document["extern_instances"].fail("extern instances are not supported")
    scope.actions = _actions(scope, document["actions"].items())
    pipelines = read_named(document.array("pipelines"), "pipeline", lambda node: read_pipeline(scope, node))
    _check_bindings(document, scope, pipelines)
    source = document.optional("program")
    return Program(
        version=version,
        compiler=compiler,
        content_hash=content_hash,
        header_types=scope.header_types,
        headers=scope.headers,
        header_stacks=scope.header_stacks,
        header_unions=scope.header_unions,
        header_union_stacks=scope.header_union_stacks,
        errors=errors,
        enums=enums,
        parsers=read_named(document.array("parsers"), "parser", lambda node: read_parser(scope, node)),
        value_sets=scope.value_sets,
        deparsers=read_named(document.array("deparsers"), "deparser", lambda node: read_deparser(scope, node)),
        counter_arrays=scope.counter_arrays,
        meter_arrays=scope.meter_arrays,
        register_arrays=scope.register_arrays,
        actions=scope.actions,
        pipelines=pipelines,
        calculations=scope.calculations,
        checksums=read_named(document.array("checksums"), "checksum", lambda node: _checksum(scope, node)),
        field_lists=scope.field_lists,
        learn_lists=scope.learn_lists,
        field_aliases=frozen(_field_aliases(scope, document)),
        source=source.value if source is not None and isinstance(source.value, str) else "",
    )


def _meta(document: Node) -> tuple[tuple[int, int], str]:
    meta = document.optional("__meta__")
    if meta is None:
        return (SUPPORTED_MAJOR_VERSION, 0), ""
    major_node, minor_node = meta["version"].items(2)
    major, minor = major_node.integer(), minor_node.integer()
    if major != SUPPORTED_MAJOR_VERSION:
        major_node.fail(f"format version {major}.{minor} is not supported", valid="2.x")
    compiler = meta.optional("compiler")
    return (major, minor), "" if compiler is None else compiler.string()


def _numbered(node: Node) -> Mapping[str, int]:
    numbered: dict[str, int] = {}
    for entry in node.items():
        name_node, number_node = entry.items(2)
        numbered[name_node.string()] = number_node.integer(0, 2**31 - 2)
    return frozen(numbered)


def _value_set(node: Node) -> ValueSet:
    return ValueSet(node["name"].string(), node["id"].integer(), width(node["compressed_bitwidth"]))


def _register_array(node: Node) -> RegisterArray:
    return RegisterArray(
        node["name"].string(),
        node["id"].integer(),
        node["size"].integer(0, MAX_ARRAY_SIZE),
        width(node["bitwidth"]),
    )


def _array_size(node: Node, is_direct: bool) -> int:
    # a direct array has one cell for each entry, so its size, if given, is ignored
    return 0 if is_direct else node["size"].integer(0, MAX_ARRAY_SIZE)


def _binding(node: Node, is_direct: bool) -> str | None:
    return node["binding"].string() if is_direct else None


def _counter_array(node: Node) -> CounterArray:
    is_direct = node.flag("is_direct")
    return CounterArray(
        node["name"].string(), node["id"].integer(), _array_size(node, is_direct), _binding(node, is_direct)
    )


def _meter_array(scope: Scope, node: Node) -> MeterArray:
    is_direct = node.flag("is_direct")
    return MeterArray(
        name=node["name"].string(),
        id=node["id"].integer(),
        size=_array_size(node, is_direct),
        rate_count=node["rate_count"].integer(2, 2),
        counts_bytes=node["type"].one_of(("bytes", "packets")) == "bytes",
        table=_binding(node, is_direct),
        result=scope.field_ref(node["result_target"]) if is_direct else None,
    )


def _calculation(scope: Scope, node: Node) -> Calculation:
    return Calculation(
        node["name"].string(),
        node["id"].integer(),
        node["algo"].string(),
        tuple(_calculation_input(scope, each) for each in node["input"].items()),
    )


def _calculation_input(scope: Scope, node: Node) -> FieldRef | Constant | HeaderRef | Payload:
    match node["type"].one_of(("field", "hexstr", "header", "payload")):
        case "field":
            return scope.field_ref(node["value"])
        case "header":
            return HeaderRef(node["value"].name_in(scope.headers, "header"))
        case "payload":
            return Payload()
    width_bits = width(node["bitwidth"])
    value = node["value"].hexstr()
    if value >= 1 << width_bits:
        node["value"].fail(f"{node['value'].value} does not fit {width_bits} bits")
    return Constant(value % (1 << width_bits), width_bits)


def _field_lists(scope: Scope, nodes: list[Node]) -> Mapping[int, FieldList]:
    lists: dict[int, FieldList] = {}
    reader = ExpressionReader(scope)
    for node in nodes:
        number = node["id"].integer()
        if number in lists:
            node["id"].fail(f"duplicate list id {number}")
        elements = tuple(reader.read_kind(element, Kind.DATA) for element in node["elements"].items())
        lists[number] = FieldList(node["name"].string(), number, elements)
    return MappingProxyType(lists)


def _actions(scope: Scope, nodes: list[Node]) -> Mapping[int, Action]:
    actions: dict[int, Action] = {}
    for node in nodes:
        action = _action(scope, node)
        if action.id in actions:
            node["id"].fail(f"duplicate action id {action.id}")
        actions[action.id] = action
    return MappingProxyType(actions)


def _action(scope: Scope, node: Node) -> Action:
    parameters = tuple(
        ActionParameter(each["name"].string(), width(each["bitwidth"])) for each in node.array("runtime_data")
    )
    calls = node["primitives"].items()
    reader = ExpressionReader(scope, parameters)
    return Action(
        node["name"].string(),
        node["id"].integer(),
        parameters,
        tuple(read_primitive(scope, call, reader, len(calls)) for call in calls),
    )


def _checksum(scope: Scope, node: Node) -> Checksum:
    node["type"].one_of(("generic",))
    condition = node.optional("if_cond")
    return Checksum(
        name=node["name"].string(),
        id=node["id"].integer(),
        target=scope.field_ref(node["target"]),
        calculation=node["calculation"].name_in(scope.calculations, "calculation"),
        verify=node.flag("verify", default=True),
        update=node.flag("update", default=True),
        condition=None if condition is None else ExpressionReader(scope).read_kind(condition, Kind.BOOL),
    )


def _field_aliases(scope: Scope, document: Node) -> dict[str, FieldRef]:
    aliases = {}
    for node in document.array("field_aliases"):
        name_node, target_node = node.items(2)
        aliases[name_node.string()] = scope.field_ref(target_node)
    return aliases


def _check_bindings(document: Node, scope: Scope, pipelines: Mapping[str, Pipeline]) -> None:
    """Check that names of tables and action profiles are unique over pipelines, and that direct counters and meters
    belong to existing tables.
    """
    tables: set[str] = set()
    profiles: set[str] = set()
    for name, pipeline in pipelines.items():
        for what, own, known in (
            ("table", {table.name for table in pipeline.tables}, tables),
            ("action profile", set(pipeline.action_profiles), profiles),
        ):
            for twice in sorted(own & known):
                document["pipelines"].fail(f"{what} {twice!r} of {name!r} stands in another pipeline, too")
            known |= own
    for section, arrays in (("counter_arrays", scope.counter_arrays), ("meter_arrays", scope.meter_arrays)):
        for array in arrays.values():
            if array.table is not None and array.table not in tables:
                document[section].fail(f"{array.name!r} is bound to unknown table {array.table!r}")
