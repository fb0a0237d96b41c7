"""Watches table entries that have an idle timeout."""

from __future__ import annotations

from collections.abc import Callable

from switch.backend import BackendError, IdleTimeout, TableEntry, TableKey
from switch.native_keys import NativeKey


class IdleWatch:
    """Entries with an idle timeout, and which of them have been reported since they were last hit."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, NativeKey], TableEntry] = {}
        self._reported: set[tuple[str, NativeKey]] = set()

    def watch(self, table: str, entry: TableEntry, key: NativeKey) -> None:
        """Start, change or end the watch over an entry that was written."""
        self.forget(table, key)
        if entry.idle_timeout_ns:
            self._entries[table, key] = entry

    def forget(self, table: str, key: NativeKey) -> None:
        """End the watch over an entry."""
        self._entries.pop((table, key), None)
        self._reported.discard((table, key))

    def next_event(self, idle_ns_of: Callable[[str, TableKey, int], int]) -> IdleTimeout | None:
        """An entry that has become idle and was not reported yet."""
        for (table, key), entry in list(self._entries.items()):
            try:
                idle_ns = idle_ns_of(table, entry.key, entry.priority)
            except BackendError:
                continue  # removed meanwhile
            if idle_ns < entry.idle_timeout_ns:
                self._reported.discard((table, key))
            elif (table, key) not in self._reported:
                self._reported.add((table, key))
                return IdleTimeout(table, entry.key, entry.priority)
        return None
