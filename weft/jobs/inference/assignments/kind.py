"""Interface of assignments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from weft.quantities.arrays import Integers


class Assignment(ABC):
    """Chooses an instance for each request on arrival."""

    name: ClassVar[str]

    @abstractmethod
    def choose(self, request: int, loads: Integers) -> int:
        """Return the number of an instance.

        Args:
            request: its number in the order of arrivals, from 0.
            loads: of each instance: for prefill, the remaining work (ps); for decode, the tokens of all prompts
                assigned so far.
        """
