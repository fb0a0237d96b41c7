"""Partly parsed requests and updates: parts that many switches receive stay bytes, to be parsed once.

On the wire a nested message is the same as a `bytes` field. The classes here are P4Runtime's with such fields
declared as `bytes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from finsy.proto import p4r
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from weft.switch.p4runtime.errors import invalid

_PACKAGE = "weft.encoded"


def _message_classes(**encoded: tuple[Descriptor, str, str]) -> dict[str, Any]:
    """Return message classes by name: copies of P4Runtime's messages, with other types for some fields.

    An empty type stands for bytes; otherwise it is the name of one of these classes.
    """
    file = descriptor_pb2.FileDescriptorProto(
        name="weft/encoded_messages.proto",
        package=_PACKAGE,
        syntax="proto3",
        dependency=[p4r.DESCRIPTOR.name],
    )
    for name, (original, fields, type_name) in encoded.items():
        message = file.message_type.add(name=name)
        source = descriptor_pb2.DescriptorProto()
        original.CopyToProto(source)
        for field in source.field:
            copied = message.field.add()
            copied.CopyFrom(field)
            copied.ClearField("oneof_index")
            if field.name in fields.split():
                copied.type_name = f".{_PACKAGE}.{type_name}"
                if not type_name:
                    if field.label == field.LABEL_OPTIONAL:
                        # In a separate oneof, a field's presence is known.
                        copied.oneof_index = len(message.oneof_decl)
                        message.oneof_decl.add(name=f"_{field.name}")
                    copied.type = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
                    copied.ClearField("type_name")
    pool = descriptor_pool.Default()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in encoded}


_CLASSES = _message_classes(
    WriteRequest=(p4r.WriteRequest.DESCRIPTOR, "updates", ""),
    PipelineRequest=(p4r.SetForwardingPipelineConfigRequest.DESCRIPTOR, "config", ""),
    TableEntry=(p4r.TableEntry.DESCRIPTOR, "match action", ""),
    Entity=(p4r.Entity.DESCRIPTOR, "table_entry", "TableEntry"),
    Update=(p4r.Update.DESCRIPTOR, "entity", "Entity"),
)
EncodedWriteRequest = _CLASSES["WriteRequest"]
"""A `p4.v1.WriteRequest` with `updates` as bytes."""
EncodedUpdate = _CLASSES["Update"]
"""A `p4.v1.Update` with match and action of a table entry as bytes."""
_EncodedPipelineRequest = _CLASSES["PipelineRequest"]


@dataclass(frozen=True, slots=True)
class PipelineRequest:
    """A `p4.v1.SetForwardingPipelineConfigRequest`.

    Attributes:
        head: the message; its config is ignored.
        config: the bytes of its config, one object for requests that share it; None if unset.

    """

    head: Any
    config: bytes | None

    @property
    def device_id(self) -> int:
        """The device that will run it."""
        number: int = self.head.device_id
        return number


def parse_pipeline_request(data: bytes, shared: bytes = b"") -> PipelineRequest:
    """Return a request to set a pipeline, from the concatenation of `data` and `shared`.

    `shared` is parsed once for all requests with the same object. Raises DecodeError if the bytes are invalid.
    """
    head = _parsed_pipeline_request(data)
    if not shared:
        return PipelineRequest(head, head.config if head.HasField("config") else None)
    config = _config_alone(shared)
    if config is None or head.HasField("config"):
        return parse_pipeline_request(data + shared)
    return PipelineRequest(head, config)


def _parsed_pipeline_request(data: bytes) -> Any:
    return partly_parsed(_EncodedPipelineRequest, p4r.SetForwardingPipelineConfigRequest, data)


@lru_cache(maxsize=4)
def _config_alone(data: bytes) -> bytes | None:
    """Return the config of a request without other fields; None if it has others."""
    request = _parsed_pipeline_request(data)
    is_alone = [field.name for field, _ in request.ListFields()] == ["config"]
    return request.config if is_alone else None


def partly_parsed(encoded: Any, message: Any, data: bytes) -> Any:
    """Parse a message of P4Runtime's class `message` as the class `encoded`, the same with some fields as bytes.

    Raises DecodeError if the bytes are invalid.
    """
    request = encoded.FromString(data)
    if request.ByteSize() != len(data):  # e.g. a repeated field, which must be merged
        request = encoded.FromString(message.FromString(data).SerializeToString())
    return request


def decode_update(encoded: bytes) -> p4r.Update:
    """Return an update. Raises RequestError if the bytes are invalid."""
    try:
        update: p4r.Update = p4r.Update.FromString(encoded)
    except DecodeError:
        raise invalid("the update is malformed") from None
    return update
