"""The transports that there are."""

from __future__ import annotations

from collections.abc import Iterable

from weft.errors import InvalidValueError
from weft.rdma.work import plural
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


def require_carried(kind: TransportKind, operations: Iterable[str]) -> None:
    """Raise InvalidValueError if a transport does not carry one of the operations."""
    posted = tuple(operations)
    if not (lacked := [plural(each) for each in posted if each not in kind.operations]):
        return
    why = kind.why_no_more and f": {kind.why_no_more}"
    raise InvalidValueError(
        f"posts {' and '.join(lacked)}, which {kind.title} does not carry{why}",
        valid=kind.alternatives(posted) or carriers_of(posted),
    )


def carriers_of(operations: Iterable[str]) -> list[str]:
    """Return the names of the transports that carry all these operations."""
    return [name for name, kind in TRANSPORT_KINDS.items() if kind.operations.issuperset(operations)]
