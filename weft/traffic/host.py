"""A host: one NIC with a port per plane, its connections and its aggregation jobs."""

from __future__ import annotations

import contextlib
import hashlib
import weakref
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

import numpy as np
import numpy.typing as npt

from weft.engine import (
    CongestionControl,
    Engine,
    IpStack,
    PathChoice,
    PcapWriter,
    PortMac,
    Probe,
    TransmitPort,
    _core,
    congestion_parameters_in_force,
    flowlet,
    make_congestion_control,
    spray,
)
from weft.traffic.answers import PlaneInForce, TransportInForce
from weft.traffic.attachment import Attach, Attachment, SocketAttachment
from weft.traffic.class_reference import is_class_reference
from weft.traffic.commands.aggregation import Membership, MovedStream
from weft.traffic.commands.connections import DEFAULT_RETRY_LIMIT, Connection
from weft.traffic.commands.counters import AskTransport
from weft.traffic.commands.parameters import ParameterPart, ParameterRequests
from weft.traffic.commands.services import ServicePart, ServiceRequests
from weft.traffic.extensions import ClassSpec, PathProperties, congestion_control, path_choice
from weft.traffic.host_config import HostConfig, NicConfig, without_prefix
from weft.traffic.host_ip import make_ip_stack
from weft.traffic.host_reductions import REDUCTION_TOTALS, HostReductions
from weft.traffic.host_stats import ConnectionStats, HostStats
from weft.traffic.int_stack import stack_in_bytes
from weft.traffic.scale_up import ScaleUpLinks, ScaleUpPort
from weft.traffic.schedule_nodes import Channel
from weft.traffic.transport_settings import TransportSettings, preset_of

if TYPE_CHECKING:
    from weft.engine._core import NicStats, PortMacStats

_QUEUE_PAIR_TOTALS = tuple(_core.record_types()["RcCounters"])
_TOTALS = (*_QUEUE_PAIR_TOTALS, *REDUCTION_TOTALS)


class QueuePairOptions(TypedDict, total=False):
    """Options of a queue pair that are no settings of the host's transport; see `RcOptions`."""

    retry_limit: int
    rnr_retry_limit: int
    rnr_timer_code: int
    receive_for_immediate: bool


@dataclass
class _Plane:
    config: NicConfig
    port: int
    attachment: Attachment
    transmit_port: TransmitPort
    mac: PortMac | None = None


@dataclass
class _Connection:
    queue_pair: _core.RcQueuePair
    channel: int


class Host:
    """The NIC of an endpoint, joined to its fabric by `attach`, and what is attached to it.

    Raises ValueError for invalid addresses, and what `attach` raises.
    """

    def __init__(
        self, config: HostConfig, engine: Engine, attach: Attach, scale_up: ScaleUpLinks | None = None
    ) -> None:
        self.config = config
        self.engine = engine
        self.nic = _core.Nic(self.engine, config.name, **asdict(config.nic_costs))
        self.executor = _core.ScheduleExecutor(self.engine)
        self.reductions = HostReductions(self.nic, self.executor, len(config.nics))
        self._planes = [self._open_plane(nic, attach(nic.interface)) for nic in config.nics]
        self._ip = make_ip_stack(self.nic, config.ip) if config.ip is not None else None
        self._scale_up = (
            ScaleUpPort(scale_up, config.rank, self.nic, self.executor) if scale_up is not None else None
        )
        self._connections: dict[Channel, _Connection] = {}
        # The executor's numbers of channels without a queue pair, for which others stand.
        self._suspended: dict[Channel, int] = {}
        self._generators: list[_core.FlowGenerator] = []
        self._opened: list[_core.RcQueuePair] = []
        self._closed_totals: Counter[str] = Counter()
        self.hop_latencies: _core.HopLatencies | None = None
        """What INT has told of hops; None unless it is counted (`count_hops`)."""
        self._captures: dict[int, PcapWriter] = {}
        self.probe: Probe | None = None
        if config.recording.any:
            self.probe = Probe.of(self._planes[0].transmit_port)
            if config.recording.steps:
                self.executor.observe(config.rank)

    def _open_plane(self, config: NicConfig, attachment: Attachment) -> _Plane:
        transmit_port = TransmitPort(
            self.engine,
            attachment.link,
            rate_bps=config.rate_bps if config.paced else 0,
            quantum_bytes=config.quantum_bytes,
        )
        addresses = [config.ipv4] + ([config.ipv6] if config.ipv6 else [])
        port = self.nic.add_port(transmit_port, mac=config.mac, addresses=addresses)
        mac = self._make_mac(config, transmit_port, port)
        if mac is not None:
            attachment.connect(mac, 0)
        else:
            attachment.connect(self.nic, port)
        return _Plane(config, port, attachment, transmit_port, mac)

    def _make_mac(self, config: NicConfig, transmit_port: TransmitPort, port: int) -> PortMac | None:
        """Return the MAC of a port with flow control."""
        if not config.pfc_quanta and config.credits is None:
            return None
        mac = PortMac(self.engine, transmit_port, self.nic, port)
        if config.class_of_dscp:
            mac.classify_by_dscp(dict(config.class_of_dscp))
        if config.pfc_quanta:
            mac.enable_pfc(source_mac=config.mac, pause_quanta=config.pfc_quanta)
        if config.credits is not None:
            mac.enable_credits(source_mac=config.mac, **asdict(config.credits))
        return mac

    def close(self) -> None:
        """Close the interfaces and captures; stop the engine's thread, if it has one."""
        self.engine.stop()
        for plane in self._planes:
            plane.attachment.close()
        for capture in self._captures.values():
            # Callers who need the capture's error end the capture first.
            with contextlib.suppress(OSError):
                capture.close()

    @property
    def ip(self) -> IpStack:
        """The host's own IP stack. Raises ValueError if IP is its kernel's."""
        if self._ip is None:
            raise ValueError(f"{self.config.name} has no IP stack of its own")
        return self._ip

    @cached_property
    def tcp(self) -> _core.TcpProtocol:
        """TCP on the host's own IP stack. Raises ValueError if IP is its kernel's."""
        return _core.TcpProtocol(self.ip)

    def forget_neighbours(self) -> None:
        """Have the host's own IP stack ask for its neighbours again."""
        if self._ip is not None:
            self._ip.forget_neighbours()

    def plane(self, number: int) -> _Plane:
        """Return a plane. Raises ValueError with the valid ones."""
        if not 0 <= number < len(self._planes):
            raise ValueError(f"plane {number} (valid: 0 to {len(self._planes) - 1})")
        return self._planes[number]

    def timeout_ps(self, plane: _Plane) -> int:
        """Return the least retransmission timeout: above the path's round trip and the host's jitter."""
        return _core.retransmission_timeout_ps(
            plane.config.base_round_trip_ps,
            wall_clock_floor_ns=self.config.wall_clock_floor_ns,
            dilation=self.config.dilation,
        )

    def _queue_pair_timeout_ps(self, plane: _Plane) -> int:
        return self.config.transport.retransmission_timeout_ps or self.timeout_ps(plane)

    def connect(self, connection: Connection) -> None:
        """Make a queue pair, in place of one to the same peer with the same label, or of those that stand for it.

        One labelled for scale-up links is made over the host's own links. Raises ValueError if it has none.
        """
        channel = Channel(connection.plane, connection.peer, connection.label, connection.traffic_class)
        if channel.is_scale_up:
            self._scale_up_port().connect(channel, connection.queue_pair, connection.remote_queue_pair)
            return
        plane = self.plane(connection.plane)
        if connection.destination_ip is None:
            raise ValueError(f"the connection to rank {connection.peer} has no destination_ip")
        suspended = self._suspended.pop(channel, None)
        self.disconnect(channel)
        queue_pair = self._make_queue_pair(
            plane,
            self.executor,
            connection,
            without_prefix(connection.destination_ip),
            retry_limit=connection.retry_limit,
        )
        self._observe(queue_pair, channel)
        if suspended is None:
            self._connections[channel] = _Connection(queue_pair, self.executor.add_channel(queue_pair))
        else:
            self.executor.resume(suspended, queue_pair)
            self._connections[channel] = _Connection(queue_pair, suspended)

    def _make_queue_pair(
        self,
        plane: _Plane,
        completions: _core.CompletionHandler,
        connection: Connection,
        destination_ip: str,
        **options: Unpack[QueuePairOptions],
    ) -> _core.RcQueuePair:
        """Make a queue pair with the host's transport settings; `options` are those of the queue pair beside them."""
        transport = self.config.transport.of_class(connection.traffic_class)
        number = connection.queue_pair
        frame_bytes = self._full_frame_bytes(":" in destination_ip, connection.telemetry)
        return _core.RcQueuePair(
            self.nic,
            plane.port,
            completions,
            queue_pair=number,
            remote_queue_pair=connection.remote_queue_pair,
            destination_mac=plane.config.gateway_mac
            if connection.destination_mac is None
            else connection.destination_mac,
            destination_ip=destination_ip,
            congestion_control=self._congestion_control(plane, frame_bytes, transport),
            path_choice=self._path_choice(plane, number, frame_bytes),
            retransmission=transport.retransmission,
            retransmission_timeout_ps=self._queue_pair_timeout_ps(plane),
            reordering_window_ps=transport.reordering_window(plane.config.base_round_trip_ps),
            ack_interval_packets=transport.ack_interval(),
            max_outstanding_reads=transport.max_outstanding_reads,
            cnp_interval_ps=transport.cnp_interval(),
            source_udp_port=connection.source_udp_port,
            initial_psn=connection.initial_psn,
            remote_initial_psn=connection.remote_initial_psn,
            path_mtu_bytes=self.config.mtu_bytes,
            segment_packets=self.config.segments.packets,
            segment_message_bytes=self.config.segments.message_bytes,
            telemetry=connection.telemetry,
            data_class=connection.traffic_class,
            **options,
        )

    def open_queue_pair(
        self,
        connection: Connection,
        completions: _core.CompletionHandler,
        **options: Unpack[QueuePairOptions],
    ) -> _core.RcQueuePair:
        """Return a queue pair of a program's, whose completions go to `completions`. ValueError: as for `connect`."""
        plane = self.plane(connection.plane)
        if connection.destination_ip is None:
            raise ValueError(f"the connection to rank {connection.peer} has no destination_ip")
        destination_ip = without_prefix(connection.destination_ip)
        queue_pair = self._make_queue_pair(plane, completions, connection, destination_ip, **options)
        self._observe(queue_pair, Channel(connection.plane, connection.peer, connection.label))
        self._opened.append(queue_pair)
        return queue_pair

    def close_queue_pair(self, queue_pair: _core.RcQueuePair) -> None:
        """Remove a queue pair that was opened; what still arrives for it is dropped and counted."""
        self._opened.remove(queue_pair)
        self._closed_totals.update(_totals_of(queue_pair.stats()))
        self.nic.detach(queue_pair)

    def suspend(self, channel: Channel) -> int:
        """Stop a connection whose plane is lost; returns how many messages have arrived over it.

        What is posted to it is kept until `detour`. Raises ValueError if there is no such connection.
        """
        connection = self._connections.pop(channel, None)
        if connection is None:
            raise ValueError(f"no connection {channel} to suspend")
        received = self.executor.suspend(connection.channel)
        self._closed_totals.update(_totals_of(connection.queue_pair.stats()))
        self.nic.detach(connection.queue_pair)
        self._suspended[channel] = connection.channel
        return received

    def detour(self, channel: Channel, over: Iterable[Channel], peer_received: int) -> None:
        """Have other connections carry what a suspended one would; see `ScheduleExecutor.detour`.

        Raises ValueError if it is not suspended, or if others are missing or stand for something else.
        """
        others = list(over)
        for each in (channel, *others):
            known = self._suspended if each == channel else self._connections
            if each not in known:
                raise ValueError(f"{each} is not {'suspended' if each == channel else 'connected'}")
        numbers = [self._connections[each].channel for each in others]
        self.executor.detour(self._suspended[channel], numbers, peer_received)

    def count_hops(self) -> None:
        """Have queue pairs that are made from now on count what INT tells of hops."""
        self.hop_latencies = _core.HopLatencies(self.engine)

    def _observe(self, queue_pair: _core.RcQueuePair, channel: Channel) -> None:
        if self.hop_latencies is not None:
            queue_pair.count_hops(self.hop_latencies, channel.peer, channel.plane)
        recording = self.config.recording
        telemetry = recording.telemetry_of(channel.peer)
        if recording.messages or telemetry or recording.steps:
            queue_pair.observe(
                self.config.rank,
                channel.peer,
                channel.plane,
                messages=recording.messages,
                telemetry=telemetry,
            )

    def _full_frame_bytes(self, is_ipv6: bool, telemetry: bool) -> int:
        return _core.full_frame_bytes(
            self.config.mtu_bytes,
            is_ipv6=is_ipv6,
            telemetry=telemetry,
            retransmission=self.config.transport.retransmission,
        )

    def _congestion_control(
        self, plane: _Plane, frame_bytes: int, transport: TransportSettings
    ) -> CongestionControl:
        path = self._path_properties(plane, frame_bytes)
        if is_class_reference(transport.congestion_control):
            return congestion_control(ClassSpec(transport.congestion_control, transport.parameters), path)
        return make_congestion_control(
            transport.congestion_control,
            **vars(path),
            ack_interval_packets=transport.ack_interval(),
            parameters=transport.parameters,
            preset=transport.preset or "",
        )

    def transport_in_force(self, asked: AskTransport) -> TransportInForce:
        """Return with which settings queue pairs are made."""
        transport = self.config.transport
        preset = preset_of(transport.congestion_control, transport.preset)
        frame_bytes = self._full_frame_bytes(asked.ip_version == 6, asked.telemetry)
        return TransportInForce(
            congestion_control=transport.congestion_control,
            preset=preset.name if preset is not None else None,
            retransmission=transport.retransmission,
            path=transport.path,
            path_parameters=dict(transport.path_parameters),
            spray_paths=transport.spray_paths if transport.path == "spray" else None,
            ack_interval_packets=transport.ack_interval(),
            cnp_interval_ps=transport.cnp_interval(),
            retry_limit=DEFAULT_RETRY_LIMIT,
            planes=tuple(self._plane_in_force(plane, frame_bytes) for plane in self._planes),
        )

    def _plane_in_force(self, plane: _Plane, frame_bytes: int) -> PlaneInForce:
        transport, path = self.config.transport, self._path_properties(plane, frame_bytes)
        parameters: Mapping[str, Any] = transport.parameters
        if not is_class_reference(transport.congestion_control):
            parameters = congestion_parameters_in_force(
                transport.congestion_control,
                **vars(path),
                ack_interval_packets=transport.ack_interval(),
                parameters=transport.parameters,
                preset=transport.preset or "",
            )
        flowlet_gap_ps = transport.flowlet_gap_ps or plane.config.base_round_trip_ps
        return PlaneInForce(
            line_rate_bps=plane.config.rate_bps,
            base_round_trip_ps=plane.config.base_round_trip_ps,
            nearest_round_trip_ps=plane.config.nearest_round_trip_ps,
            frame_bytes=frame_bytes,
            least_retransmission_timeout_ps=self._queue_pair_timeout_ps(plane),
            least_aggregation_timeout_ps=self.timeout_ps(plane),
            reordering_window_ps=transport.reordering_window(plane.config.base_round_trip_ps),
            flowlet_gap_ps=flowlet_gap_ps if transport.path == "flowlet" else None,
            parameters=dict(parameters),
        )

    def _path_choice(self, plane: _Plane, queue_pair: int, frame_bytes: int) -> PathChoice | None:
        transport, seed = self.config.transport, self._path_seed(plane, queue_pair)
        if transport.path == "spray":
            return spray(seed, transport.spray_paths)
        if transport.path == "flowlet":
            return flowlet(seed, transport.flowlet_gap_ps or plane.config.base_round_trip_ps)
        if is_class_reference(transport.path):
            spec = ClassSpec(transport.path, transport.path_parameters)
            path = self._path_properties(plane, frame_bytes)
            return path_choice(spec, path, np.random.default_rng(seed))
        return None

    def _new_congestion_control(self, plane: int, frame_bytes: int) -> CongestionControl:
        return self._congestion_control(self._planes[plane], frame_bytes, self.config.transport)

    def _new_path_choice(self, plane: int, queue_pair: int, frame_bytes: int) -> PathChoice | None:
        return self._path_choice(self._planes[plane], queue_pair, frame_bytes)

    def _path_properties(self, plane: _Plane, frame_bytes: int) -> PathProperties:
        return PathProperties(
            line_rate_bps=plane.config.rate_bps,
            base_round_trip_ps=plane.config.base_round_trip_ps,
            frame_bytes=frame_bytes,
            nearest_round_trip_ps=plane.config.nearest_round_trip_ps,
            nearest_hops=plane.config.nearest_hops,
            hop_round_trip_ps=plane.config.hop_round_trip_ps,
            int_rates_bps=self.config.int_rates_bps,
        )

    def _path_of_any_frame(self, plane: _Plane) -> dict[str, Any]:
        """Return the properties that do not depend on a flow's packets."""
        return {
            name: value
            for name, value in vars(self._path_properties(plane, 0)).items()
            if name != "frame_bytes"
        }

    def _path_seed(self, plane: _Plane, queue_pair: int) -> int:
        text = f"{self.config.seed} {self.config.rank} {plane.port} {queue_pair}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")

    def make_flow_generator(self, telemetry: bool, as_lengths: bool) -> _core.FlowGenerator:
        """Return a generator of flows whose ports are the planes, with queue pairs as `connect` makes them."""
        generator = _core.FlowGenerator(self.nic, self.executor)
        transport = self.config.transport
        name = transport.congestion_control
        native = not is_class_reference(name)
        # Weakly, because the engine keeps what it is to call, and the host keeps the engine.
        here = weakref.proxy(self)
        for number, plane in enumerate(self._planes):
            generator.add_port(
                plane.port,
                destination_mac=plane.config.gateway_mac,
                congestion_control=name if native else partial(Host._new_congestion_control, here, number),
                **self._path_of_any_frame(plane),
                parameters=transport.parameters if native else {},
                preset=transport.preset or "",
                path_choice=None
                if transport.path == "flow"
                else partial(Host._new_path_choice, here, number),
                retransmission=transport.retransmission,
                retransmission_timeout_ps=self._queue_pair_timeout_ps(plane),
                reordering_window_ps=transport.reordering_window(plane.config.base_round_trip_ps),
                ack_interval_packets=transport.ack_interval(),
                cnp_interval_ps=transport.cnp_interval(),
                path_mtu_bytes=self.config.mtu_bytes,
                telemetry=telemetry,
                as_lengths=as_lengths,
                segment_packets=self.config.segments.packets,
                segment_message_bytes=self.config.segments.message_bytes,
            )
        self._generators.append(generator)
        return generator

    def close_flow_generator(self, generator: _core.FlowGenerator) -> None:
        """End a generator's run if it has not ended, and remove it; its counts remain in the totals."""
        generator.cancel()
        self._generators.remove(generator)
        self._closed_totals.update(_totals_of(generator.counters()))

    def make_service_client(self, part: ServicePart, asked: ServiceRequests) -> _core.ServiceClient:
        """Return a client of a service, by the NIC of the group's plane. Raises ValueError for values out of range."""
        plane = self.plane(part.nic)
        return _core.ServiceClient(
            self.nic,
            plane.port,
            self.executor,
            operation=asked.operation,
            requests=asked.requests,
            cells=asked.cells,
            window=asked.window,
            addend=asked.addend,
            group_id=part.group_id,
            epoch=part.epoch,
            q_key=part.q_key,
            member=part.rank if asked.operation == "barrier" else part.client,
            destination_mac=part.service_mac,
            destination_ip=part.service_address,
            group_ip=part.group_address,
            retransmission_timeout_ps=self.timeout_ps(plane),
        )

    def make_parameter_client(
        self, part: ParameterPart, window: int, blocks: npt.NDArray[np.uint32], pushes: npt.NDArray[np.bool_]
    ) -> _core.ParameterClient:
        """Return a client of a parameter store. Raises ValueError for values out of range."""
        plane = self.plane(part.nic)
        assert part.client is not None
        return _core.ParameterClient(
            self.nic,
            plane.port,
            self.executor,
            blocks=blocks,
            pushes=pushes,
            window=window,
            group_id=part.group_id,
            epoch=part.epoch,
            q_key=part.q_key,
            client=part.client,
            destination_mac=plane.config.gateway_mac,
            destination_ip=part.store_address,
            retransmission_timeout_ps=self.timeout_ps(plane),
        )

    def make_parameter_store(
        self, part: ParameterPart, asked: ParameterRequests, clients: int
    ) -> _core.ParameterStore:
        """Return a parameter store."""
        plane = self.plane(part.nic)
        return _core.ParameterStore(
            self.nic,
            plane.port,
            blocks=asked.blocks,
            clients=clients,
            window=asked.window,
            group_id=part.group_id,
            epoch=part.epoch,
            q_key=part.q_key,
            destination_mac=plane.config.gateway_mac,
            own_ip=part.store_address,
        )

    def close_service_client(self, client: _core.ServiceClient | _core.ParameterClient) -> None:
        """Remove a client; its counts remain in the totals."""
        self._closed_totals["aggregation_retransmitted_packets"] += client.retransmitted_packets()
        self.nic.detach(client)

    def observed_flow(self, peer: int, plane: int) -> _core.ObservedFlow:
        """Return what the probe is to record of a flow to `peer`."""
        recording = self.config.recording
        return _core.ObservedFlow(
            self.config.rank,
            peer,
            plane,
            message=recording.messages,
            telemetry=recording.telemetry_of(peer),
        )

    def _scale_up_port(self) -> ScaleUpPort:
        if self._scale_up is None:
            raise ValueError(f"{self.config.name} has no scale-up links")
        return self._scale_up

    def disconnect(self, channel: Channel) -> None:
        """Remove a connection, if there is one; what still arrives for it is dropped and counted."""
        if self._scale_up is not None:
            self._scale_up.disconnect(channel)
        if (suspended := self._suspended.pop(channel, None)) is not None:
            self.executor.remove_channel(suspended)
        connection = self._connections.pop(channel, None)
        if connection is not None:
            self._closed_totals.update(_totals_of(connection.queue_pair.stats()))
            self.executor.remove_channel(connection.channel)
            self.nic.detach(connection.queue_pair)

    def join(self, membership: Membership) -> None:
        """Take part in an aggregation job on a plane, in place of the job of that id there."""
        self.reductions.join(membership, *self._port_and_timeout_ps(membership))

    def move_stream(self, job_id: int, stream: MovedStream) -> None:
        """Go on with a stream of a job that has been stopped. Raises ValueError if it has not."""
        membership = stream.membership
        client = self.reductions.client(membership, *self._port_and_timeout_ps(membership))
        self.reductions.move(stream.plane, job_id, stream.first_message, client)

    def _port_and_timeout_ps(self, membership: Membership) -> tuple[int, int]:
        plane, timeout_ps = self.plane(membership.plane), membership.retransmission_timeout_ps
        return plane.port, self.timeout_ps(plane) if timeout_ps is None else timeout_ps

    def leave(self, number: int, keep: Container[int] = ()) -> None:
        """Leave the plane's jobs but those to `keep`."""
        self.plane(number)
        for job_id in self.reductions.joined(number):
            if job_id not in keep:
                self.reductions.leave(number, job_id)

    def channels(self) -> dict[Channel, int]:
        """Return the executor's numbers of all connections."""
        inside = self._scale_up.channels() if self._scale_up is not None else {}
        connected = {channel: connection.channel for channel, connection in self._connections.items()}
        return inside | connected | self._suspended

    def capture(self, number: int, path: str | None) -> None:
        """Record what a plane's port sends and receives into a pcap file; None ends it."""
        plane = self.plane(number)
        writer = None
        if path:
            writer = PcapWriter(
                path,
                interface=f"{self.config.name}:{number}",
                description=plane.config.interface,
                rate_bps=plane.config.rate_bps,
            )
        self.nic.set_capture(plane.port, writer)
        if (before := self._captures.pop(number, None)) is not None:
            before.close()
        if writer is not None:
            self._captures[number] = writer

    def transmit_ports(self) -> list[TransmitPort]:
        """Return the NIC's transmit ports, by plane."""
        return [plane.transmit_port for plane in self._planes]

    def save_recorded(self, path: str) -> int:
        """Write what the probe has recorded to a NumPy archive, its arrays called TABLE.COLUMN; returns rows lost.

        Raises ValueError if nothing is being recorded.
        """
        if self.probe is None:
            raise ValueError("nothing is being recorded (the configuration has no `recording`)")
        tables = self.probe.take()
        arrays = {f"{table}.{name}": array for table in tables for name, array in tables[table].items()}
        np.savez(path, **arrays)  # type: ignore[arg-type]
        return sum(self.probe.rows_lost().values())

    def stats(self) -> HostStats:
        """Return all counters, as docs/spec/endpoint-protocol.md lists them."""
        connections = [self._connection_stats(*item) for item in self._connections.items()]
        for capture in self._captures.values():
            capture.flush()
        return {
            "name": self.config.name,
            "rank": self.config.rank,
            "now_ps": self.engine.now_ps,
            "failure": self.engine.failure,
            "lateness": self.engine.lateness(),
            "planes": [
                {
                    "plane": number,
                    "nic": nic,
                    "transmit": plane.transmit_port.stats(),
                    "mac": mac,
                    "socket": plane.attachment.stats(),
                    "aggregation": self.reductions.stats(number),
                }
                for number, (plane, nic, mac) in enumerate(
                    zip(self._planes, self.nic_stats(), self.mac_stats(), strict=True)
                )
            ],
            "scale_up": self._scale_up.stats() if self._scale_up is not None else None,
            "ip": self._ip.stats() if self._ip is not None else None,
            "connections": connections,
            "totals": self._totals(connections),
        }

    def queue_pairs(self) -> list[_core.RcQueuePair]:
        """Return all queue pairs that are there, of connections and of programs."""
        return [*(each.queue_pair for each in self._connections.values()), *self._opened]

    def nic_stats(self) -> list[NicStats]:
        """Return what the NIC has counted at each of its ports."""
        return [self.nic.stats(plane.port) for plane in self._planes]

    def mac_stats(self) -> list[PortMacStats | None]:
        """Return what the MAC of each port has counted; None where a port has no flow control."""
        return [plane.mac.stats() if plane.mac is not None else None for plane in self._planes]

    def totals(self) -> dict[str, int]:
        """Return sums over all queue pairs, as `stats` has them."""
        return self._totals(each.queue_pair.stats() for each in self._connections.values())

    def _totals(self, connections: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Sum over all queue pairs since the counters were zero, including removed ones."""
        totals = Counter(self._closed_totals)
        opened = (queue_pair.stats() for queue_pair in self._opened)
        for counters in (*connections, *opened, *(generator.counters() for generator in self._generators)):
            totals.update(_totals_of(counters))
        totals.update(self.reductions.totals())
        return {name: totals[name] for name in _TOTALS}

    def _connection_stats(self, channel: Channel, connection: _Connection) -> ConnectionStats:
        telemetry = connection.queue_pair.last_telemetry
        stats = {
            "label": channel.label,
            "plane": channel.plane,
            "peer": channel.peer,
            **connection.queue_pair.stats(),
            "telemetry": None if telemetry is None else stack_in_bytes(telemetry, self.config.int_rates_bps),
        }
        return cast("ConnectionStats", stats)

    def reset_stats(self) -> None:
        """Set all counters, and the lateness, to zero."""
        self.engine.reset_lateness()
        self.nic.reset_stats()
        for plane in self._planes:
            plane.transmit_port.reset_stats()
            if plane.mac is not None:
                plane.mac.reset_stats()
            plane.attachment.reset_stats()
        self.reductions.reset_stats()
        if self._scale_up is not None:
            self._scale_up.reset_stats()
        if self._ip is not None:
            self._ip.reset_stats()
        for queue_pair in self.queue_pairs():
            queue_pair.reset_stats()
        if self.hop_latencies is not None:
            self.hop_latencies.reset()
        for generator in self._generators:
            generator.reset_counters()
        self._closed_totals.clear()


def _totals_of(counters: Mapping[str, Any]) -> dict[str, int]:
    """Return those of a queue pair's counters that are summed."""
    return {name: counters[name] for name in _QUEUE_PAIR_TOTALS}


def start_engine(engine: Engine, realtime_priority: int) -> None:
    """Start an engine's thread under SCHED_FIFO, or as any other thread where that is not permitted."""
    try:
        engine.start(realtime_priority=realtime_priority)
    except PermissionError:
        engine.start()


def host_of_namespace(config: HostConfig) -> Host:
    """Return a host of the real clock, whose interfaces are those of this process's network namespace.

    Raises OSError if one cannot be opened and ValueError for invalid addresses.
    """
    engine = Engine.real_clock(epoch_ns=config.epoch_ns, dilation=config.dilation, seed=config.seed)
    inside = None
    if config.scale_up is not None:
        inside = ScaleUpLinks.to_processes(config.scale_up, config.rank, engine)
    host = Host(config, engine, partial(SocketAttachment, engine), inside)
    start_engine(engine, config.realtime_priority)
    return host
