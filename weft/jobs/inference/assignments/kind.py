"""What every assignment says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from weft.jobs.inference.requests import Integers


class Assignment(ABC):
    """Chooses an instance for each request, when it arrives."""

    name: ClassVar[str]

    @abstractmethod
    def choose(self, request: int, loads: Integers) -> int:
        """Return the number of an instance.

        Args:
            request: its number in the order of arrivals, from 0.
            loads: of each instance: a prefill instance's work that is left (ps), the tokens of all prompts that a
                decode instance was given so far.
        """
