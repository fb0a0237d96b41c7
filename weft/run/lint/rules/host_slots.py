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
        fabric, training = plan.fabric, plan.fabric.training_nics
        rates_bps = [nic.link.rate_bps for nic in fabric.hosts[0].nics]
        # What the NICs of the training fabric, and those of its storage network, send over each link. A memory serves
        # both directions.
        crossing = {
            link: tuple(
                sum(rates_bps[nic] * of_rank[nic].fetched.count(link) for of_rank in routes.routes for nic in nics)
                for nics in (range(training), range(training, fabric.nics_per_host))
            )
            for link in routes.links
        }
        slow = [(link, sent) for link, sent in crossing.items() if link.rate_bps < sum(sent)]
        if not slow:
            return
        link, sent = min(slow, key=lambda each: each[0].rate_bps / sum(each[1]))
        is_storage = all(link.rate_bps >= of_training for link, (of_training, _) in crossing.items())
        key = "fabric.storage_network.host_rate" if is_storage else "fabric.host_rate"
        # What fits on every link: storage beside what training sends, or training alone.
        fitting_bps = min(
            rates_bps[-1] * (each.rate_bps - of_training) // of_storage
            if is_storage
            else rates_bps[0] * each.rate_bps // of_training
            for each, (of_training, of_storage) in crossing.items()
            if (of_storage if is_storage else of_training)
        )
        yield self.finding(
            "host",
            f"{link.name} carries {format_rate(link.rate_bps)} of data, and NICs that it serves send "
            f"{format_rate(sum(sent))}",
            {key: shortest_rate(fitting_bps // 10**6 * 10**6)} if fitting_bps >= 10**6 else {},
            "give it more lanes, or its NICs GPUDirect at this distance (host.gpudirect)",
        )
