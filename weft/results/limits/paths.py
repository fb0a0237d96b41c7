"""Paths that hosts took for failed, where packets choose theirs by entropy values."""

from __future__ import annotations

from weft.quantities.readable import counted
from weft.results.entropy_values import ENTROPY_VALUES, PATH_SIGNALS
from weft.results.limits.evidence import Evidence
from weft.results.limits.kind import Limit, LimitKind, percent


class Paths(LimitKind):
    """Entropy values whose path counts as failed at the end, with the plane and the host that have most."""

    name = "paths"
    figures = "`assumed_bad` of `entropy_values` at the end, `failures` of `path_signals`"

    def find(self, evidence: Evidence) -> Limit | None:
        """See LimitKind."""
        planes = evidence.results.of(ENTROPY_VALUES)
        values = sum(each.good + each.skip + each.assumed_bad + each.denied for each in planes)
        bad = sum(each.assumed_bad for each in planes)
        if not bad:
            return None
        worst = max(planes, key=lambda each: each.assumed_bad)
        failures = sum(each.failures for each in evidence.results.of(PATH_SIGNALS))
        sentence = (
            f"failed paths: {percent(bad / values)} of all entropy values are out of use at the end, most on plane "
            f"{worst.plane} and of {worst.most_assumed_bad_host}; paths failed {counted(failures, 'time')} in all"
        )
        return Limit(self.name, sentence, bad / values, worst.most_assumed_bad_host)
