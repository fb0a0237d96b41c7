"""A pause that ends only when nothing is left."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.units import shortest_size
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class PfcHysteresis(Rule):
    """A pause that ends only when nothing is left."""

    name = "pfc-hysteresis"
    when = "a given `pfc.hysteresis` is not below a given `pfc.xoff`"
    reason = (
        "a pause ends only when all that came by the port has left, so links are idle for a round trip after "
        "every pause"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        hysteresis_bytes, xoff_bytes = plan.options.pfc.hysteresis, plan.options.pfc.xoff
        if hysteresis_bytes is None or xoff_bytes is None or hysteresis_bytes < xoff_bytes:
            return
        lower_bytes = min(2 * plan.any_frame_bytes, xoff_bytes // 2)
        yield self.finding(
            "pfc.hysteresis",
            f"{hysteresis_bytes} B are not below pfc.xoff, {xoff_bytes} B, so a pause ends only when nothing of the "
            "port is left, and its links are idle until more comes",
            {"pfc.hysteresis": shortest_size(lower_bytes)},
        )
