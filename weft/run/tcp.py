"""TCP flows as a task of a fabric."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from weft.quantities.fairness import jain_index
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_S
from weft.results.tcp import TCP, TcpFlowResult, TcpResult, TcpWindows
from weft.run.task import Ended, Task
from weft.traffic.answers import TcpEndRecord, TcpRecords
from weft.traffic.commands.tcp import TcpEnd
from weft.traffic.mapped_data import RankBuffer

if TYPE_CHECKING:
    from weft.run.fabric import Fabric


@dataclass(frozen=True)
class TcpFlow:
    """A connection between two hosts, by their indices in the fabric; `end` has the settings of both ends."""

    source: int
    destination: int
    end: TcpEnd


def tcp_task(fabric: Fabric, flows: Sequence[TcpFlow], sample_interval_ps: int = 0) -> Task[TcpResult]:
    """Return the flows as a task, over the first NIC of each host."""

    def prepare(_buffers: Sequence[RankBuffer], _results: list[Path], _jobs: Sequence[int]) -> int:
        version = fabric.options.ip_version
        ends: dict[int, list[TcpEnd]] = defaultdict(list)
        for number, flow in enumerate(flows):
            source, destination = (
                str((nic.ipv4 if version == 4 else nic.ipv6).ip)
                for nic in (fabric.topology.hosts[end].nics[0] for end in (flow.source, flow.destination))
            )
            end = replace(flow.end, flow=number, ip_version=version)
            ends[flow.source].append(replace(end, sends=True, peer=destination))
            ends[flow.destination].append(replace(end, sends=False, peer=source))
        return fabric.hosts.prepare_tcp_flows(dict(sorted(ends.items())), sample_interval_ps)

    def result(ended: Sequence[Ended]) -> TcpResult:
        (run,) = ended
        names = [host.name for host in fabric.topology.hosts]
        records = [each for each in run.answers if isinstance(each, TcpRecords)]
        return _result(flows, names, records, min(run.outcome.started_ps))

    return Task(counted(len(flows), "TCP flow"), TCP, prepare, result, asks="tcp")


def _result(flows: Sequence[TcpFlow], names: Sequence[str], records: Sequence[TcpRecords], began_ps: int) -> TcpResult:
    senders = {end.flow: end for each in records for end in each.ends if end.sends}
    receivers = {end.flow: end for each in records for end in each.ends if not end.sends}
    found = tuple(
        _flow_result(flow, names, senders[number], receivers[number], began_ps) for number, flow in enumerate(flows)
    )
    first_ps = min(end.started_ps for end in senders.values())
    time_ps = max(end.finished_ps for end in senders.values()) - first_ps
    delivered_bytes = sum(end.bytes for end in receivers.values())
    received = sum(end.received_segments for end in receivers.values())
    return TcpResult(
        flows=found,
        windows=_windows(records, began_ps),
        bytes=delivered_bytes,
        time_ps=time_ps,
        goodput_bps=round(8 * delivered_bytes * PS_PER_S / time_ps),
        retransmitted_segments=sum(each.retransmitted_segments for each in found),
        timeouts=sum(each.timeouts for each in found),
        marked_share=_share(sum(end.marked_segments for end in receivers.values()), received),
        fairness=jain_index([each.goodput_bps for each in found]),
        spoilt_segments=sum(end.spoilt_segments for end in receivers.values()),
    )


def _flow_result(
    flow: TcpFlow, names: Sequence[str], sender: TcpEndRecord, receiver: TcpEndRecord, began_ps: int
) -> TcpFlowResult:
    completion_ps = sender.finished_ps - sender.started_ps
    return TcpFlowResult(
        source=names[flow.source],
        destination=names[flow.destination],
        congestion_control=flow.end.congestion_control,
        start_ps=sender.started_ps - began_ps,
        completion_ps=completion_ps,
        bytes=receiver.bytes,
        goodput_bps=round(8 * receiver.bytes * PS_PER_S / completion_ps),
        sent_segments=sender.sent_segments,
        retransmitted_segments=sender.retransmitted_segments,
        timeouts=sender.timeouts,
        fast_recoveries=sender.fast_recoveries,
        ecn_reductions=sender.ecn_reductions,
        tail_probes=sender.tail_probes,
        spurious_segments=sender.reported_duplicates,
        marked_segments=receiver.marked_segments,
        out_of_order_segments=receiver.out_of_order_segments,
        duplicate_segments=receiver.duplicate_segments,
        echo_share=_share(sender.received_ecn_echoes, sender.received_acknowledgements),
        marked_share=_share(receiver.marked_segments, receiver.received_segments),
        smoothed_round_trip_ps=sender.smoothed_round_trip_ps,
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _windows(records: Sequence[TcpRecords], began_ps: int) -> TcpWindows:
    columns: Mapping[str, list[float]] = {
        name: [value for each in records for value in getattr(each.samples, name)]
        for name in ("flow", "time_ps", "window_bytes", "in_flight_bytes", "marked_share")
    }
    order = sorted(range(len(columns["flow"])), key=lambda row: (columns["time_ps"][row], columns["flow"][row]))
    in_order = {name: [column[row] for row in order] for name, column in columns.items()}
    return TcpWindows(
        flow=tuple(map(int, in_order["flow"])),
        time_ps=tuple(int(time_ps) - began_ps for time_ps in in_order["time_ps"]),
        window_bytes=tuple(map(int, in_order["window_bytes"])),
        in_flight_bytes=tuple(map(int, in_order["in_flight_bytes"])),
        marked_share=tuple(in_order["marked_share"]),
    )
