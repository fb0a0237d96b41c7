"""Messages between programs that bypass the fabric: addresses, keys, queue pair numbers."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from weft.rdma.errors import VerbsError


@dataclass(frozen=True)
class OutOfBandMessage:
    """A value, which JSON can hold, from one host's program to another's; messages of a topic come in order."""

    source: str
    destination: str
    topic: str
    value: object


MAX_VALUE_BYTES = 1 << 16


class OutOfBand(Protocol):
    """Carries such messages, and hands each to `Device.deliver` of its destination."""

    def send(self, message: OutOfBandMessage) -> None:
        """Send a message."""


def checked_value(value: object) -> object:
    """Return a value as its receiver gets it. VerbsError: JSON cannot hold it, or it is too large."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise VerbsError(f"a value for another program: {error}", valid="what JSON can hold") from None
    if len(text) > MAX_VALUE_BYTES:
        raise VerbsError(f"a value for another program of {len(text)} bytes", valid=f"up to {MAX_VALUE_BYTES}")
    return json.loads(text)


class Inbox:
    """Messages that have come, by source and topic; source "" stands for any host."""

    def __init__(self) -> None:
        self._messages: dict[tuple[str, str], deque[OutOfBandMessage]] = {}
        self._arrived: dict[tuple[str, str], asyncio.Event] = {}

    def put(self, message: OutOfBandMessage, *, of_any: bool) -> None:
        """Note a message, where it waits for one from any host or for one from its source."""
        key = ("" if of_any else message.source, message.topic)
        self._messages.setdefault(key, deque()).append(message)
        self._event(key).set()

    async def get(self, source: str, topic: str) -> OutOfBandMessage:
        """Wait for the next message."""
        key = (source, topic)
        while not self._messages.get(key):
            self._event(key).clear()
            await self._event(key).wait()
        return self._messages[key].popleft()

    def _event(self, key: tuple[str, str]) -> asyncio.Event:
        return self._arrived.setdefault(key, asyncio.Event())
