"""Answers to why a run took as long as it did: one kind of limit per file, found by listing this folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType

from weft.errors import InvalidValueError
from weft.registry import Registry, classes_of
from weft.results.limits.evidence import Evidence
from weft.results.limits.kind import Limit, LimitKind


def _kinds_in(module: ModuleType) -> Iterator[tuple[str, LimitKind]]:
    return ((kind.name, kind()) for kind in classes_of(LimitKind, module))  # type: ignore[type-abstract]


LIMIT_KINDS: Registry[LimitKind] = Registry(__name__, "limit of a run", _kinds_in, InvalidValueError)
_LEAST_SHARE = 0.1
"""Limits that explain less of a run's time are left out: removing them would hardly change the run."""


def limits_of(evidence: Evidence) -> list[Limit]:
    """Return what limited a run, the limit that explains most of its time first; empty if nothing recorded says so."""
    if not evidence.is_valid:
        return []
    found = [limit for kind in LIMIT_KINDS.values() if (limit := kind.find(evidence)) is not None]
    return sorted((each for each in found if each.share >= _LEAST_SHARE), key=lambda each: -each.share)


def sentences(limits: Sequence[Limit]) -> list[str]:
    """Return the lines that the terminal, the page and `weft why` show."""
    return [f"{'then' if number else 'limited by'}: {each.sentence}" for number, each in enumerate(limits)]


__all__ = ["LIMIT_KINDS", "Evidence", "Limit", "LimitKind", "limits_of", "sentences"]
