"""Messages waiting to be sent on one controller's stream."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from finsy.proto import p4r

from weft.switch.p4runtime.errors import RESOURCE_EXHAUSTED, RequestError

MAX_WAITING = 4096
MAX_WAITING_ARBITRATION = 2 * MAX_WAITING
"""Beyond this many messages the stream ends: a controller must read its arbitration updates."""
"""Packet-ins, digests and errors are dropped beyond this many messages.

A slow controller must not fill the memory.
"""


class Outbox:
    """A queue between the switch's events and one stream; `put` never blocks."""

    def __init__(self) -> None:
        self._messages: deque[p4r.StreamMessageResponse] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self.dropped = 0
        self.failure: Exception | None = None

    def put(self, message: p4r.StreamMessageResponse) -> None:
        """Queue a message; arbitration updates are not dropped, but too many of them end the stream."""
        with self._changed:
            if self._closed:
                return
            waiting = len(self._messages)
            if waiting >= MAX_WAITING and not message.HasField("arbitration"):
                self.dropped += 1
                return
            if waiting >= MAX_WAITING_ARBITRATION:
                self.close(RequestError(RESOURCE_EXHAUSTED, f"{waiting} messages of the stream are unread"))
                self._messages.clear()
                return
            self._messages.append(message)
            self._changed.notify()

    def close(self, failure: Exception | None = None) -> None:
        """End the stream after the queued messages; `failure` is the reason if it is an error."""
        with self._changed:
            self._closed = True
            self.failure = self.failure or failure
            self._changed.notify()

    def __iter__(self) -> Iterator[p4r.StreamMessageResponse]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._messages or self._closed)
                if not self._messages:
                    return
                message = self._messages.popleft()
            yield message
