"""Reads a pipeline config's `p4_device_config`: a BMv2 JSON document, or one in PI's wrapper.

P4Runtime leaves the bytes to the target (§14.1). Most controllers of BMv2 send p4c's JSON; controllers based on
p4lang's tutorials wrap it in a P4DeviceConfig (PI, proto/p4/tmp/p4config.proto), which simple_switch_grpc also
accepts.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError, Message

from weft.switch.p4runtime.errors import invalid
from weft.switch.p4runtime.message_types import message_type

_Field = descriptor_pb2.FieldDescriptorProto


def document_of(device_config: bytes) -> bytes:
    """Return the BMv2 JSON document in a `p4_device_config`.

    RequestError INVALID_ARGUMENT if it is empty or an empty wrapper.
    """
    if not device_config:
        raise invalid("p4_device_config is empty (expected a BMv2 JSON document)")
    # A message cannot begin with a JSON object's brace: it would be field 15 with an end-group type.
    if device_config.lstrip()[:1] in (b"{", b""):
        return device_config
    wrapping: Any = _P4DeviceConfig()
    try:
        wrapping.ParseFromString(device_config)
    except DecodeError:
        return device_config  # reading the document will say what is wrong with it
    document: bytes = wrapping.device_data
    if document:
        return document
    if any(field.name in ("reassign", "extras") for field, _ in wrapping.ListFields()):
        raise invalid("p4_device_config is a P4DeviceConfig without device_data (expected a BMv2 JSON document)")
    return device_config


def _descriptor() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="p4config.proto", package="p4.tmp", syntax="proto3")
    message = file.message_type.add(name="P4DeviceConfig")
    extras = message.nested_type.add(name="Extras")
    entry = extras.nested_type.add(name="KvEntry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), start=1):
        entry.field.add(name=name, number=number, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    extras.field.add(
        name="kv",
        number=1,
        type=_Field.TYPE_MESSAGE,
        label=_Field.LABEL_REPEATED,
        type_name=".p4.tmp.P4DeviceConfig.Extras.KvEntry",
    )
    message.field.add(name="reassign", number=1, type=_Field.TYPE_BOOL, label=_Field.LABEL_OPTIONAL)
    message.field.add(
        name="extras",
        number=2,
        type=_Field.TYPE_MESSAGE,
        label=_Field.LABEL_OPTIONAL,
        type_name=".p4.tmp.P4DeviceConfig.Extras",
    )
    message.field.add(name="device_data", number=3, type=_Field.TYPE_BYTES, label=_Field.LABEL_OPTIONAL)
    return file


DESCRIPTOR = _descriptor()
"""The file that declares P4DeviceConfig."""
_P4DeviceConfig: type[Message] = message_type(DESCRIPTOR, "p4.tmp.P4DeviceConfig")
