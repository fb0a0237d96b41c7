"""Multipath Reliable Connection (docs/mrc.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from weft.engine import PathChoice, _core
from weft.errors import InvalidValueError
from weft.quantities.traffic_classes import CONTROL_CLASS, DATA_CLASS
from weft.traffic import header_sizes
from weft.traffic.ev_profiles import EvProfile
from weft.traffic.header_sizes import RETH
from weft.traffic.transports.kind import NO_PEERS, EvPaths, FrameShape, QueuePair, QueuePairPlace, TransportKind
from weft.wire.code_points import DSCP_CONTROL, DSCP_TRIMMABLE, DSCP_TRIMMABLE_RETX, DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP
from weft.wire.headers.mrc import CC_STATE, METH, SETH, TSETH

if TYPE_CHECKING:
    from weft.engine._core import CongestionControl, MrcOptions, RcOptions
    from weft.traffic.transport_settings import TransportSettings


class MultipathReliableConnection(TransportKind):
    """Multipath Reliable Connection."""

    name = "mrc"
    own_keys = ("ev_count", "ev_backups", "ev_min_active", "max_wimm", "probe_interval")
    lacks_keys = ("path", "path_parameters", "spray_paths", "flowlet_gap", "max_outstanding_reads")
    defaults: ClassVar = {"congestion_control": "nscc", "retransmission": "selective-repeat"}
    retransmissions = ("selective-repeat",)
    sprays = True
    has_evs = True
    spans_planes = True
    extension_bytes = METH.size_bytes + RETH
    answer_bytes = SETH.size_bytes + CC_STATE.size_bytes
    operations = frozenset({"WRITE", "WRITE with immediate"})
    code_points = (
        (DSCP_TRIMMABLE, DATA_CLASS),
        (DSCP_TRIMMABLE_RETX, DATA_CLASS),
        (DSCP_TRIMMED, CONTROL_CLASS),
        (DSCP_TRIMMED_LASTHOP, CONTROL_CLASS),
        (DSCP_CONTROL, CONTROL_CLASS),
    )
    answers_trimmed = True
    totals = tuple(_core.record_types()["MrcCounters"])
    nic_totals = tuple(_core.record_types()["MrcEndpointCounters"])

    def check(self, settings: TransportSettings) -> None:
        """See TransportKind."""
        if settings.ev_min_active > settings.ev_count:
            raise InvalidValueError(
                f"ev_min_active: {settings.ev_min_active}", valid=f"0 to ev_count, {settings.ev_count}"
            )

    def make_queue_pair(
        self,
        place: QueuePairPlace,
        settings: TransportSettings,
        congestion_control: CongestionControl,
        path_choice: PathChoice | None,
        options: RcOptions,
        ev_paths: EvPaths | None = None,
        ev_profile: EvProfile | None = None,
    ) -> QueuePair:
        """See TransportKind."""
        return self.make_of_domain(
            place, self.options(settings), congestion_control, options, ev_paths, ev_profile, domain=None
        )

    def make_of_domain(
        self,
        place: QueuePairPlace,
        own: MrcOptions,
        congestion_control: CongestionControl,
        options: RcOptions,
        ev_paths: EvPaths | None,
        ev_profile: EvProfile | None,
        domain: _core.MemoryDomain | None,
    ) -> _core.MrcQueuePair:
        """Return a queue pair whose peer reaches the memory of a protection domain; None: the NIC's first.

        `own`: its options besides those that RC has. Otherwise as `make_queue_pair`.
        """
        peers = {place.destination_ip: place.port}
        peers |= {each.destination_ip: each.port for each in place.more_planes}
        more_planes = [(each.port, each.destination_mac, each.destination_ip) for each in place.more_planes]
        without = ("source_udp_port", "more_planes")
        arguments = {name: value for name, value in vars(place).items() if name not in without}
        return _core.MrcQueuePair(
            **arguments,
            more_planes=more_planes,
            congestion_control=congestion_control,
            mrc_options=_options(own, ev_profile),
            routes=_routes(ev_paths, ev_profile, peers),
            memory_domain=domain,
            **options,
        )

    def full_frame_bytes(self, mtu_bytes: int, shape: FrameShape) -> int:
        """See TransportKind."""
        return _core.mrc_full_frame_bytes(mtu_bytes, is_ipv6=shape.is_ipv6, encapsulated=shape.encapsulated)

    def answered_header_bytes(self, ip_version: Literal[4, 6]) -> int:
        """See TransportKind."""
        plain = header_sizes.overhead_bytes(ip_version, int_telemetry=False) - header_sizes.ICRC
        return plain + METH.size_bytes + TSETH.size_bytes + header_sizes.RETH

    def options(self, settings: TransportSettings) -> MrcOptions:
        """See TransportKind."""
        return {
            "ev_count": settings.ev_count,
            "ev_backups": settings.ev_backups,
            "ev_min_active": settings.ev_min_active,
            "max_wimm": settings.max_wimm,
            "max_wimm_dest": settings.max_wimm,
            "probe_interval_ps": settings.probe_interval,
        }

    def flow_options(
        self,
        settings: TransportSettings,
        more_planes: Sequence[tuple[int, str]] = (),
        ev_paths: EvPaths | None = None,
        peers: Mapping[str, int] = NO_PEERS,
        ev_profile: EvProfile | None = None,
    ) -> Mapping[str, Any]:
        """See TransportKind."""
        return {
            "mrc_options": _options(self.options(settings), ev_profile),
            "more_planes": list(more_planes),
            "mrc_routes": _routes(ev_paths, ev_profile, peers),
        }

    def nic_stats(self, nic: _core.Nic, *, reset: bool = False) -> Mapping[str, int]:
        """See TransportKind."""
        counted = _core.mrc_endpoint_stats(nic)
        if reset:
            _core.reset_mrc_endpoint_stats(nic)
        return {**counted}  # type: ignore[dict-item]

    def leave_ports(self, nic: _core.Nic, ports: Sequence[int]) -> None:
        """See TransportKind."""
        _core.withdraw_mrc_ports(nic, ports)

    def path_states(self, queue_pair: QueuePair) -> Sequence[Mapping[str, int]]:
        """See TransportKind."""
        assert isinstance(queue_pair, _core.MrcQueuePair)
        return queue_pair.ev_states()

    def flow_path_states(self, generator: _core.FlowGenerator) -> Sequence[Mapping[str, int]]:
        """See TransportKind."""
        return generator.ev_states()

    def stats_of(self, queue_pair: QueuePair) -> Mapping[str, Any]:
        """See TransportKind."""
        assert isinstance(queue_pair, _core.MrcQueuePair)
        return {**queue_pair.stats(), **queue_pair.mrc_stats()}

    def counters_of(self, generator: _core.FlowGenerator) -> Mapping[str, Any]:
        """See TransportKind."""
        return {**generator.counters(), **generator.mrc_counters()}


def _options(options: MrcOptions, ev_profile: EvProfile | None) -> MrcOptions:
    """Return the options of a queue pair with an EV profile."""
    if ev_profile is None:
        return options
    assert ev_profile.ev_count is not None
    assert ev_profile.ev_min_active is not None
    return {
        **options,
        "ev_count": ev_profile.ev_count,
        "ev_backups": ev_profile.ev_backups,
        "ev_min_active": ev_profile.ev_min_active,
        "ev_profile_id": ev_profile.profile_id,
        "ev_event_mask": ev_profile.event_bits,
    }


def _routes(ev_paths: EvPaths | None, ev_profile: EvProfile | None, peers: Mapping[str, int]) -> _core.EvRoutes | None:
    """Return the engine's table of the EVs to some peers; None: it draws them.

    Raises InvalidValueError if an explicit EV names no path.
    """
    explicit = ev_profile if ev_profile is not None and ev_profile.ev_mode == "explicit" else None
    if ev_paths is None and explicit is None:
        return None
    routes = _core.EvRoutes(encapsulates=ev_paths is not None and ev_paths.encapsulates)
    for peer, port in peers.items():
        named = None if ev_paths is None else ev_paths.routes_to(peer)
        routes.add(peer, (named or []) if explicit is None else _explicit_routes(explicit, port, peer, named))
    return routes


def _explicit_routes(
    profile: EvProfile, plane: int, peer: str, known: Sequence[tuple[int, str]] | None
) -> list[tuple[int, str]]:
    """Return an explicit profile's EVs to a peer; `known` are those that name paths there, None: switches hash all."""
    values = profile.values_on(plane)
    if known is None:
        return [(value, "") for value in values]
    outer = dict(known)
    if without := [value for value in values if value not in outer]:
        raise InvalidValueError(
            f"EV profile {profile.profile_id}: EV 0x{without[0]:08x} names no path to {peer}",
            valid=[f"0x{value:08x}" for value in outer],
        )
    return [(value, outer[value]) for value in values]


KIND = MultipathReliableConnection()
