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
        worst = max(evidence.results.of(ENTROPY_VALUES), key=lambda each: each.assumed_bad, default=None)
        if worst is None or not worst.assumed_bad:
            return None
        share = worst.assumed_bad / (worst.good + worst.skip + worst.assumed_bad + worst.denied)
        failures = sum(each.failures for each in evidence.results.of(PATH_SIGNALS))
        host = worst.most_assumed_bad_host
        sentence = (
            f"failed paths: {percent(share)} of the entropy values of plane {worst.plane} are out of use at the end, "
            f"most of them at {host}; paths failed {counted(failures, 'time')} in all"
        )
        return Limit(self.name, sentence, share, host)
