"""Ultra Ethernet Transport (docs/uet.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from weft.engine import PathChoice, _core
from weft.errors import InvalidValueError
from weft.traffic import header_sizes
from weft.traffic.class_reference import is_class_reference
from weft.traffic.ev_profiles import EvProfile
from weft.traffic.header_sizes import BTH, ICRC
from weft.traffic.transport_settings import DEFAULT_TRANSPORT, UET_DEFAULTS
from weft.traffic.transports.kind import NO_PEERS, EvPaths, FrameShape, QueuePair, QueuePairPlace, TransportKind
from weft.traffic.transports.mrc import MultipathReliableConnection
from weft.wire.headers.uet import (
    ACK,
    ACK_CC,
    NSCC_STATE,
    REQUEST,
    REQUEST_CC_STATE,
    RESPONSE,
    RESPONSE_DATA,
    RUDI,
    STANDARD,
    UET_UDP_PORT,
    UUD,
)

if TYPE_CHECKING:
    from weft.engine._core import CongestionControl, RcOptions, UetOptions
    from weft.traffic.transport_settings import TransportSettings

_SELECTIVE_REPEAT = {"retransmission": "selective-repeat"}
_OF_SERVICE: Mapping[str, Mapping[str, str]] = {
    "rud": {**_SELECTIVE_REPEAT, "path": "reps"},
    "rod": {"retransmission": "go-back-n", "path": "flow"},
    "rudi": {**_SELECTIVE_REPEAT, "path": "reps"},
    "uud": {**_SELECTIVE_REPEAT, "path": "spray"},
}
"""Defaults of other keys for each service. Nobody answers datagrams of `uud`, so no path learns from their fate."""
_PATHS_WITHOUT_ANSWERS = ("flow", "flowlet", "spray")
"""Choices of path that do not go by answers, losses or marks."""

_OF_PDCS = ("max_pdcs", "pdc_idle", "receiver_credits", "credit_advance")


class UltraEthernetTransport(TransportKind):
    """Ultra Ethernet Transport."""

    name = "uet"
    service: ClassVar[str] = "rud"
    """One with the same headers as its own."""
    own_keys = ("service", "max_pdcs", "pdc_idle", "receiver_credits", "credit_advance")
    defaults: ClassVar = {"congestion_control": "nscc"}
    udp_ports = (*TransportKind.udp_ports, UET_UDP_PORT)
    retransmissions = ("selective-repeat", "go-back-n")
    sprays = False
    extension_bytes = REQUEST.size_bytes + STANDARD.size_bytes - BTH - ICRC
    immediate_bytes = 0
    read_data_bytes = REQUEST.size_bytes + RESPONSE_DATA.size_bytes - BTH - ICRC
    acknowledges_reads = True
    answer_bytes = ACK.size_bytes + ACK_CC.size_bytes + NSCC_STATE.size_bytes + RESPONSE.size_bytes - BTH - ICRC
    answers_trimmed = True
    operations = frozenset({"WRITE", "WRITE with immediate", "SEND", "READ"})
    without_meaning: ClassVar[tuple[str, ...]] = ()
    """Keys of `transport` that its service makes nothing of."""
    makes: ClassVar[Callable[..., QueuePair]] = _core.UetQueuePair
    """Its queue pairs."""
    # The specification leaves them to operators.
    code_points = MultipathReliableConnection.code_points
    totals = tuple(_core.record_types()["UetCounters"])

    def defaults_for(self, given: Mapping[str, Any]) -> Mapping[str, str]:
        """See TransportKind."""
        service = given.get("service", "rud")
        return {**self.defaults, **(_OF_SERVICE.get(service, {}) if isinstance(service, str) else {})}

    @property
    def title(self) -> str:
        """See TransportKind."""
        return f"transport.service: {self.service}" if self.why_no_more else super().title

    def variant(self, settings: TransportSettings) -> TransportKind:
        """See TransportKind."""
        return _WITHOUT_PDCS.get(settings.service, self)

    def alternatives(self, operations: Iterable[str]) -> list[str]:
        """See TransportKind."""
        posted = frozenset(operations)
        services = ((name, _WITHOUT_PDCS.get(name, KIND)) for name in _OF_SERVICE)
        return [f"service: {name}" for name, kind in services if kind.operations.issuperset(posted)]

    def check(self, settings: TransportSettings) -> None:
        """See TransportKind."""
        for key in self.without_meaning:
            # By the dataclass: sections have the same defaults, but for those of the protocol.
            unset = (getattr(DEFAULT_TRANSPORT, key), self.defaults.get(key))
            if getattr(settings, key) not in unset:
                raise ValueError(f"{key} does not go with service: {settings.service}")
        if not settings.receiver_credits and settings.credit_advance != UET_DEFAULTS["advance_bytes"]:
            raise ValueError("credit_advance needs receiver_credits: true")
        fit = _OF_SERVICE[settings.service]["retransmission"]
        if settings.retransmission != fit:
            raise InvalidValueError(
                f"retransmission: {settings.retransmission} does not go with service: {settings.service}", valid=(fit,)
            )

    def answered_header_bytes(self, ip_version: Literal[4, 6]) -> int:
        """See TransportKind."""
        below = header_sizes.overhead_bytes(ip_version, int_telemetry=False) - BTH - ICRC
        return below + REQUEST.size_bytes + REQUEST_CC_STATE.size_bytes + STANDARD.size_bytes

    def of_clearances(self, settings: TransportSettings) -> TransportSettings:
        """See TransportKind. They need no credit."""
        advance = UET_DEFAULTS["advance_bytes"]
        return replace(super().of_clearances(settings), receiver_credits=False, credit_advance=advance)

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
        arguments = {name: value for name, value in vars(place).items() if name != "more_planes"}
        return type(self).makes(
            **arguments,
            congestion_control=congestion_control,
            path_choice=path_choice,
            uet_options=self.options(settings),
            **options,
        )

    def full_frame_bytes(self, mtu_bytes: int, shape: FrameShape) -> int:
        """See TransportKind."""
        return _core.uet_full_frame_bytes(
            mtu_bytes, is_ipv6=shape.is_ipv6, receiver_credits=shape.receiver_credits, service=self.service
        )

    def options(self, settings: TransportSettings) -> UetOptions:
        """See TransportKind."""
        return {
            "service": settings.service,
            "max_pdcs": settings.max_pdcs,
            "pdc_idle_ps": settings.pdc_idle,
            "receiver_credits": settings.receiver_credits,
            "advance_bytes": settings.credit_advance,
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
        return {"uet_options": self.options(settings)}

    def stats_of(self, queue_pair: QueuePair) -> Mapping[str, Any]:
        """See TransportKind."""
        assert isinstance(queue_pair, (_core.UetQueuePair, _core.RudiQueuePair, _core.UudQueuePair))
        return {**queue_pair.stats(), **queue_pair.uet_stats()}

    def counters_of(self, generator: _core.FlowGenerator) -> Mapping[str, Any]:
        """See TransportKind."""
        return {**generator.counters(), **generator.uet_counters()}


class IdempotentDelivery(UltraEthernetTransport):
    """Service RUDI: reliable, of operations that may be done twice, without PDCs."""

    service = "rudi"
    without_meaning = (*_OF_PDCS, "ack_interval")
    makes = _core.RudiQueuePair
    extension_bytes = RUDI.size_bytes + STANDARD.size_bytes - BTH - ICRC
    read_data_bytes = RUDI.size_bytes + RESPONSE_DATA.size_bytes - BTH - ICRC
    acknowledges_reads = False
    answer_bytes = RUDI.size_bytes + RESPONSE.size_bytes - BTH - ICRC
    operations = frozenset({"WRITE", "READ"})
    why_no_more = "its packets may arrive twice, and receivers learn of no message"


class UnreliableDatagrams(UltraEthernetTransport):
    """Service UUD: datagrams that may be lost, and that nobody answers."""

    service = "uud"
    without_meaning = (
        *_OF_PDCS,
        "congestion_control",
        "preset",
        "parameters",
        "retransmission_timeout",
        "reordering_window",
        "ack_interval",
        "max_outstanding_reads",
    )
    makes = _core.UudQueuePair
    extension_bytes = UUD.size_bytes + STANDARD.size_bytes - BTH - ICRC
    answer_bytes = 0
    answers_trimmed = False
    operations = frozenset({"SEND"})
    why_no_more = "its datagrams may be lost, and are a packet at most"
    is_reliable = False

    def check(self, settings: TransportSettings) -> None:
        """See TransportKind."""
        super().check(settings)
        # A class of the user's may go by the packets alone.
        if settings.path not in _PATHS_WITHOUT_ANSWERS and not is_class_reference(settings.path):
            raise InvalidValueError(
                f"path: {settings.path} learns from answers, which service: {settings.service} does not have",
                valid=f"{', '.join(_PATHS_WITHOUT_ANSWERS)}, or path/to/file.py:Class",
            )


KIND = UltraEthernetTransport()
_WITHOUT_PDCS: Mapping[str, UltraEthernetTransport] = {
    each.service: each for each in (IdempotentDelivery(), UnreliableDatagrams())
}
