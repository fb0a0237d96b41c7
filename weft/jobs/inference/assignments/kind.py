"""Interface of assignments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from weft.quantities.arrays import Integers


class Assignment(ABC):
    """Chooses an instance for each request on arrival."""

    name: ClassVar[str]

    @abstractmethod
    def choose(self, request: int, loads: Integers, costs: Integers) -> int:
        """Return the number of an instance.

        Args:
            request: its number in the order of arrivals, from 0.
            loads: of each instance: for prefill, the remaining work (ps); for decode, the tokens of all prompts
                assigned so far.
            costs: what the request adds at each instance: for prefill, the work (ps); for decode, the tokens that are
                sent to it. They differ only with prefix caching.
        """
