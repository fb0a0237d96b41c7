"""A host's ends of TCP flows, one run of them, on its own IP stack."""

from __future__ import annotations

from weft.engine import _core
from weft.engine.records import RunStatus
from weft.traffic.answers import Memory, TcpEndRecord, TcpRecords, TcpSamples
from weft.traffic.commands.runs import Start
from weft.traffic.commands.tcp import PrepareTcpFlows, TcpEnd
from weft.traffic.host import Host

_IP_AND_TCP_BYTES = {4: 40, 6: 60}


class HostTcpFlows:
    """The part of one run."""

    def __init__(self, host: Host, command: PrepareTcpFlows) -> None:
        """Raises ValueError for values out of range, or a host without a stack of its own."""
        self._run = command.run
        config = host.config.ip
        mtu_bytes = config[0].mtu_bytes if config else 0
        port_of = host.ip.ephemeral_port
        outgoing = [_flow_config(end, mtu_bytes, port_of(end.port)) for end in command.ends if end.sends]
        incoming = [_flow_config(end, mtu_bytes) for end in command.ends if not end.sends]
        self._flows = _core.TcpFlows(
            host.ip,
            host.executor,
            host.tcp,
            outgoing=outgoing,
            incoming=incoming,
            sample_interval_ps=command.sample_interval_ps,
        )

    def memory(self) -> Memory:
        """Return nothing: peers write nowhere."""
        return {}

    def start(self, command: Start) -> None:
        """Start the flows, each so long after the run's time as it says."""
        self._flows.start(command.start_ps)

    def status(self) -> RunStatus:
        """Return the state; nodes are ends of flows."""
        return self._flows.status()

    def records(self) -> TcpRecords:
        """Return what became of all ends."""
        samples = self._flows.samples()
        return TcpRecords(
            self._run,
            tuple(_end_record(each) for each in self._flows.records()),
            TcpSamples(
                flow=tuple(samples["flow"].tolist()),
                time_ps=tuple(samples["time_ps"].tolist()),
                window_bytes=tuple(samples["window_bytes"].tolist()),
                in_flight_bytes=tuple(samples["in_flight_bytes"].tolist()),
                marked_share=tuple(samples["marked_share"].tolist()),
            ),
        )

    def release(self) -> None:
        """End the run if it has not ended, and give its ports back."""
        self._flows.close()


def _flow_config(end: TcpEnd, mtu_bytes: int, source_port: int = 0) -> _core.TcpFlowConfig:
    return _core.TcpFlowConfig(
        end.flow,
        peer=end.peer,
        port=end.port,
        source_port=source_port,
        start_ps=end.start_ps,
        size_bytes=end.size_bytes,
        duration_ps=end.duration_ps,
        dscp=end.dscp,
        congestion_control=end.congestion_control,
        maximum_segment_bytes=mtu_bytes - _IP_AND_TCP_BYTES[end.ip_version],
        ecn=end.ecn,
        sack=end.sack,
        receive_buffer_bytes=end.receive_buffer_bytes,
        initial_window_segments=end.initial_window_segments,
        least_timeout_ps=end.least_timeout_ps,
        delayed_acknowledgement_ps=end.delayed_acknowledgement_ps,
        acknowledge_every_segments=end.acknowledge_every_segments,
        send_jitter_ps=end.send_jitter_ps,
        parameters=end.parameters,
    )


def _end_record(record: _core.TcpFlowRecord) -> TcpEndRecord:
    sender, receiver = record["sender"], record["receiver"]
    return TcpEndRecord(
        flow=record["flow"],
        sends=record["sends"],
        started_ps=record["started_ps"],
        finished_ps=record["finished_ps"],
        bytes=record["bytes"],
        spoilt_segments=record["spoilt_segments"],
        smoothed_round_trip_ps=record["smoothed_round_trip_ps"],
        sent_segments=sender["sent_segments"],
        retransmitted_segments=sender["retransmitted_segments"],
        timeouts=sender["timeouts"],
        fast_recoveries=sender["fast_recoveries"],
        ecn_reductions=sender["ecn_reductions"],
        tail_probes=sender["tail_probes"],
        reported_duplicates=sender["reported_duplicates"],
        received_acknowledgements=sender["received_acknowledgements"],
        received_ecn_echoes=sender["received_ecn_echoes"],
        received_segments=receiver["received_segments"],
        marked_segments=receiver["marked_segments"],
        out_of_order_segments=receiver["out_of_order_segments"],
        duplicate_segments=receiver["duplicate_segments"],
    )
