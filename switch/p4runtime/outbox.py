"""The messages that wait to be sent on one controller's stream."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from finsy.proto import p4r

MAX_WAITING = 4096
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
        """Queue a message; arbitration updates are never dropped."""
        with self._changed:
            if len(self._messages) >= MAX_WAITING and not message.HasField("arbitration"):
                self.dropped += 1
                return
            self._messages.append(message)
            self._changed.notify()

    def close(self, failure: Exception | None = None) -> None:
        """End the stream after what is queued; `failure` says why, if it is an error."""
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
