"""A value shared by several readers, read at most once a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

LEAST_INTERVAL_S = 1.0
"""Shortest time between two reads of a lab; all requests in between get the same value."""
_Value = TypeVar("_Value")


class Recent(Generic[_Value]):
    """Caches the result of `read` for `LEAST_INTERVAL_S`. Callable from any thread; one thread reads at a time."""

    def __init__(self, read: Callable[[], _Value]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._known: tuple[float, _Value] | None = None

    def value(self) -> _Value:
        """Return the value; an error of `read` is raised, and the next request tries again."""
        with self._lock:
            now_s = time.monotonic()
            if self._known is None or now_s - self._known[0] >= LEAST_INTERVAL_S:
                self._known = now_s, self._read()
            return self._known[1]
