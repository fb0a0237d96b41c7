"""RoCEv2's reliable connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.engine import PathChoice, _core
from weft.traffic.ev_profiles import EvProfile
from weft.traffic.header_sizes import AETH
from weft.traffic.transports.kind import EvPaths, FrameShape, QueuePair, QueuePairPlace, TransportKind

if TYPE_CHECKING:
    from weft.engine._core import CongestionControl, RcOptions
    from weft.traffic.transport_settings import TransportSettings


class ReliableConnection(TransportKind):
    """RoCEv2's reliable connection."""

    name = "rc"
    own_keys = ("cnp_interval",)
    operations = frozenset({"WRITE", "WRITE with immediate", "READ", "SEND", "atomic operation"})
    retransmissions = ("go-back-n", "selective-repeat")
    sprays = False
    has_cnps = True
    answer_bytes = AETH
    takes_notifications = True
    carries_int = True
    has_segments = True
    goes_with_data_classes = True

    def objection_to_programs(self, settings: TransportSettings) -> str:
        """See TransportKind."""
        if settings.retransmission == "go-back-n":
            return ""
        return (
            f"retransmission: {settings.retransmission} of {self.name} carries neither SENDs nor receives of "
            "immediates, which rdma has"
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
        arguments = {name: value for name, value in vars(place).items() if name != "more_planes"}
        return _core.RcQueuePair(**arguments, congestion_control=congestion_control, path_choice=path_choice, **options)

    def full_frame_bytes(self, mtu_bytes: int, shape: FrameShape) -> int:
        """See TransportKind."""
        return _core.full_frame_bytes(
            mtu_bytes, is_ipv6=shape.is_ipv6, telemetry=shape.telemetry, retransmission=shape.retransmission
        )


KIND = ReliableConnection()
