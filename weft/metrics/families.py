"""Metrics of a lab's switches: counters from the switches and from P4Runtime.

Names follow Prometheus' conventions: base units, `_total` for counters. Times are in seconds of the emulated clock;
Prometheus computes rates per second of the machine's clock, which are lower by `weft_dilation_ratio`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from weft.controller.counters import SwitchCounters
from weft.metrics.exposition import Families, Family
from weft.quantities.units import PS_PER_S
from weft.switch.daemon.stats import SwitchesStats, SwitchPortStats, SwitchStats
from weft.topologies import FabricSpec, SwitchSpec

if TYPE_CHECKING:
    from weft.engine._core import PfcClassStats


class _Port(Families):
    """Metrics of ports, with the labels switch, port and peer."""

    def __init__(self, dilation: float) -> None:
        self._dilation = dilation
        self.capacity = Family(
            "weft_port_link_capacity_bytes_per_second",
            "gauge",
            "Rate of the port's link, in seconds of the machine's clock: the emulated rate over the dilation.",
        )
        self.queue = Family(
            "weft_port_queue_depth_bytes", "gauge", "Bytes that wait at the port, all classes together."
        )
        self.limit = Family(
            "weft_port_queue_capacity_bytes",
            "gauge",
            "Memory of the port's queue; with a shared buffer, what the scenario gives ports without one.",
        )
        self.largest = Family(
            "weft_port_queue_depth_max_bytes", "gauge", "The most that has waited since counters were reset."
        )
        self.sent_bytes = Family("weft_port_transmitted_bytes_total", "counter", "Bytes sent by the port.")
        self.received_bytes = Family(
            "weft_port_received_bytes_total",
            "counter",
            "Bytes received by the port from its interface, where it has one.",
        )
        self.sent = Family("weft_port_transmitted_packets_total", "counter", "Packets sent by the port.")
        self.dropped = Family(
            "weft_port_dropped_packets_total",
            "counter",
            "Packets that the port dropped: queue_full, headroom, down, egress; trimmed: no room even then.",
        )
        self.lost = Family(
            "weft_link_lost_packets_total",
            "counter",
            "Packets lost on the link that the port sends into: fault, corrupted, cut.",
        )
        self.marked = Family(
            "weft_port_ecn_marked_packets_total",
            "counter",
            "Packets that the switch marked (CE) at the port.",
        )
        self.trimmed = Family(
            "weft_port_trimmed_packets_total",
            "counter",
            "Packets that found no room in a queue of the port and were trimmed.",
        )
        self.cut = Family("weft_port_trimmed_bytes_total", "counter", "Bytes cut off trimmed packets.")
        self.pauses_sent = Family(
            "weft_port_pause_frames_sent_total", "counter", "Pauses sent, refreshed ones included."
        )
        self.pauses_received = Family("weft_port_pause_frames_received_total", "counter", "Pauses received.")
        self.paused = Family(
            "weft_port_paused_seconds_total",
            "counter",
            "Emulated time for which a class was paused by the far end.",
        )
        self.is_paused = Family("weft_port_is_paused", "gauge", "1 while the far end holds the class.")

    def add(self, switch: SwitchSpec, number: int, stats: SwitchPortStats) -> None:
        port = switch.port(number)
        labels = {"switch": switch.name, "port": number, "peer": port.peer.node}
        transmit, link = stats["transmit"], stats["link"]
        self.capacity.add(port.link.rate_bps / 8 / self._dilation, **labels)
        self.limit.add(port.link.queue_capacity_bytes, **labels)
        self.queue.add(transmit["queue_depth_bytes"], **labels)
        self.largest.add(transmit["max_queue_depth_bytes"], **labels)
        self.sent.add(transmit["transmitted"]["packets"], **labels)
        self.sent_bytes.add(transmit["transmitted"]["bytes"], **labels)
        if "socket" in stats:
            self.received_bytes.add(stats["socket"]["received_bytes"], **labels)
        for reason, dropped in (
            ("queue_full", transmit["tail_dropped"]),
            ("headroom", transmit["headroom_dropped"]),
            ("down", transmit["down_dropped"]),
            ("egress", transmit["egress_dropped"]),
            ("trimmed", transmit["trim_dropped"]),
            ("storm", transmit["storm_dropped"]),
            ("storm_arrival", transmit["storm_arrival_dropped"]),
        ):
            self.dropped.add(dropped["packets"], **labels, reason=reason)
        for reason, packets in (
            ("fault", link["lost_packets"]),
            ("corrupted", link["corrupted_packets"]),
            ("cut", link["cut"]["packets"]),
        ):
            self.lost.add(packets, **labels, reason=reason)
        for priority_class, of_class in enumerate(transmit["classes"]):
            if of_class["trimmed"]["packets"]:
                self.trimmed.add(of_class["trimmed"]["packets"], **labels, class_=priority_class)
                self.cut.add(of_class["trimmed"]["bytes"], **labels, class_=priority_class)
        mac = stats.get("mac")
        for priority_class, pfc in enumerate((mac["pfc"] if mac else None) or ()):
            self._add_pauses(pfc, {**labels, "class_": priority_class})

    def _add_pauses(self, pfc: PfcClassStats, labels: Mapping[str, object]) -> None:
        self.pauses_sent.add(pfc["pauses_sent"], **labels)
        self.pauses_received.add(pfc["pauses_received"], **labels)
        self.paused.add(pfc["paused_ps"] / PS_PER_S, **labels)
        self.is_paused.add(int(pfc["is_paused"]), **labels)


def families_of(
    fabric: FabricSpec,
    dilation: float,
    stats: SwitchesStats | None,
    counters: Mapping[str, SwitchCounters],
) -> list[Family]:
    """Return the metrics of a lab.

    Args:
        fabric: the lab's fabric.
        dilation: seconds of the machine's clock for each emulated second.
        stats: the embedded switches' own counters; None for BMv2, which has none.
        counters: counters read over P4Runtime, by switch.

    """
    clock = [Family("weft_dilation_ratio", "gauge", "Seconds of the machine's clock in an emulated second.")]
    clock[0].add(dilation)
    ports, switches = _Port(dilation), _Switch()
    if stats is not None:
        now = Family("weft_emulated_seconds_total", "counter", "Time of the lab's emulated clock.")
        now.add(stats["now_ps"] / PS_PER_S)
        clock.append(now)
        for name, each in stats["switches"].items():
            switches.add(name, each)
            for port, port_stats in each["ports"].items():
                ports.add(fabric.switch(name), int(port), port_stats)
    for name, counted in counters.items():
        switches.add_counters(counted)
        for number, port_counters in counted.ports.items():
            if 1 <= number <= len(fabric.switch(name).ports):
                peer = fabric.switch(name).port(number).peer.node
                ports.marked.add(port_counters.ecn_marked.packets, switch=name, port=number, peer=peer)
    return [*clock, *switches.all, *ports.all]


class _Switch(Families):
    """Metrics of switches, with the label switch."""

    def __init__(self) -> None:
        self.received = Family("weft_switch_received_packets_total", "counter", "Packets received by the switch.")
        self.dropped = Family(
            "weft_switch_dropped_packets_total",
            "counter",
            "Packets that the switch's pipeline dropped, by reason.",
        )
        self.buffer = Family("weft_switch_buffer_used_bytes", "gauge", "Bytes in use of shared memory.")
        self.buffer_limit = Family("weft_switch_buffer_capacity_bytes", "gauge", "Memory that the ports share.")
        self.aggregation = Family(
            "weft_aggregation_packets_total", "counter", "Packets of reductions in the network, by outcome."
        )
        self.jobs = Family(
            "weft_aggregation_job_packets_total", "counter", "Packets of each aggregation job at the switch."
        )

    def add(self, name: str, stats: SwitchStats) -> None:
        self.received.add(stats["received_packets"], switch=name)
        for reason, packets in stats["drops"].items():
            self.dropped.add(packets, switch=name, reason=reason)
        if stats["buffer"] is not None:
            self.buffer.add(stats["buffer"]["used_bytes"], switch=name)
            self.buffer_limit.add(stats["buffer"]["capacity_bytes"], switch=name)

    def add_counters(self, counted: SwitchCounters) -> None:
        for outcome, count in counted.aggregation.items():
            self.aggregation.add(count.packets, switch=counted.switch, outcome=outcome)
        for job, count in counted.jobs.items():
            self.jobs.add(count.packets, switch=counted.switch, job=job)
