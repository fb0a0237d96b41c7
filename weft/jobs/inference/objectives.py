"""Service level objectives: how long requests may wait for their first token, and for each further one."""

from __future__ import annotations

from weft.jobs.inference.requests import Integers
from weft.quantities.definitions import PositiveTime
from weft.quantities.section import Section


class Objectives(Section):
    """What requests must keep to count as goodput (Zhong et al. 2024, "DistServe", section 2)."""

    first_token: PositiveTime
    """From the arrival to the first token, at most."""
    per_token: PositiveTime
    """From token to token on average, at most; a request of one token keeps it."""

    def met_by(self, first_token_ps: Integers, per_token_ps: Integers) -> int:
        """Return how many requests keep both."""
        return int(((first_token_ps <= self.first_token) & (per_token_ps <= self.per_token)).sum())
