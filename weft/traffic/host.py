"""A host: one NIC with a port per plane, its connections and its aggregation jobs."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from weft.engine import (
    Engine,
    IpStack,
    PcapWriter,
    Probe,
    TransmitPort,
    _core,
)
from weft.errors import InvalidValueError
from weft.port_monitor import PortMonitor
from weft.traffic import collector
from weft.traffic.attachment import Attach, SocketAttachment
from weft.traffic.commands.aggregation import Membership, MovedStream
from weft.traffic.commands.connections import Connection
from weft.traffic.ev_profiles import EvProfile, EvProfiles
from weft.traffic.host_config import HostConfig
from weft.traffic.host_evs import HostEvs
from weft.traffic.host_inside import HostInside
from weft.traffic.host_ip import make_ip_stack
from weft.traffic.host_plane import NO_WAYS, HostPlane, open_plane
from weft.traffic.host_reductions import REDUCTION_TOTALS, HostReductions
from weft.traffic.host_stats import ConnectionStats, HostStats, PortTraffic
from weft.traffic.host_transport import HostTransport, destination_of
from weft.traffic.int_stack import stack_in_bytes
from weft.traffic.protocols import LINE_FORMATS, NONE
from weft.traffic.scale_up import ScaleUpLinks, ScaleUpPort
from weft.traffic.schedule_nodes import ALL_PLANES, Channel
from weft.traffic.transports.kind import QueuePair
from weft.traffic.verbs.counts import DeviceCounts

if TYPE_CHECKING:
    from weft.engine._core import NicStats, PortMacStats, PortStats, RcOptions
    from weft.traffic.host_relays import HostRelays

_QUEUE_PAIR_TOTALS = tuple(_core.record_types()["RcCounters"])
_CLEAR_TO_SEND_TOTALS = tuple(_core.record_types()["ClearToSendStats"])


@dataclass
class _Connection:
    queue_pair: QueuePair
    channel: int


class Host:
    """The NIC of an endpoint, joined to its fabric by `attach`, and what is attached to it.

    Raises ValueError for invalid addresses, and what `attach` raises.
    """

    def __init__(
        self,
        config: HostConfig,
        engine: Engine,
        attach: Attach,
        scale_up: ScaleUpLinks | None = None,
        inside: HostInside | None = None,
    ) -> None:
        self.config = config
        self.engine = engine
        self.nic = _core.Nic(self.engine, config.name, entropy_seed=config.entropy_seed, **config.nic_costs.options())
        self.executor = _core.ScheduleExecutor(self.engine)
        self.reductions = HostReductions(self.nic, self.executor, len(config.nics))
        self.transport = HostTransport(config)
        self._notifications: _core.NotificationReceiver | None = None
        self._port_monitor: PortMonitor | None = None
        self._ports_lock = threading.Lock()  # the port monitor has a thread of its own
        self._carriers = [True] * len(config.nics)
        self._enabled = [True] * len(config.nics)
        self.inside = inside
        links, ways = (None, repeat(NO_WAYS)) if inside is None else (inside.links, inside.ways)
        self._planes = [
            open_plane(engine, self.nic, nic, attach(nic.interface), links, way)
            for nic, way in zip(config.nics, ways, strict=False)
        ]
        self._ip = make_ip_stack(self.nic, config.ip) if config.ip is not None else None
        if self.transport.is_notified:
            self._notifications = _core.NotificationReceiver(self.nic)
        self._scale_up = ScaleUpPort(scale_up, config.rank, self.nic, self.executor) if scale_up is not None else None
        self._connections: dict[Channel, _Connection] = {}
        # The executor's numbers of channels without a queue pair, for which others stand.
        self._suspended: dict[Channel, int] = {}
        self._generators: list[_core.FlowGenerator] = []
        self._opened: list[QueuePair] = []
        self._closed_totals: Counter[str] = Counter()
        self._closed_evs = [Counter[str]() for _ in config.nics]
        self.device_counts = DeviceCounts()
        self._queue_pair_totals = (*_QUEUE_PAIR_TOTALS, *config.transport.kind.totals)
        self.hop_latencies: _core.HopLatencies | None = None
        """INT's telemetry by hop; None unless it is counted (`count_hops`)."""
        self._captures: dict[int, PcapWriter] = {}
        self._collector: collector.Collector | None = None
        self.probe: Probe | None = None
        if config.recording.any:
            self.probe = Probe.of(self._planes[0].transmit_port)
            if config.recording.steps:
                self.executor.observe(config.rank)

    def close(self) -> None:
        """Close the interfaces and captures; stop the engine's thread, if it has one."""
        if self._port_monitor is not None:
            self._port_monitor.stop()
        self.engine.stop()
        for plane in self._planes:
            plane.attachment.close()
        if self._collector is not None:
            self._collector.close()
        for capture in self._captures.values():
            # Callers who need the capture's error end the capture first.
            with contextlib.suppress(OSError):
                capture.close()

    def follow_carriers(self) -> None:
        """Tell the NIC when the kernel's interfaces lose their carrier, where queue pairs can use other ports then."""
        if self.config.transport.kind.spans_planes and len(self._planes) > 1:
            self._port_monitor = PortMonitor(
                {nic.interface: partial(self._set_carrier, number) for number, nic in enumerate(self.config.nics)}
            )
            self._port_monitor.start()

    def _set_carrier(self, number: int, up: bool) -> None:
        with self._ports_lock:
            self._carriers[number] = up
            self._follow_port(number)

    def is_port_enabled(self, number: int) -> bool:
        """Return whether a port is in use, as far as its administrator is concerned."""
        return self._enabled[number]

    def enable_port(self, number: int, *, enabled: bool) -> None:
        """Take a port out of use, or into use again; peers of MRC are told, as of a carrier that is gone."""
        with self._ports_lock:
            self._enabled[number] = enabled
            self._follow_port(number)

    def _follow_port(self, number: int) -> None:
        self.nic.set_port_up(self._planes[number].port, self._carriers[number] and self._enabled[number])

    @property
    def ip(self) -> IpStack:
        """The host's own IP stack. Raises ValueError if IP is its kernel's."""
        if self._ip is None:
            raise ValueError(f"{self.config.name} has no IP stack of its own")
        return self._ip

    @cached_property
    def evs(self) -> HostEvs | None:
        """The EVs of its queue pairs, for those that operate them; None if its transport has none."""
        transport, nics = self.config.transport, len(self.config.nics)
        if not transport.kind.has_evs:
            return None
        profiles = EvProfiles(transport.ev_count, transport.ev_backups, transport.ev_min_active, nics)
        return HostEvs(self.nic, self.config.ev_paths, profiles)

    @property
    def ev_profile(self) -> EvProfile | None:
        """The EV profile of queue pairs that are made now; None if the transport has no EVs."""
        return None if self.evs is None else self.evs.profiles.of_new_queue_pairs

    def operated_evs(self) -> HostEvs:
        """Return `evs`. Raises ValueError if the transport has none."""
        if self.evs is None:
            raise ValueError(f"{self.config.transport.protocol} has no EVs")
        return self.evs

    @cached_property
    def relays(self) -> HostRelays:
        """Connections by other ranks of hosts."""
        from weft.traffic.host_relays import HostRelays  # it costs nothing where it is not used

        return HostRelays(self)

    @cached_property
    def tcp(self) -> _core.TcpProtocol:
        """TCP on the host's own IP stack. Raises ValueError if IP is its kernel's."""
        return _core.TcpProtocol(self.ip)

    def forget_neighbours(self) -> None:
        """Have the host's own IP stack ask for its neighbours again."""
        if self._ip is not None:
            self._ip.forget_neighbours()

    @property
    def planes(self) -> Sequence[HostPlane]:
        """The NIC's ports, by plane."""
        return self._planes

    def plane(self, number: int) -> HostPlane:
        """Return a plane. Raises ValueError with the valid ones."""
        if not 0 <= number < len(self._planes):
            raise InvalidValueError(f"plane {number}", valid=f"0 to {len(self._planes) - 1}")
        return self._planes[number]

    def connect(self, connection: Connection) -> None:
        """Make a queue pair, in place of one to the same peer with the same label, or of those that stand for it.

        One labelled for scale-up links is made over the host's own links. Raises ValueError if it has none.
        """
        channel, settings = connection.channel, self.config.protocols
        protocol = NONE if channel.is_clearance else channel.protocol
        within_host = channel.is_scale_up or connection.within_host
        step_latency_ps = settings.step_latency_ps(protocol, scale_up=within_host)
        if within_host:
            port = self.scale_up_port()
            port.connect(channel, connection.queue_pair, connection.remote_queue_pair, step_latency_ps)
            return
        self.plane(connection.plane)
        destination_of(connection)  # before what it replaces is removed
        suspended = self._suspended.pop(channel, None)
        self.disconnect(channel)
        if connection.outgoing is not None:
            self.relays.receive(connection, connection.outgoing)
            return
        queue_pair = self.make_queue_pair(connection, self.executor)
        if suspended is None:
            number = self.executor.add_channel(queue_pair, step_latency_ps)
            self._connections[channel] = _Connection(queue_pair, number)
            if self.inside is not None and not channel.is_clearance:
                self.inside.set_copies(self.executor, number, channel.peer, connection.plane)
            self._join_clearances(channel)
        else:
            self.executor.resume(suspended, queue_pair)
            self._connections[channel] = _Connection(queue_pair, suspended)

    def make_queue_pair(self, connection: Connection, completions: _core.CompletionHandler) -> QueuePair:
        """Return a connection's queue pair, whose completions go to `completions`. ValueError: as for `connect`."""
        channel, plane = connection.channel, self.plane(connection.plane)
        queue_pair = self.transport.make_queue_pair(
            self.nic,
            plane.port,
            plane.config,
            completions,
            connection,
            self.ev_profile,
            retry_limit=connection.retry_limit,
            line_format=LINE_FORMATS[NONE if channel.is_clearance else channel.protocol],
        )
        self.follow(queue_pair, connection)
        self._observe(queue_pair, channel)
        return queue_pair

    def _join_clearances(self, channel: Channel) -> None:
        """Have a channel's messages be cleared once both it and the channel of its clearances are there."""
        if (settings := channel.clear_to_send) is None:
            return
        numbers = self.channels()
        data, clearances = (numbers.get(replace(channel, is_clearance=is_one)) for is_one in (False, True))
        if data is not None and clearances is not None:
            self.executor.clear_to_send(data, clearances, window=settings.window, chunk_bytes=settings.chunk)

    def open_queue_pair(
        self,
        connection: Connection,
        completions: _core.CompletionHandler,
        ev_profile: EvProfile | None,
        **options: Unpack[RcOptions],
    ) -> QueuePair:
        """Return a program's queue pair; its completions go to `completions`. ValueError: as for `connect`."""
        plane = self.plane(connection.plane)
        queue_pair = self.transport.make_queue_pair(
            self.nic, plane.port, plane.config, completions, connection, ev_profile, **options
        )
        self.follow(queue_pair, connection)
        self._observe(queue_pair, Channel(connection.plane, connection.peer, connection.label))
        self._opened.append(queue_pair)
        return queue_pair

    def close_queue_pair(self, queue_pair: QueuePair) -> None:
        """Remove a queue pair that was opened; what still arrives for it is dropped and counted."""
        self.count_no_more(queue_pair)
        self.nic.detach(queue_pair)

    def count_queue_pair(self, queue_pair: QueuePair) -> None:
        """Count a queue pair that others have made and attached, until `count_no_more`."""
        self._opened.append(queue_pair)

    def count_no_more(self, queue_pair: QueuePair) -> None:
        """Keep what it has counted; whoever made it detaches it."""
        self._opened.remove(queue_pair)
        self._closed_totals.update(self._totals_of(self._stats_of(queue_pair)))

    def add_generator(self, generator: _core.FlowGenerator) -> None:
        """Count what the queue pairs of a generator of flows count."""
        self._generators.append(generator)

    def remove_generator(self, generator: _core.FlowGenerator) -> None:
        """End a generator's run if it has not ended, and remove it; its counts remain in the totals."""
        generator.cancel()
        self._generators.remove(generator)
        self._closed_totals.update(self._totals_of(self._counters_of(generator)))
        _add_states(self._closed_evs, self.config.transport.kind.flow_path_states(generator))

    def remove_client(self, client: _core.ServiceClient | _core.ParameterClient) -> None:
        """Remove a client of a service or a store; its counts remain in the totals."""
        self._closed_totals["aggregation_retransmitted_packets"] += client.retransmitted_packets()
        self.nic.detach(client)

    def suspend(self, channel: Channel) -> int:
        """Stop a connection on a lost plane; returns how many messages have arrived over it.

        Messages posted to it are kept until `detour`. Raises ValueError if there is no such connection.
        """
        connection = self._connections.pop(channel, None)
        if connection is None:
            raise ValueError(f"no connection {channel} to suspend")
        received = self.executor.suspend(connection.channel)
        self._keep_counts(channel, connection)
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

    def follow(self, queue_pair: QueuePair, connection: Connection) -> None:
        """Have a new queue pair's EVs be operated with the others, if it has any."""
        if self.evs is None:
            return
        more = [(each.plane, each.destination_ip) for each in connection.more_planes]
        self.evs.follow(queue_pair, [(connection.plane, destination_of(connection)), *more])

    def _observe(self, queue_pair: QueuePair, channel: Channel) -> None:
        if self.hop_latencies is not None:
            queue_pair.count_hops(self.hop_latencies, channel.peer, channel.plane)
        recording = self.config.recording
        telemetry = recording.telemetry_of(channel.peer)
        if recording.messages or telemetry or recording.steps:
            queue_pair.observe(
                self.config.rank,
                channel.peer,
                self._recorded_plane(channel.plane),
                messages=recording.messages,
                telemetry=telemetry,
            )

    def _recorded_plane(self, plane: int) -> int:
        """Return the number by which records name a connection's plane."""
        spans = self.config.transport.kind.spans_planes and len(self._planes) > 1
        return ALL_PLANES if spans else plane

    def observed_flow(self, peer: int, plane: int) -> _core.ObservedFlow:
        """Return what the probe is to record of a flow to `peer`."""
        recording = self.config.recording
        return _core.ObservedFlow(
            self.config.rank,
            peer,
            self._recorded_plane(plane),
            message=recording.messages,
            telemetry=recording.telemetry_of(peer),
        )

    def scale_up_port(self) -> ScaleUpPort:
        """Return its port into the links of its host. Raises ValueError if it has none."""
        if self._scale_up is None:
            raise ValueError(f"{self.config.name} has no scale-up links")
        return self._scale_up

    def leave_nics(self, numbers: Sequence[int]) -> None:
        """Have queue pairs over all planes leave these NICs, which an operator has taken out of use, for the others."""
        kind = self.config.transport.kind
        if kind.spans_planes:
            kind.leave_ports(self.nic, [self._planes[number].port for number in numbers])

    def disconnect(self, channel: Channel) -> None:
        """Remove a connection, if there is one; what still arrives for it is dropped and counted."""
        if self._scale_up is not None:
            self._scale_up.disconnect(channel)
            self.relays.leave(channel)
        if (suspended := self._suspended.pop(channel, None)) is not None:
            self.executor.remove_channel(suspended)
        connection = self._connections.pop(channel, None)
        if connection is not None:
            self._keep_counts(channel, connection)
            self.executor.remove_channel(connection.channel)
            self.nic.detach(connection.queue_pair)

    def end_relays(self, label: str | None) -> None:
        """Send on no more what other ranks of the host send over connections of a label, or over any."""
        if self._scale_up is not None:
            self.relays.disconnect(label)

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
        if timeout_ps is None:
            timeout_ps = self.transport.least_timeout_ps(plane.config)
        return plane.port, timeout_ps

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

    def capture(self, number: int, path: str | None, without_shims: bool = False) -> None:
        """Record what a plane's port sends and receives into a pcap file, maybe without Weft's shims; None ends it."""
        plane = self.plane(number)
        writer = None
        if path:
            writer = PcapWriter(
                path,
                interface=f"{self.config.name}:{number}",
                description=plane.config.interface,
                rate_bps=plane.config.rate_bps,
                without_shims=without_shims,
            )
        self.nic.set_capture(plane.port, writer)
        if (before := self._captures.pop(number, None)) is not None:
            before.close()
        if writer is not None:
            self._captures[number] = writer

    def collect(self, port: int) -> None:
        """Keep what arrives at a UDP port from now on. Raises ValueError or OSError if the port is taken."""
        if self._collector is not None:
            raise ValueError(f"{self.config.name} collects already")
        self._collector = (
            collector.StackCollector(self._ip, port)
            if self._ip is not None
            else collector.KernelCollector(port, lambda: self.engine.now_ps)
        )

    def save_collected(self, path: str) -> int:
        """Write what was collected so far to a NumPy archive; returns datagrams beyond what is kept.

        Raises ValueError if nothing is being collected.
        """
        if self._collector is None:
            raise ValueError(f"{self.config.name} collects nothing")
        collector.save(self._collector.entries(), Path(path))
        return self._collector.not_kept()

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
            "host": self.config.name if self.inside is None else self.inside.host,
            "links": self.inside.stats() if self.inside is not None else [],
            "most_waiting_bytes": self._most_waiting_bytes(),
            "ip": self._ip.stats() if self._ip is not None else None,
            "connections": connections,
            "entropy_values": self._entropy_values(),
            "totals": self._totals(connections),
            "device": self.device_counts.values(),
        }

    def _most_waiting_bytes(self) -> list[int]:
        return [] if self.inside is None else [self.nic.most_waiting_bytes(plane.port) for plane in self._planes]

    def _entropy_values(self) -> list[dict[str, int]]:
        planes = [Counter(states) for states in self._closed_evs]
        for channel, connection in self._connections.items():
            _add_states(planes, self._path_states(channel, connection))
        for generator in self._generators:
            _add_states(planes, self.config.transport.kind.flow_path_states(generator))
        return [dict(states) for states in planes] if any(planes) else []

    def _path_states(self, channel: Channel, connection: _Connection) -> list[Mapping[str, int]]:
        """Return how many of a connection's paths are in which state, by plane of the host."""
        planes: list[Mapping[str, int]] = [{} for _ in self._planes]
        # The channel's plane is the first one of its queue pair; see `Connections`.
        order = [channel.plane, *(plane for plane in range(len(planes)) if plane != channel.plane)]
        for plane, states in zip(order, self.config.transport.kind.path_states(connection.queue_pair), strict=False):
            planes[plane] = states
        return planes

    def _keep_counts(self, channel: Channel, connection: _Connection) -> None:
        """Keep the counts of a connection that ends, and the states of its paths."""
        self._closed_totals.update(self._totals_of(self._stats_of(connection.queue_pair)))
        _add_states(self._closed_evs, self._path_states(channel, connection))

    def frame_of(self, channel: Channel) -> bytes:
        """Return a frame as a connection over a plane sends its data in. Raises KeyError for none."""
        return self._connections[channel].queue_pair.frame

    def queue_pairs(self) -> list[QueuePair]:
        """Return all queue pairs that are there, of connections and of programs."""
        return [*(each.queue_pair for each in self._connections.values()), *self._opened]

    def connected(self, plane: int) -> list[tuple[Channel, QueuePair]]:
        """Return the connections over one of its ports."""
        return [(channel, each.queue_pair) for channel, each in self._connections.items() if channel.plane == plane]

    def nic_stats(self) -> list[NicStats]:
        """Return what the NIC has counted at each of its ports."""
        return [self.nic.stats(plane.port) for plane in self._planes]

    def port_traffic(self) -> list[PortTraffic]:
        """Return what each port has sent and received, whether it was meant for a queue pair or not."""
        return [
            _traffic_of(plane.transmit_port.stats(), nic)
            for plane, nic in zip(self._planes, self.nic_stats(), strict=True)
        ]

    def mac_stats(self) -> list[PortMacStats | None]:
        """Return what the MAC of each port has counted; None where a port has no flow control."""
        return [plane.mac.stats() if plane.mac is not None else None for plane in self._planes]

    def totals(self) -> dict[str, int]:
        """Return sums over all queue pairs, as `stats` has them."""
        return self._totals(self._stats_of(each.queue_pair) for each in self._connections.values())

    def _totals(self, connections: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Sum over all queue pairs since the counters were zero, including removed ones."""
        totals = Counter(self._closed_totals)
        opened = (self._stats_of(queue_pair) for queue_pair in self._opened)
        every = [*connections, *opened, *(self._counters_of(generator) for generator in self._generators)]
        totals.update({name: sum(counters[name] for counters in every) for name in self._queue_pair_totals})
        totals.update(self.config.transport.kind.nic_stats(self.nic))
        totals.update(self.reductions.totals())
        totals.update(self.executor.clear_to_send_stats())
        of_nic = self.config.transport.kind.nic_totals
        names = (*self._queue_pair_totals, *of_nic, *REDUCTION_TOTALS, *_CLEAR_TO_SEND_TOTALS)
        return {name: totals[name] for name in names}

    def _totals_of(self, counters: Mapping[str, Any]) -> dict[str, int]:
        """Return a queue pair's counters that are summed over a host."""
        return {name: counters[name] for name in self._queue_pair_totals}

    def _counters_of(self, generator: _core.FlowGenerator) -> Mapping[str, Any]:
        return self.config.transport.kind.counters_of(generator)

    def _stats_of(self, queue_pair: QueuePair) -> Mapping[str, Any]:
        return self.config.transport.kind.stats_of(queue_pair)

    def _connection_stats(self, channel: Channel, connection: _Connection) -> ConnectionStats:
        telemetry = connection.queue_pair.last_telemetry
        stats = {
            "label": channel.label,
            "plane": channel.plane,
            "peer": channel.peer,
            **self._stats_of(connection.queue_pair),
            "telemetry": None if telemetry is None else stack_in_bytes(telemetry, self.config.int_rates_bps),
        }
        return cast("ConnectionStats", stats)

    def reset_stats(self) -> None:
        """Set all counters, and the lateness, to zero."""
        self.engine.reset_lateness()
        self.nic.reset_stats()
        self.config.transport.kind.nic_stats(self.nic, reset=True)
        for plane in self._planes:
            plane.transmit_port.reset_stats()
            if plane.mac is not None:
                plane.mac.reset_stats()
            plane.attachment.reset_stats()
        self.reductions.reset_stats()
        if self._scale_up is not None:
            self._scale_up.reset_stats()
        if self.inside is not None:
            self.inside.reset_stats()
        if self._ip is not None:
            self._ip.reset_stats()
        self.device_counts.keep()
        for queue_pair in self.queue_pairs():
            queue_pair.reset_stats()
        if self.hop_latencies is not None:
            self.hop_latencies.reset()
        for generator in self._generators:
            generator.reset_counters()
        self._closed_totals.clear()
        for states in self._closed_evs:
            states.clear()


def _add_states(sums: Sequence[Counter[str]], planes: Sequence[Mapping[str, int]]) -> None:
    """Add, by plane; ports beyond the planes (to other ranks of the host) have none."""
    for own, states in zip(sums, planes, strict=False):
        own.update(states)


def start_engine(engine: Engine, realtime_priority: int) -> None:
    """Start an engine's thread under SCHED_FIFO, or as any other thread where that is not permitted."""
    try:
        engine.start(realtime_priority=realtime_priority)
    except PermissionError:
        engine.start()


def host_of_namespace(config: HostConfig) -> Host:
    """Return a host of the real clock, with the interfaces of this process's network namespace.

    Raises OSError if one cannot be opened and ValueError for invalid addresses.
    """
    engine = Engine.real_clock(epoch_ns=config.epoch_ns, dilation=config.dilation, seed=config.seed)
    inside = None
    if config.scale_up is not None:
        inside = ScaleUpLinks.to_processes(config.scale_up, config.rank, engine)
    host = Host(config, engine, partial(SocketAttachment, engine), inside)
    start_engine(engine, config.realtime_priority)
    host.follow_carriers()
    return host


def _traffic_of(transmit: PortStats, nic: NicStats) -> PortTraffic:
    sent, control = transmit["transmitted"], transmit["control_transmitted"]
    return {
        "sent_packets": sent["packets"] - control["packets"],
        "sent_bytes": sent["bytes"] - control["bytes"],
        "received_packets": nic["received_packets"] + nic["not_roce_packets"] + sum(nic["dropped"].values()),
    }
