"""Metrics of a lab's hosts: queue pairs, pauses, and INT's view of the hops on packets' paths.

Labels are hosts, switches and their neighbours, never queue pairs or paths, so that the number of series grows only
with the ports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from weft.controller.planned_paths import PlannedPaths
from weft.engine import _core
from weft.metrics.exposition import Families, Family
from weft.quantities.units import NS_PER_S, PS_PER_S
from weft.topologies import FabricSpec
from weft.traffic.host_metrics import HostMetrics, SendingMetrics
from weft.traffic.int_stack import QUEUE_CELL_BYTES

if TYPE_CHECKING:
    from weft.engine.records import HopLatency, PathLatencies

_EDGES_S = tuple(edge / NS_PER_S for edge in _core.hop_latency_edges_ns())

Hop = tuple[str, str]
"""A switch, and the next node."""

_NAKS = ("sequence", "rnr", "fatal")


class PlacedPaths:
    """Maps paths seen by INT to their hops. A path keeps the hops found first, so that no sum decreases."""

    def __init__(self, fabric: FabricSpec, planned_paths: Callable[[int], PlannedPaths]) -> None:
        self._fabric = fabric
        self._planned_paths = planned_paths
        self._found: dict[tuple[str, int, int, int, int], tuple[Hop, ...]] = {}

    def hops(self, host: str, path: PathLatencies) -> tuple[Hop, ...]:
        """Return the hops of a path that begins at a host; () if they are unknown."""
        length = 0 if path["overflow"] else len(path["hops"])
        key = host, path["peer"], path["plane"], path["path_id"], length
        if key not in self._found:
            self._found[key] = self._place(host, path)
        return self._found[key]

    def _place(self, host: str, path: PathLatencies) -> tuple[Hop, ...]:
        source, destination = self._fabric.host(host), self._fabric.hosts[path["peer"]]
        first, last = (each.nic(path["plane"]) for each in (source, destination))
        count = None if path["overflow"] else len(path["hops"])
        planned = self._planned_paths(first.plane)
        switches = planned.with_id(first.switch, last.switch, path["path_id"], count).switches
        if not switches:
            return ()
        return tuple(zip(switches, (*switches[1:], destination.name), strict=True))[: len(path["hops"])]


class _Sums:
    """Sums for a hop over all paths that contain it."""

    def __init__(self) -> None:
        self.stacks = 0
        self.queue_cells = 0
        self.latency_ns = 0
        self.counts = [0] * (len(_EDGES_S) + 1)

    def add(self, hop: HopLatency, stacks: int) -> None:
        self.stacks += stacks
        self.queue_cells += hop["queue_cells"]
        self.latency_ns += hop["latency_ns"]
        self.counts = [one + other for one, other in zip(self.counts, hop["counts"], strict=True)]


class HostFamilies:
    """Creates the metrics of a lab's hosts. Keeps each host's last answer, so that no counter falls if one is late.

    Args:
        fabric: the lab's fabric.
        dilation: seconds of the machine's clock for each emulated second.
        planned_paths: returns the paths of a plane by its number.
        has_latencies: whether the switches' clocks agree, so that differences of their time stamps are meaningful.

    """

    def __init__(
        self,
        fabric: FabricSpec,
        dilation: float,
        planned_paths: Callable[[int], PlannedPaths],
        *,
        has_latencies: bool,
    ) -> None:
        self._dilation = dilation
        self._hosts = [host.name for host in fabric.hosts]
        self._placed = PlacedPaths(fabric, planned_paths)
        self._has_latencies = has_latencies
        self._known: dict[str, HostMetrics] = {}

    def families(self, answers: Mapping[str, HostMetrics]) -> list[Family]:
        """Return the metrics, given the answers of hosts that are on time; empty if no host has ever answered."""
        self._known |= answers
        families = _Host(self._dilation)
        if not self._known:
            return families.all
        for host in self._hosts:
            families.up.add(int(host in answers), host=host)
            if host in self._known:
                families.add(host, self._known[host])
        return [*families.all, *self._of_hops()]

    def _of_hops(self) -> list[Family]:
        latency = Family(
            "weft_int_hop_latency_seconds",
            "histogram",
            "Emulated time of packets from leaving the switch before to leaving this one, by INT.",
        )
        queue = Family(
            "weft_int_hop_queue_bytes", "summary", "Bytes that waited at the hop as packets left it, by INT."
        )
        unplaced = Family(
            "weft_int_unplaced_stacks_total",
            "counter",
            "INT stacks of paths that were not known, or more than a host counts.",
        )
        sums: dict[Hop, _Sums] = {}
        for host, metrics in self._known.items():
            beyond = metrics["stacks_beyond_limit"]
            for path in metrics["paths"]:
                hops = self._placed.hops(host, path)
                beyond += 0 if hops else path["stacks"]
                for place, found in zip(hops, path["hops"], strict=bool(hops)):
                    sums.setdefault(place, _Sums()).add(found, path["stacks"])
            unplaced.add(beyond, host=host)
        for (switch, peer), total in sorted(sums.items()):
            queue.add_summary(total.stacks, total.queue_cells * QUEUE_CELL_BYTES, switch=switch, peer=peer)
            if self._has_latencies and any(total.counts):
                latency.add_histogram(_EDGES_S, total.counts, total.latency_ns / NS_PER_S, switch=switch, peer=peer)
        return [latency, queue, unplaced]


class _Host(Families):
    """Metrics of hosts, with the label host."""

    def __init__(self, dilation: float) -> None:
        self._dilation = dilation
        self.up = Family("weft_host_up", "gauge", "1 if the host's process answered; 0: its values are old.")
        self.sent = Family("weft_host_sent_packets_total", "counter", "Data packets sent, those sent again included.")
        self.sent_bytes = Family("weft_host_sent_bytes_total", "counter", "Payload of these packets.")
        self.received = Family("weft_host_received_packets_total", "counter", "Data packets accepted.")
        self.received_bytes = Family("weft_host_received_bytes_total", "counter", "Payload of these packets.")
        self.again = Family("weft_host_retransmitted_packets_total", "counter", "Data packets sent again.")
        self.timeouts = Family("weft_host_timeouts_total", "counter", "Retransmission timeouts.")
        self.naks = Family("weft_host_received_naks_total", "counter", f"NAKs received, by kind: {', '.join(_NAKS)}.")
        self.cnps_sent = Family("weft_host_sent_cnps_total", "counter", "Congestion notifications sent.")
        self.cnps = Family("weft_host_received_cnps_total", "counter", "Congestion notifications received.")
        self.marked = Family(
            "weft_host_ecn_marked_packets_total", "counter", "Packets received that a switch had marked (CE)."
        )
        self.dropped = Family(
            "weft_host_dropped_packets_total", "counter", "Packets that the host's NICs dropped, by reason."
        )
        self.device = Family(
            "weft_host_rdma_device_total",
            "counter",
            "What the host counts for its RDMA device besides: UC, UD, connection management, by counter.",
        )
        self.queue_pairs = Family("weft_host_sending_queue_pairs", "gauge", "Queue pairs that have something to send.")
        self.in_flight = Family("weft_host_in_flight_bytes", "gauge", "Unacknowledged bytes of these queue pairs.")
        self.window = Family("weft_host_window_bytes", "gauge", "Sum of these queue pairs' congestion windows.")
        self.paced = Family("weft_host_paced_queue_pairs", "gauge", "Queue pairs of these that pace their sending.")
        self.rate = Family(
            "weft_host_pacing_rate_bytes_per_second",
            "gauge",
            "Sum of their rates, in seconds of the machine's clock.",
        )
        self.paused = Family(
            "weft_host_paused_seconds_total",
            "counter",
            "Emulated time for which a class of the host's port was paused by its switch.",
        )
        self.is_paused = Family("weft_host_is_paused", "gauge", "1 while the switch holds the class.")

    def add(self, host: str, metrics: HostMetrics) -> None:
        totals = metrics["totals"]
        for family, name in (
            (self.sent, "data_packets_sent"),
            (self.sent_bytes, "data_bytes_sent"),
            (self.received, "data_packets_received"),
            (self.received_bytes, "data_bytes_received"),
            (self.again, "retransmitted_packets"),
            (self.timeouts, "timeouts"),
            (self.cnps_sent, "cnps_sent"),
            (self.cnps, "cnps_received"),
            (self.marked, "ce_marked_packets"),
        ):
            family.add(totals[name], host=host)
        for kind in _NAKS:
            self.naks.add(totals[f"{kind}_naks_received"], host=host, kind=kind)
        for counter, value in metrics["device"].items():
            self.device.add(value, host=host, counter=counter)
        for reason, packets in metrics["dropped"].items():
            self.dropped.add(packets, host=host, reason=reason)
        for pause in metrics["pauses"]:
            labels = {"host": host, "plane": pause["plane"], "class_": pause["priority_class"]}
            self.paused.add(pause["paused_ps"] / PS_PER_S, **labels)
            self.is_paused.add(int(pause["is_paused"]), **labels)
        self._add_sending(host, metrics["sending"])

    def _add_sending(self, host: str, sending: SendingMetrics) -> None:
        self.queue_pairs.add(sending["queue_pairs"], host=host)
        self.in_flight.add(sending["in_flight_bytes"], host=host)
        self.window.add(sending["window_bytes"], host=host)
        self.paced.add(sending["paced"], host=host)
        self.rate.add(sending["pacing_rate_bps"] / 8 / self._dilation, host=host)
