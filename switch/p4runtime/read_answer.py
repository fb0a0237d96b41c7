"""The answer to a Read (P4Runtime §13), in messages of bounded size.

All of it must be of one moment (§13.3), while no Write is served, but a controller may take its time to read it. So it
waits in serialised form, which is a small part of what the messages themselves would occupy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from finsy.proto import p4r

MAX_ENTITIES = 256
MAX_BYTES = 1024 * 1024
"""Of a message, unless a single entity is larger; gRPC clients take 4 MiB unless told otherwise."""


class ReadAnswer:
    """Entities as they are found, and then the messages that hold them."""

    def __init__(self) -> None:
        self._serialised: deque[bytes] = deque()
        self._open = p4r.ReadResponse()
        self._open_bytes = 0

    def add(self, entity: p4r.Entity) -> None:
        """Append an entity to the answer."""
        size_bytes = entity.ByteSize()
        if self._open_bytes + size_bytes > MAX_BYTES or len(self._open.entities) >= MAX_ENTITIES:
            self._close()
        self._open.entities.append(entity)
        self._open_bytes += size_bytes

    def _close(self) -> None:
        if self._open.entities:
            self._serialised.append(self._open.SerializeToString())
            self._open, self._open_bytes = p4r.ReadResponse(), 0

    def messages(self) -> Iterator[p4r.ReadResponse]:
        """The messages in order, each forgotten when it is taken."""
        self._close()
        while self._serialised:
            yield p4r.ReadResponse.FromString(self._serialised.popleft())
