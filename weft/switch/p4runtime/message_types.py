"""Types of protobuf messages that no installed package has, made of their field numbers."""

from __future__ import annotations

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import Message


def message_type(file: FileDescriptorProto, name: str) -> type[Message]:
    """Return the type of a name that a file describes.

    It is in a pool of its own, because a controller in this process may know the original.
    """
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    return made
