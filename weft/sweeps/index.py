"""sweep.json: a sweep's points and the outcome of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from weft.results.json_files import read_object, validated, write_object
from weft.sweeps.store import Outcome, State

INDEX = "sweep.json"


@dataclass(frozen=True)
class IndexedPoint:
    """A point's parameters and its outcome."""

    identity: Annotated[str, Field(pattern=r"\A(?:[0-9a-f]{16}|seed-[0-9]{1,19})\z")]
    parameters: dict[str, Any]
    state: State
    error: str

    @property
    def outcome(self) -> Outcome:
        """Its outcome."""
        return Outcome(self.state, self.error)


@dataclass(frozen=True)
class SweepIndex:
    """A sweep: the scenario's name, the parameters that its axes set, its points in order."""

    scenario: str
    parameters: list[str]
    points: list[IndexedPoint]

    def write(self, directory: Path) -> Path:
        """Write sweep.json, whole or not at all, and return its path."""
        return write_object(_ADAPTER, directory / INDEX, self)

    @classmethod
    def read(cls, directory: Path) -> SweepIndex:
        """Read it back; BadInputError: it is not there, or is not what a sweep writes."""
        path = directory / INDEX
        return validated(_ADAPTER, path, read_object(path))


_ADAPTER = TypeAdapter(SweepIndex)


def index_of(
    scenario: str, parameters: Sequence[str], ended: Sequence[tuple[str, dict[str, Any], Outcome]]
) -> SweepIndex:
    """Return the index of points, by identity, parameters and outcome."""
    points = [IndexedPoint(identity, values, outcome.state, outcome.error) for identity, values, outcome in ended]
    return SweepIndex(scenario, list(parameters), points)
