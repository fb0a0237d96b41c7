"""What several look at, read once a second at most."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

LEAST_INTERVAL_S = 1.0
"""Between two reads of a lab; whoever asks in between gets the same, however many they are."""
_Value = TypeVar("_Value")


class Recent(Generic[_Value]):
    """What `read` returned last, read anew if that is old enough. Callable from any thread; one reads at a time."""

    def __init__(self, read: Callable[[], _Value]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._known: tuple[float, _Value] | None = None

    def value(self) -> _Value:
        """Return it; what `read` raises passes through, and is tried again by the next who asks."""
        with self._lock:
            now_s = time.monotonic()
            if self._known is None or now_s - self._known[0] >= LEAST_INTERVAL_S:
                self._known = now_s, self._read()
            return self._known[1]
