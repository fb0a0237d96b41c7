"""An interval of samples that nothing takes."""

from __future__ import annotations

from collections.abc import Iterator

from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class ObserveInterval(Rule):
    """An interval of samples that nothing takes."""

    name = "observe-interval"
    when = "`observe.interval` or `observe.state_interval` is given, and what it samples is not asked for"
    reason = "no sample is taken"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        observe = plan.options.observe
        if "interval" in observe.model_fields_set and not observe.queues and not observe.state_series:
            yield self.finding(
                "observe.interval",
                "neither observe.queues nor observe.state_series asks for samples, so none is taken",
                {"observe.queues": "all"},
                "leave it out",
            )
        if observe.state_interval is not None and not observe.state_series:
            yield self.finding(
                "observe.state_interval",
                "observe.state_series asks for no samples, so none is taken",
                {},
                "name what is to be sampled in observe.state_series, or leave it out",
            )
