"""NICs with ports faster than the links inside the host that lead to them."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_rate
from weft.quantities.units import shortest_rate
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class HostSlots(Rule):
    """A NIC's ports are faster than the host's links that lead to it."""

    name = "host-slots"
    when = "`host` has a link, for instance a NIC's PCIe slot, with a lower rate than the ports of the NICs behind it"
    reason = (
        "the link bounds what the ports send and receive: PCIe carries fewer bits per second than its name says, after "
        "encoding and headers, and ranks share links towards the processor"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        if plan.options.host is None or not plan.host_rates_bps:
            return
        from weft.scenario.host import host_routes

        routes = host_routes(plan.fabric, plan.options)
        assert routes is not None
        port_bps = plan.host_rates_bps[-1]
        crossing = {
            link: sum(route.fetched.count(link) for routes_of in routes.routes for route in routes_of)
            for link in routes.links
        }
        # A memory serves both directions.
        slow = [(link, count) for link, count in crossing.items() if count and link.rate_bps < count * port_bps]
        if not slow:
            return
        link, count = min(slow, key=lambda each: each[0].rate_bps / each[1])
        yield self.finding(
            "host",
            f"{link.name} carries {format_rate(link.rate_bps)} of data, and NICs that it serves send "
            f"{format_rate(count * port_bps)}",
            {"fabric.host_rate": shortest_rate(link.rate_bps // count // 10**6 * 10**6)},
            "give it more lanes, or its NICs GPUDirect at this distance (host.gpudirect)",
        )
