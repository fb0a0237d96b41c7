"""Users' congestion controls."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from weft.engine import (
    Acknowledgement,
    CongestionNeeds,
    ExtensionError,
    congestion_control_kind,
    python_congestion_control,
)
from weft.engine import CongestionControl as NativeCongestionControl
from weft.quantities.units import PS_PER_S
from weft.topologies.int_rates import STANDARD_INT_RATES
from weft.traffic.class_reference import short_reference
from weft.traffic.extensions.loading import ClassSpec, load_class, make, overridden
from weft.traffic.extensions.native import engine_name


@dataclass(frozen=True)
class PathProperties:
    """Path properties that a congestion control gets when it starts.

    The rate is the sender's port's, the round trip an idle path's to the farthest peer, and `frame_bytes` the size of a
    full data packet from Ethernet to iCRC. The way to the nearest peer has `nearest_hops` routers (0: unknown); each
    further one adds `hop_round_trip_ps`. `sprayed`: a flow's packets take several paths at once. `int_rates_bps`: the
    rates that INT's 16 codes stand for.
    """

    line_rate_bps: int
    base_round_trip_ps: int
    frame_bytes: int
    nearest_round_trip_ps: int = 0
    nearest_hops: int = 0
    hop_round_trip_ps: int = 0
    sprayed: bool = False
    int_rates_bps: tuple[int, ...] = STANDARD_INT_RATES

    @property
    def bandwidth_delay_product_bytes(self) -> int:
        """Frame bytes that fill the path."""
        return max(self.frame_bytes, self.line_rate_bps * self.base_round_trip_ps // (8 * PS_PER_S))


class CongestionControl(abc.ABC):
    """One connection's: events in, window and rate out. Times are emulated picoseconds, sizes bytes of whole frames.

    Each connection has an object of its own. Window, rate and deadline are read after each event. A scenario's
    `parameters` are keyword arguments after `path`. `needs` says what a scenario that names the class must have.
    """

    needs: ClassVar[CongestionNeeds] = CongestionNeeds(every_acknowledgement=True)

    def __init__(self, path: PathProperties) -> None:
        self.path = path

    @abc.abstractmethod
    def window_bytes(self) -> int:
        """Bytes that may be unacknowledged; one packet may always be."""

    @abc.abstractmethod
    def on_acknowledgement(self, event: Acknowledgement) -> None:
        """Process an acknowledgement."""

    def pacing_rate_bps(self) -> int:
        """Rate at which frames may leave; 0: as fast as the port takes them."""
        return 0

    def next_deadline_ps(self) -> int | None:
        """When `on_deadline` is to be called; None: not now."""
        return None

    def on_deadline(self, now_ps: int) -> None:  # noqa: B027
        """Called when the deadline is reached; the next deadline must be later."""

    def on_congestion_notification(self, now_ps: int) -> None:  # noqa: B027
        """Process a CNP: the receiver has received a packet that a switch marked."""

    def on_loss(self, now_ps: int, timeout: bool) -> None:  # noqa: B027
        """Process a sequence NAK or a retransmission timeout."""

    def on_packet_sent(self, now_ps: int, frame_bytes: int, retransmission: bool) -> None:  # noqa: B027
        """Process a packet that was sent; a class without this method is not called for each packet."""


def congestion_needs(name: str) -> CongestionNeeds:
    """Return what a congestion control needs, one of Weft's, path/to/file.py:Class or path/to/file.cpp:NAME.

    Raises:
        ValueError: Weft has none of that name.
        ExtensionError: there is no such class, or it cannot be used.
    """
    native = engine_name(name)
    own = None if native is not None else load_class(name, CongestionControl)  # type: ignore[type-abstract]
    needs = congestion_control_kind(str(native)).needs if own is None else own.needs
    if needs.notifications and native != name:
        raise ExtensionError(
            f"{short_reference(name)} needs notifications of switches, which only Weft's own controls get"
        )
    return needs


def congestion_control(spec: ClassSpec, path: PathProperties) -> NativeCongestionControl:
    """Create a user's congestion control for one connection. Raises ExtensionError if it cannot be used."""
    user = make(spec, CongestionControl, path)  # type: ignore[type-abstract]
    method = partial(overridden, user, CongestionControl)
    return python_congestion_control(
        type(user).__name__,
        window_bytes=user.window_bytes,
        pacing_rate_bps=method("pacing_rate_bps"),
        next_deadline_ps=method("next_deadline_ps"),
        on_packet_sent=method("on_packet_sent"),
        on_acknowledgement=user.on_acknowledgement,
        on_congestion_notification=method("on_congestion_notification"),
        on_loss=method("on_loss"),
        on_deadline=method("on_deadline"),
    )
