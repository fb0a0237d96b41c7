"""Trimmed packets behind the data."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.traffic_classes import CONTROL_CLASS
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class TrimQueue(Rule):
    """Trimmed packets behind the data."""

    name = "trim-queue"
    when = (
        "`trimming.queue` does not go before the classes that trim: it is a lower class, or takes turns with a quantum"
    )
    reason = (
        "a trimmed packet waits behind the queue that had no room for it, so its receiver learns of the loss as late "
        "as by the packets that follow"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        trimming, quanta = plan.options.trimming, plan.options.scheduling.quantum
        if not trimming.classes:
            return
        takes_turns = trimming.queue in quanta
        # Classes with a quantum come after all that have none.
        behind = [each for each in trimming.classes if each > trimming.queue and each not in quanta]
        if not takes_turns and not behind:
            return
        why = "takes turns with them by its quantum" if takes_turns else f"comes after class {max(behind)}"
        first = next((each for each in (CONTROL_CLASS, CONTROL_CLASS + 1) if each not in quanta), None)
        yield self.finding(
            "trimming.queue",
            f"class {trimming.queue} of trimmed packets {why}, so they wait behind the data that had no room",
            {} if first is None else {"trimming.queue": first},
            "" if first is not None else "leave it out of scheduling.quantum",
        )
