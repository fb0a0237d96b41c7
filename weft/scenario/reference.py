"""The reference of scenarios, made from their sections: a page for people, a JSON Schema for editors."""

from __future__ import annotations

import itertools
import json
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticUndefined, core_schema

from weft.cache.files import read_text
from weft.paths import EXAMPLES_DIRECTORY, FABRIC_P4
from weft.quantities.definitions import Quantity
from weft.quantities.example import Example
from weft.quantities.section import meaning_of
from weft.quantities.units import shortest_rate, shortest_size, shortest_time
from weft.quantities.yaml_files import read_mapping, read_yaml
from weft.scenario.congestion_reference import congestion_reference, path_reference
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

Each example is valid next to the other keys of the section's whole scenario, or alone where there is none. Its paths
are those of this repository: `examples/…` from the root, others from the folder of the whole scenario.

`weft schema > scenario.schema.json` writes the JSON Schema, with which editors that have a YAML language server
complete and check keys. Name it in the first line of a scenario:

    # yaml-language-server: $schema=scenario.schema.json
"""

_EXAMPLE_LIMIT_BYTES = 1 << 16


def markdown() -> str:
    """Return the page."""
    lines = [_INTRODUCTION]
    for section in sections():
        lines += _section(section)
        if section.path == "transport":
            lines += [*congestion_reference(), *path_reference()]
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
    file = example_file(section.path)
    if file is not None and _is_whole_item(section.path):
        link = f"examples/{file.parent.name}/{file.name}"
        yield f"A whole scenario, [{link}](../{link}):"
        yield ""
        yield "```yaml"
        yield from _without_comments(file)
        yield "```"
        yield ""
    if section.presets:
        names = or_joined([f"`{name}`" for name in section.presets])
        yield f"In its place, or at its key `{PRESET_KEY}` together with keys that differ, may stand {names}."
        yield ""
    if section.keys:
        yield "| key | description | type and values | default | example |"
        yield "|---|---|---|---|---|"
        for key in section.keys:
            yield f"| {' | '.join(_cell(text) for text in _row(key))} |"
        yield ""


def _is_whole_item(path: str) -> bool:
    return _KIND.fullmatch(path) is not None


def _without_comments(file: Path) -> list[str]:
    """Return a scenario's lines without the comment that opens it, which says how to run it."""
    lines = read_text(file, _EXAMPLE_LIMIT_BYTES).rstrip().splitlines()
    return list(itertools.dropwhile(lambda line: line.startswith("#"), lines))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _row(key: Key) -> list[str]:
    annotation, metadata = key.field.annotation, key.field.metadata
    name = key.path.rpartition(".")[2]
    return [
        f"`{name}`",
        key.meaning,
        ": ".join(filter(None, [_type(annotation, metadata), _valid(annotation, metadata)])),
        _default(key),
        _shown(example_of(key)),
    ]


def _shown(example: Example) -> str:
    with_others = [f"`{each.removeprefix('.').replace('=', ': ', 1)}`" for each in example.needs]
    return f"`{example.value}`" + (f", with {' and '.join(with_others)}" if with_others else "")


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
        return ": ".join(filter(None, [f"{plural} {_valid(arguments[0])}", _valid(arguments[1])]))
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


def example_file(path: str) -> Path | None:
    """Return the shipped scenario with a section, given by its path; None without one.

    Kinds of topology and of traffic have one each; other sections, and kinds that come with a user's copy, have none.
    """
    found = _KIND.match(path)
    if found is None:
        return None
    folder = "topologies" if found["key"] == "fabric" else "traffic"
    file = EXAMPLES_DIRECTORY / folder / f"{found['kind']}.yaml"
    return file if file.is_file() else None


_KIND = re.compile(r"(?P<key>fabric|traffic)(?:\[\])? \((?P<kind>\w+)\)")


def example_of(key: Key) -> Example:
    """Return a key's example: its value in the shipped scenario of its kind, or its own, or one by type and default.

    Raises LookupError if none of these has one: the key's declaration needs an `Example`.
    """
    default = key.field.get_default()
    value = _value_in_file(key.path)
    if value is not None and value != _plain(default):
        return Example(_flow(value))
    for each in key.field.metadata:
        if isinstance(each, Example):
            return each
    made = _example(key.field.annotation, key.field.metadata, default)
    if made is None:
        raise LookupError(f"{key.path} needs an Example")
    return Example(made)


def _plain(default: Any) -> Any:
    return default.value if isinstance(default, Enum) else default


@cache
def _tree(file: Path) -> Any:
    return read_mapping(file, "scenario")


def _value_in_file(path: str) -> Any:
    """Return what the shipped scenario with a section has at a key; None without one, or if the key is left out."""
    file = example_file(path)
    if file is None:
        return None
    found = _tree(file)
    kind = _KIND.match(path)
    assert kind is not None
    if kind["key"] == "traffic":
        found = next(item for item in found["traffic"] if kind["kind"] in item)
    else:
        found = found["fabric"]
    for name in path[kind.end() :].removeprefix(".").split("."):
        found = found.get(name.removesuffix("[]")) if isinstance(found, Mapping) else None
        if name.endswith("[]") and isinstance(found, list):
            found = next(iter(found))
    return found


def _flow(value: Any) -> str:
    """Return a value as a file has it, in one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_flow(each)}' for name, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and not isinstance(read_yaml(value, "example"), str):
        return json.dumps(value)
    return str(value)


def _example(annotation: Any, metadata: Sequence[Any], default: Any = None) -> str | None:
    for each in metadata:
        if isinstance(each, Example):
            return each.value
        if isinstance(each, Quantity):
            return _example_of_quantity(each, default)
        if isinstance(each, Text):
            return each.example
        if isinstance(each, Name):
            return next((name for name in each.known() if name != default), None)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _example(arguments[0], arguments[1:], default)
    if origin in (Union, types.UnionType):
        return _example(arguments[0], (), default)
    if origin is Literal:
        return next((str(choice) for choice in reversed(arguments) if choice != default), str(default))
    if origin is list:
        item = _example(arguments[0], ())
        return None if item is None else f"[{item}]"
    if origin is dict:
        name, item = _example(arguments[0], ()), _example(arguments[1], ())
        return None if name is None or item is None else f"{{{name}: {item}}}"
    return str(not default).lower() if annotation is bool else None


def _example_of_quantity(quantity: Quantity, default: Any) -> str | None:
    """Return a quantity's own example, or twice the default: times and sizes differ too much for one of them all."""
    if quantity.lowest == quantity.highest:
        return quantity.write(quantity.lowest)
    has_default = isinstance(default, int | float) and default > 0
    is_own = quantity.example and (not has_default or quantity.unit not in ("ps", "B"))
    if is_own and not (has_default and quantity.read(_read(quantity.example)) == default):
        return quantity.example
    if not has_default:
        return None
    for value in (2 * default, default / 2):
        if quantity.holds(value):
            return quantity.write(type(default)(value)).replace(",", "")
    return None


def _read(text: str) -> Any:
    return read_yaml(text, "example")


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
