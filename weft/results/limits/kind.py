"""The definition of a kind of limit; each other file of this package defines one as a class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from weft.results.limits.evidence import Evidence


@dataclass(frozen=True)
class Limit:
    """Something that limited a run.

    Attributes:
        kind: name of the kind.
        sentence: the limit with its figures.
        share: share of the traffic's time that it explains, 0 to 1. The largest is the first to look at.
        place: port, host or other element that it names; empty if it concerns the whole run.
    """

    kind: str
    sentence: str
    share: float
    place: str = ""


class LimitKind(ABC):
    """A kind of limit.

    Attributes:
        name: name of the kind.
        figures: figures of a run that decide it, for docs/why.md.
    """

    name: ClassVar[str]
    figures: ClassVar[str]

    @abstractmethod
    def find(self, evidence: Evidence) -> Limit | None:
        """Return the limit; None if the run has no such limit, or too few figures to tell."""


def percent(share: float) -> str:
    """Return a share as sentences have it."""
    return f"{100 * share:.0f} %"
