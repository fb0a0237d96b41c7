"""A host's part in a workload of many flows: what it sends and receives, and the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from weft.engine import _core
from weft.engine.records import RunStatus
from weft.quantities.arrays import Integers
from weft.traffic.answers import EndedFlows, Memory
from weft.traffic.commands.flows import PrepareFlows
from weft.traffic.commands.runs import Start
from weft.traffic.extensions import engine_name
from weft.traffic.host import Host
from weft.traffic.host_inside import ChunkCopies
from weft.traffic.messages import AS_LENGTHS
from weft.traffic.native_schedule import RemoteBuffer
from weft.traffic.schedule_nodes import SINK
from weft.traffic.transports.kind import NO_PEERS


class HostFlows:
    """The flows of one run, carried out natively: a queue pair for each, from its start to its end."""

    def __init__(self, host: Host, command: PrepareFlows) -> None:
        self._host = host
        self._command = command
        largest = max((flow.size_bytes for flow in command.received), default=0)
        self._sink = host.nic.register_sink(largest) if largest else None
        self._generator: _core.FlowGenerator | None = None

    def memory(self) -> Memory:
        """Return where peers write to."""
        sink = self._sink
        return {} if sink is None else {SINK: RemoteBuffer(sink.virtual_address, sink.rkey)}

    def start(self, command: Start) -> None:
        """Start the flows. Raises ValueError if they run already, or the memory of a peer is missing."""
        if self._generator is not None:
            raise ValueError("the flows have been started already")
        generator = _make_generator(self._host, self._command)
        for flow, start_ps, plane, size_bytes, peer, peer_ip, queue_pair, remote in self._command.sent:
            sink = _sink_of(command, peer)
            generator.add_sent(
                flow,
                start_ps,
                plane,
                peer_ip,
                queue_pair,
                remote,
                size_bytes,
                sink.virtual_address,
                sink.rkey,
                observed=self._host.observed_flow(peer, plane),
            )
        for flow, start_ps, plane, size_bytes, _, peer_ip, queue_pair, remote in self._command.received:
            generator.add_received(flow, start_ps, plane, peer_ip, queue_pair, remote, size_bytes)
        if self._host.evs is not None:
            self._host.evs.follow_flows(generator, _peers(self._command))
        generator.start(command.start_ps, run=self._command.run)
        self._host.add_generator(generator)
        self._generator = generator

    def status(self) -> RunStatus | None:
        """Return the state as a schedule's run has it; its nodes are flows, sent and received. None before a start."""
        return None if self._generator is None else self._generator.status()

    def records(self) -> EndedFlows:
        """Return columns of the flows that this host sent and that have ended."""
        if self._generator is None:
            return EndedFlows()
        columns = self._generator.records()
        if self._host.inside is not None and self._host.inside.own_copies:
            columns["finished_ps"] += self._copies_ps(columns["flow"], self._host.inside.own_copies)
        return EndedFlows(
            flow=tuple(columns["flow"].tolist()),
            started_ps=tuple(columns["started_ps"].tolist()),
            finished_ps=tuple(columns["finished_ps"].tolist()),
            retransmitted_packets=tuple(columns["retransmitted_packets"].tolist()),
        )

    def _copies_ps(self, flows: Integers, own: Mapping[int, ChunkCopies]) -> Integers:
        """Return how much later flows are acknowledged because they are copied to host memory first."""
        copies_ps = {
            flow: own[plane].alone_ps(size_bytes)
            for flow, _, plane, size_bytes, *_ in self._command.sent
            if plane in own
        }
        return np.array([copies_ps.get(flow, 0) for flow in flows.tolist()], np.int64)

    def release(self) -> None:
        """End the run if it has not ended, and release its memory."""
        if self._generator is not None:
            self._host.remove_generator(self._generator)
        if self._sink is not None:
            self._sink.deregister()


def _make_generator(host: Host, command: PrepareFlows) -> _core.FlowGenerator:
    """Return a generator of flows with a port for each plane, and queue pairs as `Host.connect` makes them."""
    generator = _core.FlowGenerator(host.nic, host.executor)
    applied, transport = host.transport, host.config.transport
    native = engine_name(transport.congestion_control)
    peers = _peers(command)
    for number, plane in enumerate(host.planes):
        others = [each for each in host.planes if each is not plane] if transport.kind.spans_planes else []
        nic = applied.whole(plane.config, [each.port for each in others])
        more_planes = [(each.port, each.config.gateway_mac) for each in others]
        generator.add_port(
            plane.port,
            destination_mac=plane.config.gateway_mac,
            congestion_control=native or partial(applied.congestion_control, nic),
            **applied.path_of_any_frame(nic),
            parameters=transport.parameters if native else {},
            preset=transport.preset or "",
            path_choice=None if transport.path == "flow" else partial(applied.path_choice, plane.config, plane.port),
            as_lengths=command.payload == AS_LENGTHS,
            options={**applied.options(nic), "telemetry": command.telemetry},
            **transport.kind.flow_options(
                transport, more_planes, host.config.ev_paths, peers.get(number, NO_PEERS), host.ev_profile
            ),
        )
    first_ip = {flow.peer: flow.peer_ip for flow in (*command.sent, *command.received)}
    for peer in command.more_planes:
        if peer.peer in first_ip:
            generator.add_peer(first_ip[peer.peer], [each.destination_ip for each in peer.planes])
    return generator


def _peers(command: PrepareFlows) -> dict[int, dict[str, int]]:
    """Return the addresses of the flows' other ends with their planes, by the first plane of a flow."""
    more = {each.peer: {plane.destination_ip: plane.plane for plane in each.planes} for each in command.more_planes}
    peers: dict[int, dict[str, int]] = {}
    for flow in (*command.sent, *command.received):
        peers.setdefault(flow.plane, {}).update({flow.peer_ip: flow.plane, **more.get(flow.peer, {})})
    return peers


def _sink_of(command: Start, peer: int) -> RemoteBuffer:
    memory = command.peers.get(peer)
    if memory is None or SINK not in memory:
        given = ", ".join(str(each) for each, buffers in command.peers.items() if SINK in buffers) or "none"
        raise ValueError(f"peers has no sink of rank {peer} (given: {given})")
    return memory[SINK]
