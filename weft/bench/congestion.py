"""Signs of congestion in a trial: marks, drops, pauses and the memory of switches."""

from __future__ import annotations

import numpy as np

from weft.bench.subject import Subject
from weft.quantities.units import PS_PER_US
from weft.results.report_parts import Cell
from weft.trials import TrialRun

HEADINGS = ("marked (%)", "PAUSE frames", "paused (us)", "dropped (ppm)", "trimmed", "retransmitted")


def data_packets(run: TrialRun, subject: Subject, data_bytes: int | None = None) -> int:
    """Return the data packets of all flows, or of other traffic of so many bytes, and those sent again."""
    sizes = np.asarray(run.flows["size_bytes"] if data_bytes is None else [data_bytes])
    return int((-(-sizes // subject.spec.options.mtu_bytes)).sum()) + run.results.retransmissions


def marked_percent(run: TrialRun, subject: Subject, data_bytes: int | None = None) -> float:
    """Return the share of data packets marked CE, in %; at most 100, as several switches may mark a packet."""
    marked = sum(each.ecn_marked_packets for each in run.results.planes)
    return min(100.0, 100 * marked / max(1, data_packets(run, subject, data_bytes)))


def dropped_ppm(run: TrialRun) -> float:
    """Return the packets dropped, by million that hosts sent."""
    conserved = run.results.packet_conservation
    entered = 0 if conserved is None else sum(each.packets for each in conserved.entered.values())
    return 1e6 * sum(run.results.drops.values()) / max(1, entered)


def pauses(run: TrialRun) -> int:
    """Return the PAUSE frames of all switches and hosts."""
    return sum(each.pauses_sent for each in run.results.memory)


def paused_us(run: TrialRun) -> float:
    """Return the time for which classes of ports were held, of all together."""
    return sum(each.paused_ps for each in run.results.memory) / PS_PER_US


def trimmed(run: TrialRun) -> int:
    """Return the packets trimmed."""
    return sum(each.trimmed_packets for each in run.results.trimming)


def buffer_percent(run: TrialRun, subject: Subject) -> float:
    """Return the largest share of its memory that a switch has used, in %.

    Of a port's memory where each port has its own; of the switch's where ports share it.
    """
    names, capacities = run.run.texts("ports", "port"), run.run.integers("ports", "queue_capacity_bytes")
    if run.results.memory:
        shares = []
        for each in run.results.memory:
            own = [port.split(":")[0] == each.largest_buffer_switch for port in names.tolist()]
            capacity = subject.spec.options.buffer.capacity or int(capacities[own].sum())
            shares.append(100 * each.largest_buffer_bytes / max(1, capacity))
        return max(shares)
    switches = {switch.name for switch in subject.fabric.switches}
    at_switches = [port.split(":")[0] in switches for port in names.tolist()]
    queues = run.run.integers("ports", "largest_queue_bytes")[at_switches]
    return float((100 * queues / np.maximum(1, capacities[at_switches])).max(initial=0.0))


def congestion_row(run: TrialRun, subject: Subject, data_bytes: int | None = None) -> list[Cell]:
    """Return figures in the order of `HEADINGS`; `data_bytes` is the size of traffic that is not a list of flows."""
    return [
        round(marked_percent(run, subject, data_bytes), 3),
        pauses(run),
        round(paused_us(run), 1),
        round(dropped_ppm(run), 1),
        trimmed(run),
        run.results.retransmissions,
    ]
