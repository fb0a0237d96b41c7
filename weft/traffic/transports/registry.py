"""The transports that there are."""

from __future__ import annotations

from collections.abc import Iterable

from weft.errors import InvalidValueError
from weft.registry import NamedByModules, constant_of
from weft.traffic.transports.kind import TransportKind

TRANSPORT_KINDS: NamedByModules[TransportKind] = NamedByModules(
    "weft.traffic.transports",
    "transport",
    constant_of(TransportKind),  # type: ignore[type-abstract]
    InvalidValueError,
    default="rc",
    without_kind=("kind", "registry"),
)
"""By name, RoCEv2's reliable connection first; a scenario imports only the one that it names."""


def lacked_by(kind: TransportKind, operations: Iterable[str]) -> str:
    """Return which of the operations a transport does not carry, in words; empty if none."""
    return " and ".join(f"{each}s" for each in operations if each not in kind.operations)


def carriers_of(operations: Iterable[str]) -> list[str]:
    """Return the names of the transports that carry all these operations."""
    return [name for name, kind in TRANSPORT_KINDS.items() if kind.operations.issuperset(operations)]
