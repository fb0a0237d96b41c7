"""What every assignment says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar


class Assignment(ABC):
    """Chooses an instance for each request, when it arrives."""

    name: ClassVar[str]

    @abstractmethod
    def choose(self, request: int, loads: Sequence[int]) -> int:
        """Return the number of an instance.

        Args:
            request: its number in the order of arrivals, from 0.
            loads: of each instance: a prefill instance's work that is left (ps), the tokens of all prompts that a
                decode instance was given so far.
        """
