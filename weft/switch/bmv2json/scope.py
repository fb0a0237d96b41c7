"""The declarations of a program, for resolving names, and helpers shared by all readers of sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, TypeVar

from weft.switch.bmv2json import model_headers
from weft.switch.bmv2json.expressions import VALID_FIELD, FieldRef
from weft.switch.bmv2json.model import Calculation, CounterArray, FieldList, MeterArray, RegisterArray
from weft.switch.bmv2json.model_parsers import ValueSet
from weft.switch.bmv2json.model_pipelines import Action
from weft.switch.bmv2json.node import Node, choices

MAX_WIDTH_BITS = 16384
"""Widest field, parameter, register cell or calculation constant."""
MAX_ARRAY_SIZE = 2**24
"""Most cells of one counter, meter or register array."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def id(self) -> int: ...


NamedT = TypeVar("NamedT", bound=_Named)
ValueT = TypeVar("ValueT")


@dataclass(slots=True)
class Scope:
    """Declarations, filled section by section while a document is loaded."""

    header_types: Mapping[str, model_headers.HeaderType] = field(default_factory=dict)
    headers: Mapping[str, model_headers.Header] = field(default_factory=dict)
    header_stacks: Mapping[str, model_headers.HeaderStack] = field(default_factory=dict)
    union_types: Mapping[str, model_headers.HeaderUnionType] = field(default_factory=dict)
    header_unions: Mapping[str, model_headers.HeaderUnion] = field(default_factory=dict)
    header_union_stacks: Mapping[str, model_headers.HeaderUnionStack] = field(default_factory=dict)
    value_sets: Mapping[str, ValueSet] = field(default_factory=dict)
    calculations: Mapping[str, Calculation] = field(default_factory=dict)
    counter_arrays: Mapping[str, CounterArray] = field(default_factory=dict)
    meter_arrays: Mapping[str, MeterArray] = field(default_factory=dict)
    register_arrays: Mapping[str, RegisterArray] = field(default_factory=dict)
    field_lists: Mapping[int, FieldList] = field(default_factory=dict)
    learn_lists: Mapping[int, FieldList] = field(default_factory=dict)
    actions: Mapping[int, Action] = field(default_factory=dict)
    _field_refs: dict[tuple[str, str], FieldRef] = field(default_factory=dict)

    def field_ref(self, node: Node) -> FieldRef:
        """Return the field named by a 2-tuple [header, field]; `$valid$` is allowed."""
        header_node, field_node = node.items(2)
        header = self.headers[header_node.name_in(self.headers, "header")]
        if field_node.value == VALID_FIELD:
            return FieldRef(header.name, VALID_FIELD, 1)
        found = type_field(header.type, field_node)
        reference = FieldRef(header.name, found.name, found.width_bits, found.signed)
        # A program refers to each field dozens of times.
        return self._field_refs.setdefault((header.name, found.name), reference)


def type_field(header_type: model_headers.HeaderType, node: Node) -> model_headers.Field:
    """The field of `header_type` that `node` names."""
    name = node.string()
    try:
        return header_type.field(name)
    except KeyError:
        valid = choices(each.name for each in header_type.fields)
        node.fail(f"unknown field {name!r} of header type {header_type.name!r}", valid=valid)


def frozen(mapping: dict[str, ValueT]) -> Mapping[str, ValueT]:
    """A read-only view."""
    return MappingProxyType(mapping)


def read_named(nodes: list[Node], what: str, read: Callable[[Node], NamedT]) -> Mapping[str, NamedT]:
    """Read every node; names and ids must be unique among them."""
    by_name: dict[str, NamedT] = {}
    ids: set[int] = set()
    for node in nodes:
        item = read(node)
        if item.name in by_name:
            node["name"].fail(f"duplicate {what} name {item.name!r}")
        if item.id in ids:
            node["id"].fail(f"duplicate {what} id {item.id}")
        by_name[item.name] = item
        ids.add(item.id)
    return frozen(by_name)


def by_id(node: Node, mapping: Mapping[int, ValueT], what: str) -> ValueT:
    """Return the object with the id in `node`."""
    number = node.integer()
    if number not in mapping:
        node.fail(f"unknown {what} id {number}", valid=choices(mapping))
    return mapping[number]


def width(node: Node) -> int:
    """A width in bits."""
    return node.integer(1, MAX_WIDTH_BITS)


def optional_string(node: Node, key: str) -> str | None:
    """Return the string attribute `key`, or None if it is absent or null."""
    found = node.optional(key)
    return None if found is None else found.string()
