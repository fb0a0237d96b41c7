"""The answer to a Read (P4Runtime §13), in messages of bounded size.

All entities must be from one moment (§13.3), during which no Write is served, but a controller may read the answer
slowly. So it waits in serialised form, which is much smaller than the messages. Arrays may be large: only their values
are copied at that moment, and messages are made from them as the controller reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

from finsy.proto import p4r

from weft.switch.p4runtime.errors import RequestError

MAX_ENTITIES = 256
MAX_BYTES = 1024 * 1024
"""Most bytes of a message, unless a single entity is larger; gRPC clients accept 4 MiB by default."""


class ReadAnswer:
    """Collects entities, then yields them in messages."""

    def __init__(self) -> None:
        self._parts: deque[bytes | Iterable[p4r.Entity]] = deque()

    def add(self, entities: Iterable[p4r.Entity]) -> None:
        """Append entities in their current state. If `entities` raises, the earlier ones are in the answer."""
        for message in _messages(entities):
            self._parts.append(message.SerializeToString())

    def add_later(self, entities: Iterable[p4r.Entity]) -> None:
        """Append entities that do not change, to be serialised when they are read."""
        self._parts.append(entities)

    def messages(self) -> Iterator[p4r.ReadResponse]:
        """Yield the messages in order, and forget them."""
        while self._parts:
            part = self._parts.popleft()
            if isinstance(part, bytes):
                yield p4r.ReadResponse.FromString(part)
            else:
                # A controller asks for single cells, of which many fit into a message.
                yield from _messages(chain(part, *self._arrays_next()))

    def _arrays_next(self) -> Iterator[Iterable[p4r.Entity]]:
        while self._parts and not isinstance(part := self._parts[0], bytes):
            self._parts.popleft()
            yield part


def _messages(entities: Iterable[p4r.Entity]) -> Iterator[p4r.ReadResponse]:
    """Yield bounded messages; if `entities` raises, first the messages of earlier entities."""
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
