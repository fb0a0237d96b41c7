"""Windows of an incast that no queue holds."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.traffic_classes import DATA_CLASS
from weft.quantities.units import shortest_size
from weft.run.lint.plan import Plan
from weft.run.lint.queue_bounds import queue_bounds
from weft.run.lint.rule import Finding, Rule
from weft.run.traffic_kinds.incast import IncastTraffic


class WindowIncast(Rule):
    """Windows of an incast that no queue holds."""

    name = "window-incast"
    when = (
        "the given windows of all senders of an incast exceed twice the queue of the receiver's port, no flow control "
        "holds them, and only losses slow the congestion control"
    )
    reason = "the queue overflows in the first round trip, and again whenever the senders repeat their windows"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        if not plan.is_followed_by_none or not plan.host_rates_bps:
            return
        control = plan.controls[-1]
        window_bytes = int(control.given("window_bytes") or 0)
        senders = plan.fabric.rank_count - 1
        for _, item in plan.items:
            if not isinstance(item, IncastTraffic) or not window_bytes or senders < 2:
                continue
            sent_bytes = senders * min(window_bytes * item.queue_pairs, item.bytes_per_sender)
            nic = plan.fabric.host(item.incast).nics[item.plane]
            config = next(each for each in plan.configs if each.name == nic.switch)
            port = next(each for each in config.ports if each.port == nic.switch_port)
            bound = next(queue_bounds(config, port, [DATA_CLASS]))
            # What has left the port in the meantime is one part of as many as there are senders.
            if not bound.loses or sent_bytes * (senders - 1) // senders <= 2 * bound.most_bytes:
                continue
            fitting_bytes = bound.most_bytes // (senders * item.queue_pairs)
            window_key = control.parameter_key("window_bytes")
            yield self.finding(
                window_key,
                f"{senders} senders with windows of {window_bytes} B put up to {sent_bytes} B into the queue of "
                f"{config.name}:{port.port}, which holds {bound.most_bytes} B, so packets are lost in the first round "
                "trip",
                {window_key: shortest_size(fitting_bytes)} if fitting_bytes >= plan.frame_bytes else {},
                f"raise {bound.keys}, or take a congestion control that follows the queue",
            )
