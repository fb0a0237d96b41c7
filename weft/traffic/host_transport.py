"""How a host makes its queue pairs: congestion control, path choice, timeouts, and what of it is in force."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from weft.engine import (
    CongestionControl,
    PathChoice,
    _core,
    congestion_control_kind,
    congestion_parameters_in_force,
    make_congestion_control,
    make_path_choice,
)
from weft.errors import InvalidValueError
from weft.quantities.traffic_classes import CONTROL_CLASS, DATA_CLASS
from weft.traffic.answers import TransportInForce
from weft.traffic.class_reference import is_class_reference
from weft.traffic.commands.connections import Connection
from weft.traffic.commands.counters import AskTransport
from weft.traffic.ev_profiles import EvProfile
from weft.traffic.extensions import ClassSpec, PathProperties, congestion_control, engine_name, path_choice
from weft.traffic.host_config import HostConfig, NicConfig, without_prefix
from weft.traffic.transport_settings import DEFAULTS, TransportSettings, preset_of
from weft.traffic.transports.kind import FrameShape, PlaneEnds, QueuePair, QueuePairPlace

if TYPE_CHECKING:
    from weft.engine._core import MrcOptions, RcOptions


def destination_of(connection: Connection) -> str:
    """Return the address that a queue pair sends to. Raises ValueError if there is none."""
    if connection.destination_ip is None:
        raise ValueError(f"the connection to rank {connection.peer} has no destination_ip")
    return without_prefix(connection.destination_ip)


def _whole(nics: Sequence[NicConfig]) -> NicConfig:
    """Return several NICs' ports as one that has the rate of all and the longest of their paths."""
    return replace(
        nics[0],
        rate_bps=sum(nic.rate_bps for nic in nics),
        base_round_trip_ps=max(nic.base_round_trip_ps for nic in nics),
        nearest_round_trip_ps=min(nic.nearest_round_trip_ps for nic in nics),
        nearest_hops=min(nic.nearest_hops for nic in nics),
    )


@dataclass(frozen=True)
class _Parts:
    """The parts of a queue pair; `nic` has the rate of all its planes."""

    place: QueuePairPlace
    nic: NicConfig
    transport: TransportSettings
    congestion_control: CongestionControl
    frame_bytes: int
    options: RcOptions


class HostTransport:
    """The transport settings of a host, applied to its NICs.

    It holds nothing of the engine, which keeps its methods as callbacks.
    """

    def __init__(self, config: HostConfig) -> None:
        self._config = config
        self._settings = config.transport
        self._options_of_class: dict[tuple[int, int], RcOptions] = {}

    @property
    def is_notified(self) -> bool:
        """Whether a congestion control takes notifications of switches."""
        settings = (self._settings, *self._settings.classes.values())
        names = {engine_name(each.congestion_control) for each in settings}
        return any(congestion_control_kind(name).needs.notifications for name in names if name is not None)

    def least_timeout_ps(self, nic: NicConfig) -> int:
        """Return the least retransmission timeout: above the path's round trip and the host's jitter."""
        return _core.retransmission_timeout_ps(
            nic.base_round_trip_ps,
            wall_clock_floor_ns=self._config.wall_clock_floor_ns,
            dilation=self._config.dilation,
        )

    def options(
        self, nic: NicConfig, settings: TransportSettings | None = None, traffic_class: int = DATA_CLASS
    ) -> RcOptions:
        """Return the engine's options for queue pairs of a class of data; `settings` are the host's by default."""
        options = (settings or self._settings).queue_pair_options(
            nic.base_round_trip_ps, self.least_timeout_ps(nic), self._config.paths, traffic_class
        )
        return {
            **options,
            "path_mtu_bytes": self._config.mtu_bytes,
            "segment_packets": self._config.segments.packets if self._settings.kind.has_segments else 1,
            "segment_message_bytes": self._config.segments.message_bytes,
        }

    def _kept_options(self, nic: NicConfig, settings: TransportSettings, traffic_class: int) -> RcOptions:
        """Return `options`. A host with thousands of queue pairs has few different round trips and classes."""
        key = nic.base_round_trip_ps, traffic_class
        kept = self._options_of_class.get(key)
        if kept is None:
            kept = self._options_of_class[key] = self.options(nic, settings, traffic_class)
        return kept

    def make_queue_pair(
        self,
        rnic: _core.Nic,
        port: int,
        nic: NicConfig,
        completions: _core.CompletionHandler,
        connection: Connection,
        ev_profile: EvProfile | None = None,
        **options: Unpack[RcOptions],
    ) -> QueuePair:
        """Return a queue pair at a port of `rnic`; `options` override those of the host's transport.

        `ev_profile`: of its EVs, where the transport has any.

        Raises ValueError for invalid addresses, and for none.
        """
        parts = self._parts(rnic, port, nic, completions, connection, options)
        return parts.transport.kind.make_queue_pair(
            parts.place,
            parts.transport,
            parts.congestion_control,
            self.path_choice(parts.nic, port, connection.queue_pair, parts.frame_bytes),
            parts.options,
            self._config.ev_paths,
            ev_profile,
        )

    def make_verbs_queue_pair(
        self,
        made: type[_core.RcQueuePair] | type[_core.UcQueuePair],
        rnic: _core.Nic,
        port: int,
        nic: NicConfig,
        completions: _core.CompletionHandler,
        connection: Connection,
        domain: _core.MemoryDomain,
        shared_receives: _core.SharedReceives | None,
        **options: Unpack[RcOptions],
    ) -> _core.RcQueuePair | _core.UcQueuePair:
        """Return a queue pair of RoCEv2, of a protection domain; as `make_queue_pair`."""
        parts = self._parts(rnic, port, nic, completions, connection, options)
        place = {name: value for name, value in vars(parts.place).items() if name != "more_planes"}
        return made(
            **place,
            congestion_control=parts.congestion_control,
            memory_domain=domain,
            shared_receives=shared_receives,
            **parts.options,
        )

    def make_mrc_verbs_queue_pair(
        self,
        rnic: _core.Nic,
        port: int,
        nic: NicConfig,
        completions: _core.CompletionHandler,
        connection: Connection,
        ev_profile: EvProfile,
        own: MrcOptions,
        domain: _core.MemoryDomain,
        **options: Unpack[RcOptions],
    ) -> _core.MrcQueuePair:
        """Return a queue pair of MRC, of a protection domain; as `make_queue_pair`.

        `own` and `options` override the settings of the host's transport.
        """
        from weft.traffic.transports.mrc import KIND  # a scenario imports only the transport that it names

        parts = self._parts(rnic, port, nic, completions, connection, options)
        return KIND.make_of_domain(
            parts.place,
            {**KIND.options(parts.transport), **own},
            parts.congestion_control,
            parts.options,
            self._config.ev_paths,
            ev_profile,
            domain,
        )

    def _parts(
        self,
        rnic: _core.Nic,
        port: int,
        nic: NicConfig,
        completions: _core.CompletionHandler,
        connection: Connection,
        options: RcOptions,
    ) -> _Parts:
        destination_ip = destination_of(connection)
        nic = self.whole(nic, [each.plane for each in connection.more_planes])
        transport = self._settings.of_class(connection.traffic_class)
        traffic_class = connection.traffic_class
        if connection.is_clearance:
            traffic_class = CONTROL_CLASS
            transport = transport.kind.of_clearances(transport)
        frame_bytes = self._full_frame_bytes(":" in destination_ip, connection.telemetry)
        chosen: RcOptions = {
            **self._kept_options(nic, transport, traffic_class),
            "initial_psn": connection.initial_psn,
            "remote_initial_psn": connection.remote_initial_psn,
            "telemetry": connection.telemetry,
            "data_class": traffic_class,
            **options,
        }
        place = QueuePairPlace(
            nic=rnic,
            port=port,
            completions=completions,
            queue_pair=connection.queue_pair,
            remote_queue_pair=connection.remote_queue_pair,
            destination_mac=nic.gateway_mac if connection.destination_mac is None else connection.destination_mac,
            destination_ip=destination_ip,
            source_udp_port=connection.source_udp_port,
            more_planes=tuple(
                PlaneEnds(each.plane, self._config.nics[each.plane].gateway_mac, without_prefix(each.destination_ip))
                for each in connection.more_planes
            ),
        )
        control = self._congestion_control(nic, frame_bytes, transport)
        return _Parts(place, nic, transport, control, frame_bytes, chosen)

    def whole(self, nic: NicConfig, more: Sequence[int]) -> NicConfig:
        """Return a NIC's port and its ports in more planes, as one queue pair over all of them sees them.

        Raises ValueError for a plane that the host does not have.
        """
        count = len(self._config.nics)
        if beyond := [plane for plane in more if not 0 <= plane < count]:
            raise InvalidValueError(f"plane {beyond[0]}", valid=f"0 to {count - 1}")
        return _whole([nic, *(self._config.nics[plane] for plane in more)]) if more else nic

    def congestion_control(self, nic: NicConfig, frame_bytes: int) -> CongestionControl:
        """Return a new congestion control for a flow of data whose full frames have this size."""
        return self._congestion_control(nic, frame_bytes, self._settings)

    def path_choice(self, nic: NicConfig, port: int, queue_pair: int, frame_bytes: int) -> PathChoice | None:
        """Return a new choice of paths for a queue pair; None if all its packets take one."""
        transport, seed = self._settings, self._path_seed(port, queue_pair)
        if transport.path == "flow":
            return None
        properties = self._path_properties(nic, frame_bytes)
        if is_class_reference(transport.path):
            spec = ClassSpec(transport.path, transport.path_parameters)
            return path_choice(spec, properties, np.random.default_rng(seed))
        parameters = transport.path_keys | transport.path_parameters
        return make_path_choice(transport.path, seed, parameters, **vars(properties))

    def path_of_any_frame(self, nic: NicConfig) -> dict[str, Any]:
        """Return the properties of paths that do not depend on a flow's packets."""
        properties = vars(self._path_properties(nic, 0))
        return {name: value for name, value in properties.items() if name != "frame_bytes"}

    def in_force(self, nics: Sequence[NicConfig], asked: AskTransport) -> TransportInForce:
        """Return with which settings queue pairs are made."""
        transport = self._settings
        preset = preset_of(transport.congestion_control, transport.preset)
        frame_bytes = self._full_frame_bytes(asked.ip_version == 6, asked.telemetry)
        return TransportInForce(
            {
                "protocol": transport.protocol,
                **transport.kind.options(transport),
                "congestion_control": transport.congestion_control,
                "preset": preset.name if preset is not None else None,
                "retransmission": transport.retransmission,
                "path": transport.path,
                "path_parameters": dict(transport.path_parameters),
                "spray_paths": transport.spray_paths if transport.path == "spray" else None,
                "ack_interval_packets": transport.ack_interval_in_force,
                "cnp_interval_ps": transport.cnp_interval_in_force,
                "retry_limit": DEFAULTS["retry_limit"],
                "planes": [self._plane_in_force(nic, frame_bytes) for nic in self._as_used(nics)],
            }
        )

    def _as_used(self, nics: Sequence[NicConfig]) -> Sequence[NicConfig]:
        return [_whole(nics)] if self._settings.kind.spans_planes else nics

    def _plane_in_force(self, nic: NicConfig, frame_bytes: int) -> dict[str, Any]:
        transport = self._settings
        parameters: Mapping[str, Any] = transport.parameters
        native = engine_name(transport.congestion_control)
        if native is not None:
            parameters = congestion_parameters_in_force(native, **self._native_arguments(nic, frame_bytes, transport))
        options = self.options(nic)
        flowlet_gap_ps = transport.flowlet_gap or nic.base_round_trip_ps
        return {
            "line_rate_bps": nic.rate_bps,
            "base_round_trip_ps": nic.base_round_trip_ps,
            "nearest_round_trip_ps": nic.nearest_round_trip_ps,
            "frame_bytes": frame_bytes,
            "least_retransmission_timeout_ps": options["retransmission_timeout_ps"],
            "least_aggregation_timeout_ps": self.least_timeout_ps(nic),
            "reordering_window_ps": options["reordering_window_ps"],
            "flowlet_gap_ps": flowlet_gap_ps if transport.path == "flowlet" else None,
            "parameters": dict(parameters),
        }

    def _congestion_control(self, nic: NicConfig, frame_bytes: int, transport: TransportSettings) -> CongestionControl:
        native = engine_name(transport.congestion_control)
        if native is None:
            spec = ClassSpec(transport.congestion_control, transport.parameters)
            return congestion_control(spec, self._path_properties(nic, frame_bytes))
        return make_congestion_control(native, **self._native_arguments(nic, frame_bytes, transport))

    def _native_arguments(self, nic: NicConfig, frame_bytes: int, transport: TransportSettings) -> dict[str, Any]:
        return {
            **vars(self._path_properties(nic, frame_bytes)),
            "ack_interval_packets": transport.ack_interval_in_force,
            "parameters": transport.parameters,
            "preset": transport.preset or "",
        }

    def _path_properties(self, nic: NicConfig, frame_bytes: int) -> PathProperties:
        return PathProperties(
            line_rate_bps=nic.rate_bps,
            base_round_trip_ps=nic.base_round_trip_ps,
            frame_bytes=frame_bytes,
            nearest_round_trip_ps=nic.nearest_round_trip_ps,
            nearest_hops=nic.nearest_hops,
            hop_round_trip_ps=nic.hop_round_trip_ps,
            sprayed=self._settings.sprays or self._config.paths.sprayed_by_switches,
            int_rates_bps=self._config.int_rates_bps,
        )

    def _path_seed(self, port: int, queue_pair: int) -> int:
        text = f"{self._config.seed} {self._config.rank} {port} {queue_pair}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")

    def _full_frame_bytes(self, is_ipv6: bool, telemetry: bool) -> int:
        ev_paths = self._config.ev_paths
        shape = FrameShape(
            is_ipv6,
            telemetry,
            self._settings.retransmission,
            encapsulated=ev_paths is not None and ev_paths.encapsulates,
            receiver_credits=self._settings.receiver_credits,
        )
        return self._settings.kind.full_frame_bytes(self._config.mtu_bytes, shape)
