"""What a fuzzing target is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol


class Finding(Exception):
    """The tested code violated a property: the message says which one, and how."""


class Target(Protocol):
    """Something to fuzz. A case is a byte string that can be kept as a file and looked at."""

    @property
    def name(self) -> str:
        """The name on the command line."""

    @property
    def suffix(self) -> str:
        """Of files that hold cases."""

    @property
    def covered_paths(self) -> tuple[str, ...]:
        """Beginnings of the paths of the files whose lines guide the choice of cases."""

    @property
    def timeout_s(self) -> float:
        """CPU time after which a case hangs."""

    def seeds(self) -> list[bytes]:
        """Cases to begin with."""

    def mutate(self, rng: random.Random, parents: Sequence[bytes]) -> bytes:
        """A new case made of others (at least one), or from nothing; all choices come from `rng`."""

    def execute(self, case: bytes) -> str:
        """Run a case and say in a few words how it came out.

        Any exception is a finding: the case violated what must hold for every input.
        """
