"""The answer to a Read (P4Runtime §13), in messages of bounded size.

All of it must be of one moment (§13.3), while no Write is served, but a controller may take its time to read it. So it
waits in serialised form, which is a small part of what the messages themselves would occupy. Arrays of cells may be
large: of these only the values are taken at that moment, and messages are made of them as the controller reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from finsy.proto import p4r

from weft.switch.p4runtime.errors import RequestError

MAX_ENTITIES = 256
MAX_BYTES = 1024 * 1024
"""Of a message, unless a single entity is larger; gRPC clients take 4 MiB by default."""


class ReadAnswer:
    """Entities as they are found, and then the messages that hold them."""

    def __init__(self) -> None:
        self._parts: deque[bytes | Iterable[p4r.Entity]] = deque()

    def add(self, entities: Iterable[p4r.Entity]) -> None:
        """Append entities as they are now. What `entities` raises is raised when those before are in the answer."""
        for message in _messages(entities):
            self._parts.append(message.SerializeToString())

    def add_later(self, entities: Iterable[p4r.Entity]) -> None:
        """Append entities that do not change, to be taken when they are read."""
        self._parts.append(entities)

    def messages(self) -> Iterator[p4r.ReadResponse]:
        """The messages in order, each forgotten when it is taken."""
        while self._parts:
            part = self._parts.popleft()
            if isinstance(part, bytes):
                yield p4r.ReadResponse.FromString(part)
            else:
                yield from _messages(part)


def _messages(entities: Iterable[p4r.Entity]) -> Iterator[p4r.ReadResponse]:
    """Bounded messages; where `entities` raises, after the last of those before."""
    message, message_bytes = p4r.ReadResponse(), 0
    try:
        for entity in entities:
            size_bytes = entity.ByteSize()
            if message_bytes + size_bytes > MAX_BYTES or len(message.entities) >= MAX_ENTITIES:
                yield message
                message, message_bytes = p4r.ReadResponse(), 0
            message.entities.append(entity)
            message_bytes += size_bytes
    except RequestError:
        if message.entities:
            yield message
        raise
    if message.entities:
        yield message
