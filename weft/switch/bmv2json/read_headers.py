"""Reads header types, headers, stacks and unions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from weft.switch.bmv2json.model_headers import (
    Field,
    Header,
    HeaderStack,
    HeaderType,
    HeaderUnion,
    HeaderUnionStack,
    HeaderUnionType,
)
from weft.switch.bmv2json.node import Node
from weft.switch.bmv2json.scope import MAX_WIDTH_BITS, Scope, read_named, width

_T = TypeVar("_T", Header, HeaderUnion)


def read_headers(scope: Scope, document: Node) -> None:
    """Fill the scope from the header sections of the document."""
    scope.header_types = read_named(document.array("header_types"), "header type", _header_type)
    scope.headers = read_named(document.array("headers"), "header", lambda node: _header(scope, node))
    scope.header_stacks = read_named(document.array("header_stacks"), "header stack", lambda node: _stack(scope, node))
    scope.union_types = read_named(
        document.array("header_union_types"), "header union type", lambda node: _union_type(scope, node)
    )
    scope.header_unions = read_named(document.array("header_unions"), "header union", lambda node: _union(scope, node))
    scope.header_union_stacks = read_named(
        document.array("header_union_stacks"), "header union stack", lambda node: _union_stack(scope, node)
    )


def _header_type(node: Node) -> HeaderType:
    name = node["name"].string()
    if node.optional("length_exp") is not None:
        node["length_exp"].fail("length expressions of header types are not supported, 'extract_VL' is")
    fields: list[Field] = []
    variable: int | None = None
    for field_node in node["fields"].items():
        parts = field_node.items()
        if len(parts) not in (2, 3):
            field_node.fail("expected [name, width] or [name, width, signed]")
        field_name = parts[0].string()
        if field_name in {field.name for field in fields}:
            parts[0].fail(f"duplicate field {field_name!r}")
        signed = len(parts) == 3 and parts[2].boolean()
        if parts[1].value == "*":
            if variable is not None:
                parts[1].fail("a header type has at most one variable-length field")
            variable = len(fields)
            fields.append(Field(field_name, 0, signed, variable=True))
        else:
            fields.append(Field(field_name, width(parts[1]), signed))
    if variable is not None:
        fields[variable] = _variable_field(node, fields, fields[variable])
    return HeaderType(name, node["id"].integer(), tuple(fields))


def _variable_field(node: Node, fields: list[Field], field: Field) -> Field:
    max_length = node["max_length"]
    width_bits = max_length.integer(0, MAX_WIDTH_BITS // 8) * 8 - sum(each.width_bits for each in fields)
    if width_bits < 0:
        max_length.fail(f"{max_length.value} bytes do not hold the fields of fixed width")
    # the header's fixed part need not be whole bytes, only the extracted bits
    return Field(field.name, width_bits, field.signed, variable=True)


def _header(scope: Scope, node: Node) -> Header:
    header_type = scope.header_types[node["header_type"].name_in(scope.header_types, "header type")]
    metadata = node["metadata"].boolean()
    if not metadata and header_type.width_bits % 8:
        node.fail(f"header type {header_type.name!r} is {header_type.width_bits} bits wide, not whole bytes")
    return Header(node["name"].string(), node["id"].integer(), header_type, metadata)


def _stack(scope: Scope, node: Node) -> HeaderStack:
    header_type = scope.header_types[node["header_type"].name_in(scope.header_types, "header type")]
    members = _members(node["header_ids"], scope.headers, "header")
    for member, member_node in zip(members, node["header_ids"].items(), strict=True):
        if member.type is not header_type:
            member_node.fail(f"header {member.name!r} is a {member.type.name!r}, not a {header_type.name!r}")
    return HeaderStack(
        node["name"].string(), node["id"].integer(), header_type, tuple(member.name for member in members)
    )


def _union_type(scope: Scope, node: Node) -> HeaderUnionType:
    members = []
    for member in node["headers"].items():
        name_node, type_node = member.items(2)
        type_name = type_node.name_in(scope.header_types, "header type")
        members.append((name_node.string(), scope.header_types[type_name]))
    if not members:
        node["headers"].fail("a header union has at least one member")
    return HeaderUnionType(node["name"].string(), node["id"].integer(), tuple(members))


def _union(scope: Scope, node: Node) -> HeaderUnion:
    union_type = scope.union_types[node["union_type"].name_in(scope.union_types, "header union type")]
    ids_node = node["header_ids"]
    ids_node.items(len(union_type.members))
    members = _members(ids_node, scope.headers, "header")
    for member, (name, header_type) in zip(members, union_type.members, strict=True):
        if member.type is not header_type:
            ids_node.fail(f"header {member.name!r} does not have the type of union member {name!r}")
        if member.metadata:
            ids_node.fail(f"{member.name!r} is metadata; a header union's members are headers")
    return HeaderUnion(
        node["name"].string(), node["id"].integer(), union_type, tuple(member.name for member in members)
    )


def _union_stack(scope: Scope, node: Node) -> HeaderUnionStack:
    union_type = scope.union_types[node["union_type"].name_in(scope.union_types, "header union type")]
    unions = _members(node["header_union_ids"], scope.header_unions, "header union")
    for union in unions:
        if union.type is not union_type:
            node["header_union_ids"].fail(f"union {union.name!r} is not a {union_type.name!r}")
    return HeaderUnionStack(
        node["name"].string(), node["id"].integer(), union_type, tuple(union.name for union in unions)
    )


def _members(node: Node, declared: Mapping[str, _T], what: str) -> list[_T]:
    by_number = {item.id: item for item in declared.values()}
    members: list[_T] = []
    for each in node.items():
        number = each.integer()
        if number not in by_number:
            each.fail(f"unknown {what} id {number}")
        members.append(by_number[number])
    if not members:
        node.fail(f"expected at least one {what} id")
    return members
