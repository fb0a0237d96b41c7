"""Receivers that clear messages later than senders could send them."""

from __future__ import annotations

from weft.quantities.readable import format_size
from weft.results.clearances import ClearedResult
from weft.results.collectives import COLLECTIVES
from weft.results.job_traces import JOB_TRACES
from weft.results.limits.evidence import Evidence
from weft.results.limits.kind import Limit, LimitKind, percent
from weft.results.parameter_servers import PARAMETER_SERVERS
from weft.results.training_jobs import TRAINING_JOBS
from weft.results.training_runs import TRAINING_RUNS
from weft.results.training_steps import TRAINING_STEPS


class Clearance(LimitKind):
    """The time in which ranks have messages that receivers have not cleared, and links are idle."""

    name = "clearance"
    figures = (
        "items with `clear_to_send`: `waiting_share`, their time; the busiest port's load, as a wait "
        "for a link that is busy costs nothing"
    )

    def find(self, evidence: Evidence) -> Limit | None:
        """See LimitKind."""
        results: list[ClearedResult] = [
            *evidence.results.of(COLLECTIVES),
            *evidence.results.of(TRAINING_JOBS),
            *evidence.results.of(JOB_TRACES),
            *evidence.results.of(TRAINING_STEPS),
            *evidence.results.of(TRAINING_RUNS),
            *evidence.results.of(PARAMETER_SERVERS),
        ]
        cleared = [(each, each.clear_to_send) for each in results if each.clear_to_send]
        if not cleared:
            return None
        waited_ps = sum(found.waiting_share * each.cleared_ps for each, found in cleared)
        waiting = min(1.0, waited_ps / evidence.traffic_ps)
        share = min(waiting, 1.0 - max(evidence.loads.values(), default=0.0))
        _, longest = max(cleared, key=lambda pair: pair[1].waiting_share)
        sentence = (
            f"receivers' clearances: ranks had messages that were not cleared for {percent(waiting)} of the time "
            f"(window {longest.window}, messages of up to {format_size(longest.chunk_bytes, 3)})"
        )
        return Limit(self.name, sentence, share)
