"""The reference of scenarios, made from their sections: a page for people, a JSON Schema for editors."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticUndefined, core_schema

from weft.paths import FABRIC_P4
from weft.quantities.definitions import Quantity
from weft.quantities.section import meaning_of
from weft.quantities.units import shortest_rate, shortest_size, shortest_time
from weft.scenario.congestion_reference import congestion_reference
from weft.scenario.model import Scenario
from weft.scenario.presets import PRESET_KEY
from weft.scenario.schema import Key, SectionOfKeys, sections
from weft.scenario.valid_values import or_joined
from weft.scenario.values import Name, PriorityClass, Text

_INTRODUCTION = """# Scenario reference

Every key of a scenario file, as `weft schema --markdown` writes it: do not edit this page. Keys that a file leaves out
have their defaults. An item of a list is written `[]`; `weft run FILE --set 'traffic[0].incast=h3'` sets any key from
the command line.

Quantities are a number and a unit: rates `100Gb/s` (`100Gbps` means the same), times `10us`, sizes `64KiB` (as in
nccl-tests, `64K` is 65,536 B). Rates and times need their unit; a bare size is bytes.

`weft schema > scenario.schema.json` writes the JSON Schema, with which editors that have a YAML language server
complete and check keys. Name it in the first line of a scenario:

    # yaml-language-server: $schema=scenario.schema.json
"""
# Texts that are no quantity and have no form of their own.
_EXAMPLES = {
    "p4": "mine.p4",
    "programs": "{p0l*: leaf.p4}",
    "entries": "{p0l*: leaf.json}",
    "commands": "{p0l*: leaf.txt}",
    "controller.parameters": "{threshold: 3}",
    "fabric.host_file": "nccl.xml",
    "observe.state_series": "['port_tx_bytes[0..7]']",
    "tenants.hosts": "[h0]",
    "fabric (cubes).shapes": "{long: [1, 1, 2]}",
    "fabric (file).path": "fabric.graphml",
    "fabric (network).path": "topology.json",
    "transport.congestion_control": "dcqcn",
    "transport.preset": "connectx",
    "transport.parameters": "{increase_timer: 55us}",
    "transport.classes": "{5: {congestion_control: dcqcn}}",
    "transport.classes.congestion_control": "dcqcn",
    "transport.classes.preset": "connectx",
    "transport.classes.parameters": "{increase_timer: 55us}",
    "transport.path": "flowlet",
    "transport.path_parameters": "{paths: 8}",
    "traffic[] (collective).tenant": "blue",
    "traffic[] (flow_list).flow_list": "flows.csv",
    "traffic[] (workload).workload.flow_sizes_file": "sizes.txt",
    "traffic[] (inference).inference.requests.file": "requests.csv",
    "traffic[] (model).routing.matrix": "routing.csv",
    "traffic[] (model).tenant": "blue",
    "traffic[] (pattern).parameters": "{bytes_per_pair: 65536}",
    "traffic[] (rdma).parameters": "{h0: {steps: 10}}",
    "traffic[] (replay).replay": "h0.pcap",
    "traffic[] (script).parameters": "{h0: {count: 10}}",
    "traffic[] (tcp).parameters": "{beta: 0.7}",
    "traffic[] (tcp).tcp[].parameters": "{beta: 0.7}",
    "traffic[] (together).together": "[{collective: allreduce, sizes: [1MiB]}]",
    "traffic[] (trace).groups": "groups.json",
    "traffic[] (trace).trace": "traces/",
    "traffic[] (training_step).tenant": "blue",
}


def markdown() -> str:
    """Return the page."""
    lines = [_INTRODUCTION]
    for section in sections():
        lines += _section(section)
        if section.path == "transport":
            lines += congestion_reference()
    return "\n".join(lines)


class _WithMeanings(GenerateJsonSchema):
    """Describes properties by the texts below their declarations."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        model = schema["cls"]
        for name, field in model.model_fields.items():
            if meaning := meaning_of(model, name):
                made["properties"][field.alias or name]["description"] = meaning
        return made


def json_schema() -> str:
    """Return the JSON Schema (2020-12) of a scenario file."""
    schema = Scenario.model_json_schema(by_alias=True, schema_generator=_WithMeanings)
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_for_editors(schema)}
    document["title"] = "A scenario of Weft"
    default_program = document["properties"]["p4"]
    default_program.pop("default", None)  # a path of the machine that wrote it
    return json.dumps(document, indent=1) + "\n"


def _section(section: SectionOfKeys) -> Iterator[str]:
    yield f"## {section.path or 'The scenario itself'}"
    yield ""
    yield " ".join((section.model.__doc__ or "").split())
    yield ""
    if section.presets:
        names = or_joined([f"`{name}`" for name in section.presets])
        yield f"In its place, or at its key `{PRESET_KEY}` together with keys that differ, may stand {names}."
        yield ""
    if section.keys:
        yield "| key | type | valid | default | example | |"
        yield "|---|---|---|---|---|---|"
        for key in section.keys:
            yield f"| {' | '.join(_cell(text) for text in _row(key))} |"
        yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _row(key: Key) -> list[str]:
    annotation, metadata = key.field.annotation, key.field.metadata
    name = key.path.rpartition(".")[2]
    return [
        f"`{name}`",
        _type(annotation, metadata),
        _valid(annotation, metadata),
        _default(key),
        f"`{example_of(key)}`",
        key.meaning,
    ]


def _type(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """Return `rate`, `list of text`, `number or mapping`."""
    for each in metadata:
        if isinstance(each, Quantity):
            return each.name.removeprefix("a ") + (f" ({each.unit})" if each.unit else "")
        if isinstance(each, Text):
            return "text"
        if isinstance(each, Name):
            return "choice"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0], arguments[1:])
    if origin in (Union, types.UnionType):
        return or_joined([_type(each) for each in arguments if each is not type(None)])
    if origin is Literal:
        return "choice"
    if origin is list:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return "mapping" if arguments[1] is Any else f"mapping of {_type(arguments[1])} by {_key(arguments[0])}"
    return {bool: "true or false", str: "text", Path: "path"}.get(annotation, "any")


def _valid(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    for each in metadata:
        if isinstance(each, Quantity):
            return each.range_text
        if isinstance(each, Text):
            return each.what
        if isinstance(each, Name):
            return each.valid("`{}`".format)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _valid(arguments[0], arguments[1:])
    if origin in (Union, types.UnionType):
        found = [_valid(each) for each in arguments if each is not type(None)]
        return " or ".join(dict.fromkeys(text for text in found if text))
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin is list:
        return _valid(arguments[0])
    if origin is dict and arguments[1] is not Any:
        plural = {"class": "classes"}.get(_key(arguments[0]), f"{_key(arguments[0])}s")
        return f"{plural} {_valid(arguments[0])}: {_valid(arguments[1])}"
    return ""


def _key(annotation: Any) -> str:
    """Return what a mapping's keys are called."""
    if annotation == PriorityClass:
        return "class"
    is_number = any(isinstance(each, Quantity) for each in getattr(annotation, "__metadata__", ()))
    return "number" if is_number else "name"


def _default(key: Key) -> str:
    default = key.field.default
    if default is PydanticUndefined:
        return "required"
    if default is None:
        return ""
    if default == FABRIC_P4:
        return "Weft's `fabric.p4`"
    return f"`{_written(default, key.field.annotation, key.field.metadata)}`"


def _written(value: Any, annotation: Any, metadata: Sequence[Any]) -> str:
    """Return a value as a file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum | str):
        return str(value)
    if isinstance(value, int | float):
        quantity = next(_quantities(annotation, metadata), None)
        return quantity.write(value) if quantity is not None else f"{value:g}"
    return json.dumps(value)


def _quantities(annotation: Any, metadata: Sequence[Any]) -> Iterator[Quantity]:
    yield from (each for each in metadata if isinstance(each, Quantity))
    for each in get_args(annotation):
        yield from _quantities(each, getattr(each, "__metadata__", ()))


def example_of(key: Key) -> str:
    """Return a key's example, as a file has it."""
    of_all_kinds = re.sub(r" \([^)]*\)", "", key.path)
    return _EXAMPLES.get(key.path) or _EXAMPLES.get(of_all_kinds) or _example(key.field.annotation, key.field.metadata)


def _example(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    for each in metadata:
        if isinstance(each, Quantity | Text):
            return each.example
        if isinstance(each, Name):
            return next(iter(each.known()))
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _example(arguments[0], arguments[1:])
    if origin in (Union, types.UnionType):
        return _example(arguments[0])
    if origin is Literal:
        return str(arguments[-1])
    if origin is list:
        return f"[{_example(arguments[0])}]"
    if origin is dict:
        is_name = _key(arguments[0]) == "name"
        return f"{{{_example(arguments[0]) if is_name else 3}: {_example(arguments[1])}}}"
    assert annotation is bool, f"an example of {annotation} stands in _EXAMPLES"
    return "true"


def _for_editors(schema: Any) -> Any:
    """Return a schema without pydantic's titles, its default quantities as people write them."""
    if isinstance(schema, list):
        return [_for_editors(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    write = _WRITERS.get(_unit_in(schema))
    if write is not None and isinstance(schema.get("default"), int):
        schema = {**schema, "default": write(schema["default"])}
    kept = {key: value for key, value in schema.items() if key != "x-unit" and not _is_title(key, value)}
    return {key: _for_editors(value) for key, value in kept.items()}


def _unit_in(schema: dict[str, Any]) -> str:
    """Return the unit of a quantity, or of one that may be left out."""
    units = [each.get("x-unit", "") for each in (schema, *schema.get("anyOf", ())) if isinstance(each, dict)]
    return str(max(units, key=len))


def _is_title(key: str, value: Any) -> bool:
    return key == "title" and isinstance(value, str)


_WRITERS = {"b/s": shortest_rate, "ps": shortest_time, "B": shortest_size}
