"""Service level objectives: limits on the time to the first token and on the time per further token."""

from __future__ import annotations

from weft.quantities.arrays import Integers
from weft.quantities.definitions import PositiveTime
from weft.quantities.section import Section


class Objectives(Section):
    """Limits that a request must meet to count as goodput (Zhong et al. 2024, "DistServe", section 2)."""

    first_token: PositiveTime
    """Longest time from arrival to first token."""
    per_token: PositiveTime
    """Longest average time from token to token; a request with one output token always meets it."""

    def met_by(self, first_token_ps: Integers, per_token_ps: Integers) -> int:
        """Return how many requests meet both limits."""
        return int(((first_token_ps <= self.first_token) & (per_token_ps <= self.per_token)).sum())
