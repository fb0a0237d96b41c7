"""From the counters of switches and endpoints to what a run reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal, cast

from weft.controller.counters import Count, SwitchCounters
from weft.engine import counted_drops
from weft.results.losses import ABSORBED, LossResult
from weft.results.model import Lateness
from weft.switch.daemon.stats import SwitchesStats
from weft.traffic.host_stats import HostStats

if TYPE_CHECKING:
    from weft.engine.records import TrafficCounter


@dataclass(frozen=True)
class Datagrams:
    """Datagrams of UET's service UUD: sent, received, and dropped by receivers; the rest was lost on the way."""

    sent: int = 0
    received: int = 0
    without_receive: int = 0
    too_long: int = 0
    trimmed: int = 0

    @classmethod
    def of(cls, totals: Iterable[Mapping[str, int]]) -> Datagrams:
        """Sum the counters of all hosts, over queue pairs of UUD alone."""
        sums: Counter[str] = Counter()
        for each in totals:
            sums.update(each)
        return cls(
            sums["data_packets_sent"],
            sums["data_packets_received"],
            sums["datagrams_without_receive"],
            sums["datagrams_too_long"],
            sums["datagrams_trimmed"],
        )

    def __sub__(self, before: Datagrams) -> Datagrams:
        """Return what was counted since."""
        return Datagrams(*(getattr(self, each.name) - getattr(before, each.name) for each in fields(self)))


@dataclass(frozen=True)
class HostTotals:
    """Sums over all hosts: packets sent again, congestion notifications, what switches have aggregated for them,
    packets that arrived behind a gap, packets of results with a sum that has left its type's range, messages that
    receivers had to clear and what of them waited, and how long (docs/spec/endpoint-protocol.md); and packets of data,
    which are datagrams of service UUD.
    """

    retransmissions: int
    cnps: int
    aggregated_packets: int = 0
    out_of_sequence_packets: int = 0
    overflowed_packets: int = 0
    cleared_messages: int = 0
    held_messages: int = 0
    clearance_wait_ps: int = 0
    clearance_stall_ps: int = 0
    datagrams: Datagrams = field(default_factory=Datagrams)

    @classmethod
    def of(cls, endpoint_stats: Sequence[HostStats], aggregated_packets: int = 0) -> HostTotals:
        """Sum the counters of all hosts (`weft.traffic.host.Host.stats`)."""
        totals = [endpoint["totals"] for endpoint in endpoint_stats]
        return cls(
            sum(each["retransmitted_packets"] + each["aggregation_retransmitted_packets"] for each in totals),
            sum(each["cnps_received"] for each in totals),
            aggregated_packets,
            sum(each["out_of_sequence_packets"] for each in totals),
            sum(each["aggregation_overflowed_packets"] for each in totals),
            **{name: sum(each[name] for each in totals) for name in _OF_CLEAR_TO_SEND},
            datagrams=Datagrams.of(totals),
        )

    def __sub__(self, before: HostTotals) -> HostTotals:
        """Return what was counted since."""
        return HostTotals(*(getattr(self, each.name) - getattr(before, each.name) for each in fields(self)))


_OF_CLEAR_TO_SEND = ("cleared_messages", "held_messages", "clearance_wait_ps", "clearance_stall_ps")


def drop_totals(
    losses: Sequence[LossResult],
    switch_stats: SwitchesStats | None,
    endpoint_stats: Sequence[HostStats],
) -> dict[str, int]:
    """Sum what was dropped, by cause: in queues, on links, by the P4 program, by switches, at NICs and hosts; no zeros.

    Every packet counts once. What the program absorbs (`absorbed_totals`) is no drop.
    """
    totals: Counter[str] = Counter()
    for each in losses:
        if not each.reason.startswith("switch "):
            totals[each.reason] += each.packets
    for switch in switch_stats["switches"].values() if switch_stats else ():
        # What the program drops is above; queues count what they have no memory for.
        totals.update(
            {
                f"switch {reason}": n
                for reason, n in switch["drops"].items()
                if not reason.startswith("program") and reason not in _COUNTED_BY_QUEUES
            }
        )
        for port in switch["ports"].values():
            totals.update(_counted_drops("PortStats", port["transmit"]))
            totals.update(_counted_drops("PortStats", port.get("uplink")))
            totals.update(_counted_drops("LinkStats", port.get("link")))
            totals.update(_counted_drops("LinkStats", port.get("uplink_link")))
    for endpoint in endpoint_stats:
        for plane in endpoint["planes"]:
            totals.update({f"nic {reason}": n for reason, n in plane["nic"]["dropped"].items()})
            totals.update(_counted_drops("PortStats", plane["transmit"]))
        totals.update(_counted_drops("IpStats", endpoint["ip"]))
    return {reason: count for reason, count in sorted(totals.items()) if count}


_COUNTED_BY_QUEUES = ("tail_drop", "port_down")
_CAUSES = counted_drops()


def _counted_drops(
    record: Literal["PortStats", "LinkStats", "IpStats"], statistics: Mapping[str, object] | None
) -> dict[str, int]:
    """Return how many packets a queue, a link or a host's IP stack has dropped by cause, as its statistics count."""
    if statistics is None:
        return {}
    return {cause: _packets(statistics[name]) for name, cause in _CAUSES[record].items()}


def _packets(counted: object) -> int:
    """Return the packets of a statistic, which counts only them, or their bytes as well."""
    return counted if isinstance(counted, int) else cast("TrafficCounter", counted)["packets"]


def absorbed_totals(counters: Mapping[str, SwitchCounters]) -> dict[str, int]:
    """Sum what in-network aggregation and services took in, which ended in a switch as it should: no drops. No zeros.

    `contributions` are added up and wait for others; `repeated_contributions` were there already, or are of a round
    that is over, and so are the results among them with which a switch answers one below that has them. Likewise
    `requests` to pass a barrier, and `repeated_requests`.
    """
    absorbed = Counter[str]()
    for each in counters.values():
        absorbed["contributions"] += each.aggregation.get("absorb", Count()).packets
        absorbed["requests"] += each.synchronisation.get("absorb", Count()).packets
        for name, reasons in ABSORBED.items():
            absorbed[name] += sum(each.drops.get(reason, Count()).packets for reason in reasons)
    return {name: count for name, count in absorbed.items() if count}


def lateness_of(
    switch_stats: SwitchesStats | None,
    endpoint_stats: Sequence[HostStats],
    path_rtt_ps: int,
    dilation: float,
) -> Lateness:
    """Take the worst of all processes: the largest lateness, and the largest 99th percentile."""
    each = [stats["lateness"] for stats in endpoint_stats]
    if switch_stats is not None:
        each.append(switch_stats["lateness"])
    return Lateness(
        largest_ps=max(lateness["max_ps"] for lateness in each),
        percentile_99_ps=max(lateness["p99_ps"] for lateness in each),
        path_rtt_ps=path_rtt_ps,
        dilation=dilation,
    )
