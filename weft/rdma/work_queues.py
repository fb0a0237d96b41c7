"""The send queue and the receive queue of a queue pair: which requests are posted, and which slots are free again."""

from __future__ import annotations

import errno
from collections import deque
from typing import Generic, TypeVar

from weft.rdma.errors import VerbsError

W = TypeVar("W")


class WorkQueue(Generic[W]):
    """Requests in order, numbered from 0. A slot is free again when the completion of its request has been polled.

    An unsignaled request has none: its slot is free when the next signaled one frees its slot, as with real adapters.
    Receives may complete in another order than they were posted.
    """

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size
        self._posted: dict[int, W] = {}
        self._next = 0
        self._completed: deque[int] = deque()  # keep their slots, in the order in which they completed

    def __len__(self) -> int:
        """Return how many requests have not completed."""
        return len(self._posted)

    @property
    def next_sequence(self) -> int:
        """The number of the next request."""
        return self._next

    def require_room(self) -> None:
        """Raise VerbsError (ENOMEM) if all slots are taken."""
        if len(self._posted) + len(self._completed) >= self.size:
            raise VerbsError(
                f"all {self.size} slots of the {self.name} queue are taken: poll completions first (an unsignaled "
                "request keeps its slot until a later signaled one is polled)",
                errno.ENOMEM,
            )

    def post(self, request: W) -> int:
        """Add a request; returns its number."""
        self._posted[self._next] = request
        self._next += 1
        return self._next - 1

    def complete(self, sequence: int | None = None) -> tuple[int, W]:
        """Take out a request, by default the oldest; returns its number, and itself."""
        number = next(iter(self._posted)) if sequence is None else sequence
        request = self._posted.pop(number)
        self._completed.append(number)
        return number, request

    def first(self) -> W:
        """Return the oldest request that has not completed."""
        return next(iter(self._posted.values()))

    def retire(self, sequence: int) -> None:
        """Free the slots of a request and of those that completed before it; its completion was polled."""
        while self._completed.popleft() != sequence:
            pass
