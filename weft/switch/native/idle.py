"""Watches table entries with an idle timeout."""

from __future__ import annotations

from collections.abc import Callable

from weft.switch.backend import BackendError, IdleTimeout, TableEntry, TableKey
from weft.switch.native.tables import NativeKey


class IdleWatch:
    """Entries with an idle timeout, and how long each had been idle at its last report."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, NativeKey], TableEntry] = {}
        self._reported_ns: dict[tuple[str, NativeKey], int] = {}

    def watch(self, table: str, entry: TableEntry, key: NativeKey) -> None:
        """Start, change or end the watch over a written entry."""
        if self._entries:
            self.forget(table, key)
        if entry.idle_timeout_ns:
            self._entries[table, key] = entry

    def forget(self, table: str, key: NativeKey) -> None:
        """End the watch over an entry."""
        self._entries.pop((table, key), None)
        self._reported_ns.pop((table, key), None)

    def next_event(self, idle_ns_of: Callable[[str, TableKey, int], int]) -> IdleTimeout | None:
        """Return an entry that has been idle for its timeout since its last hit or report (P4Runtime 16.5)."""
        for (table, key), entry in list(self._entries.items()):
            try:
                idle_ns = idle_ns_of(table, entry.key, entry.priority)
            except BackendError:
                continue  # removed meanwhile
            reported_ns = self._reported_ns.get((table, key), 0)
            if idle_ns < reported_ns:  # hit meanwhile
                del self._reported_ns[table, key]
                reported_ns = 0
            if idle_ns - reported_ns >= entry.idle_timeout_ns:
                self._reported_ns[table, key] = idle_ns
                return IdleTimeout(table, entry.key, entry.priority)
        return None

    def next_deadline_ns(self, idle_ns_of: Callable[[str, TableKey, int], int]) -> int | None:
        """Return the time until `next_event` may return an event; None if no entry is watched."""
        waits_ns = []
        for (table, key), entry in self._entries.items():
            try:
                idle_ns = idle_ns_of(table, entry.key, entry.priority)
            except BackendError:
                continue
            reported_ns = self._reported_ns.get((table, key), 0)
            since_ns = idle_ns - reported_ns if idle_ns >= reported_ns else idle_ns
            waits_ns.append(max(1, entry.idle_timeout_ns - since_ns))
        return min(waits_ns, default=None)
