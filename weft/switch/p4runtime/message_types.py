"""Makes types of protobuf messages that no installed package has, from their field numbers."""

from __future__ import annotations

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import Message


def message_type(file: FileDescriptorProto, name: str) -> type[Message]:
    """Return the message type with this name in a file description.

    It is in a separate pool, because a controller in this process may have the original.
    """
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    return made
