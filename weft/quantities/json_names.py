"""Detects repeated member names of JSON objects, which the json module accepts."""

from __future__ import annotations

from collections.abc import Iterable


def repeated_name(pairs: Iterable[tuple[str, object]]) -> str | None:
    """Return the first repeated name among an `object_pairs_hook`'s pairs; None if all differ."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return None
