"""The messages of MLCommons Chakra's execution traces, schema 1.0 (chakra/schema/protobuf/et_def.proto).

They are declared here because a compiled .proto would tie Weft to one version of protobuf's compiler. Only fields that
Weft reads or writes are declared; protobuf keeps the others as unknown fields and skips them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "weft.chakra"
_Field = descriptor_pb2.FieldDescriptorProto
_SINGLE, _REPEATED = _Field.LABEL_OPTIONAL, _Field.LABEL_REPEATED


class NodeType(IntEnum):
    """Chakra's `NodeType`."""

    INVALID = 0
    METADATA = 1
    MEMORY_LOAD = 2
    MEMORY_STORE = 3
    COMPUTE = 4
    SEND = 5
    RECEIVE = 6
    COLLECTIVE = 7


class CollectiveType(IntEnum):
    """Chakra's `CollectiveCommType`."""

    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9


INTEGERS = {
    "int32_val": (7, _Field.TYPE_INT32),
    "int64_val": (9, _Field.TYPE_INT64),
    "uint32_val": (11, _Field.TYPE_UINT32),
    "uint64_val": (13, _Field.TYPE_UINT64),
    "sint32_val": (15, _Field.TYPE_SINT32),
    "sint64_val": (17, _Field.TYPE_SINT64),
    "fixed32_val": (19, _Field.TYPE_FIXED32),
    "fixed64_val": (21, _Field.TYPE_FIXED64),
    "sfixed32_val": (23, _Field.TYPE_SFIXED32),
    "sfixed64_val": (25, _Field.TYPE_SFIXED64),
}
"""Value types that hold an integer; writers of traces differ in the one they use."""
_VALUES = {
    **INTEGERS,
    "double_val": (3, _Field.TYPE_DOUBLE),
    "float_val": (5, _Field.TYPE_FLOAT),
    "bool_val": (27, _Field.TYPE_BOOL),
    "string_val": (29, _Field.TYPE_STRING),
}


def _add(message: Any, name: str, number: int, kind: int, label: int = _SINGLE, of: str = "") -> Any:
    field = message.field.add(name=name, number=number, type=kind, label=label)
    if of:
        field.type_name = f".{_PACKAGE}.{of}"
    return field


def _schema() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="weft/chakra.proto", package=_PACKAGE, syntax="proto3")
    numbers = file.message_type.add(name="Numbers")
    _add(numbers, "values", 1, _Field.TYPE_UINT64, _REPEATED)
    attribute = file.message_type.add(name="Attribute")
    attribute.oneof_decl.add(name="value")
    _add(attribute, "name", 1, _Field.TYPE_STRING)
    for name, (number, kind) in _VALUES.items():
        _add(attribute, name, number, kind).oneof_index = 0
    _add(attribute, "uint64_list", 14, _Field.TYPE_MESSAGE, of="Numbers").oneof_index = 0
    metadata = file.message_type.add(name="GlobalMetadata")
    _add(metadata, "version", 1, _Field.TYPE_STRING)
    _add(metadata, "attr", 2, _Field.TYPE_MESSAGE, _REPEATED, "Attribute")
    tensors = file.message_type.add(name="Tensors")
    _add(tensors, "values", 1, _Field.TYPE_STRING)
    node = file.message_type.add(name="Node")
    for name, number in (("id", 1), ("start_time_micros", 6), ("duration_micros", 7)):
        _add(node, name, number, _Field.TYPE_UINT64)
    _add(node, "name", 2, _Field.TYPE_STRING)
    # An enumeration on the wire; declared as a number, so that errors can name unknown values.
    _add(node, "type", 3, _Field.TYPE_INT32)
    for name, number in (("ctrl_deps", 4), ("data_deps", 5)):
        _add(node, name, number, _Field.TYPE_UINT64, _REPEATED)
    _add(node, "inputs", 8, _Field.TYPE_MESSAGE, of="Tensors")
    _add(node, "attr", 10, _Field.TYPE_MESSAGE, _REPEATED, "Attribute")
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_schema())


def _class(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


Attribute: Any = _class("Attribute")
GlobalMetadata: Any = _class("GlobalMetadata")
Node: Any = _class("Node")
