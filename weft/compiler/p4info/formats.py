"""P4Info and lists of entries as files hold them."""

from __future__ import annotations

from enum import Enum

from finsy.proto import p4i, p4r
from google.protobuf import json_format, text_format


class Content(Enum):
    """A kind of message: the file and the name that protobuf knows it by."""

    P4INFO = "p4/config/v1/p4info.proto", "p4.config.v1.P4Info"
    ENTRIES = "p4/v1/p4runtime.proto", "p4.v1.WriteRequest"


def to_text(content: Content, message: p4i.P4Info | p4r.WriteRequest) -> str:
    """Protobuf's text format."""
    file, name = content.value
    header = f"# proto-file: {file}\n# proto-message: {name}\n\n"
    return header + str(text_format.MessageToString(message))


def binary_to_text(content: Content, data: bytes) -> str:
    """Protobuf's text format of a message in the binary one."""
    return to_text(content, _read(content, data))


def binary_to_json(content: Content, data: bytes) -> str:
    """Protobuf's JSON format of a message in the binary one."""
    return str(json_format.MessageToJson(_read(content, data))) + "\n"


def _read(content: Content, data: bytes) -> p4i.P4Info | p4r.WriteRequest:
    message = p4i.P4Info() if content is Content.P4INFO else p4r.WriteRequest()
    message.ParseFromString(data)
    return message
