"""How a host's queue pairs send: congestion control, retransmission, paths, acknowledgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from weft.engine import CongestionPreset, congestion_control_kind
from weft.quantities.traffic_classes import DATA_CLASS
from weft.traffic.class_reference import is_class_reference
from weft.traffic.extensions import congestion_needs
from weft.traffic.messages import OneOf

DEFAULT_CONGESTION_CONTROL = "fixed-window"
RETRANSMISSIONS = ("go-back-n", "selective-repeat")
PATHS = ("flow", "flowlet", "spray")
MAX_SPRAY_PATHS = 1 << 14
DEFAULT_OUTSTANDING_READS = 16
DEFAULT_CNP_INTERVAL_PS = 50_000_000
"""Least time between a receiver's CNPs for a flow without a preset's (Zhu et al., SIGCOMM 2015, section 3.1)."""

# Of controls that do not need an acknowledgement of each packet: acknowledgements take rate from data that goes the
# other way.
_ACK_INTERVAL_PACKETS = 8


@dataclass(frozen=True)
class CongestionSettings:
    """The congestion control of a traffic class; see `TransportSettings`."""

    congestion_control: str = DEFAULT_CONGESTION_CONTROL
    parameters: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None


@dataclass(frozen=True)
class TransportSettings:
    """Options of every RC queue pair of a host.

    `congestion_control` is one of `weft.engine.congestion_controls()`, `parameters` some of those that it declares;
    what is left out is the preset's, one of its own, and fits the path. Or it is path/to/file.py:Class, and
    `parameters` are the class's. `path` is one of `PATHS`, or such a class, made with `path_parameters`; "spray" needs
    selective repeat, and a congestion control that does not need one path. `sprayed_by_switches`: packets come in
    another order than they were sent in, whatever the host's own choice of path. `lossless_classes` lose nothing under
    congestion, by flow control on all links. Times in picoseconds. None: made for the path, or for the congestion
    control. `classes` that have a congestion control of their own.
    """

    congestion_control: str = DEFAULT_CONGESTION_CONTROL
    parameters: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None
    retransmission: Annotated[str, OneOf(RETRANSMISSIONS)] = "go-back-n"
    retransmission_timeout_ps: int | None = None
    reordering_window_ps: int | None = None
    sprayed_by_switches: bool = False
    lossless_classes: tuple[int, ...] = ()
    path: str = "flow"
    path_parameters: Mapping[str, Any] = field(default_factory=dict)
    spray_paths: int = MAX_SPRAY_PATHS
    flowlet_gap_ps: int | None = None
    ack_interval_packets: int | None = None
    max_outstanding_reads: int = DEFAULT_OUTSTANDING_READS
    cnp_interval_ps: int | None = None
    classes: Mapping[int, CongestionSettings] = field(default_factory=dict)

    def of_class(self, traffic_class: int) -> TransportSettings:
        """Return the options of the queue pairs whose data travel in a class."""
        own = self.classes.get(traffic_class)
        return self if own is None else replace(self, classes={}, **vars(own))

    def ack_interval(self) -> int:
        """Return how many packets ask for an acknowledgement together."""
        if self.ack_interval_packets:
            return self.ack_interval_packets
        return 1 if congestion_needs(self.congestion_control).every_acknowledgement else _ACK_INTERVAL_PACKETS

    def cnp_interval(self) -> int:
        """Return the least time between a receiver's CNPs for a flow."""
        if self.cnp_interval_ps is not None:
            return self.cnp_interval_ps
        preset = preset_of(self.congestion_control, self.preset)
        return preset.cnp_interval_ps if preset else DEFAULT_CNP_INTERVAL_PS

    def reordering_window(
        self, base_round_trip_ps: int, timeout_ps: int, traffic_class: int = DATA_CLASS
    ) -> int:
        """Return how much later than a packet one of its class may have been sent that arrives before it.

        Where nothing is dropped, a packet that is overtaken waits on its path: one that is missing for as long as the
        retransmission timeout counts as lost, and none sooner, as with adapters under adaptive routing.
        """
        if self.reordering_window_ps is not None:
            return self.reordering_window_ps
        if traffic_class in self.lossless_classes and (self.path != "flow" or self.sprayed_by_switches):
            return timeout_ps
        return base_round_trip_ps if self.path == "spray" or self.sprayed_by_switches else 0


def preset_of(congestion_control: str, name: str | None) -> CongestionPreset | None:
    """Return a preset of a congestion control, its default where no name is given; None if it has none.

    Raises ValueError naming the valid ones.
    """
    presets = (
        [] if is_class_reference(congestion_control) else congestion_control_kind(congestion_control).presets
    )
    if not presets and name is None:
        return None
    found = next((preset for preset in presets if name in (None, preset.name)), None)
    if found is None:
        valid = ", ".join(repr(preset.name) for preset in presets)
        raise ValueError(
            f"{congestion_control} has no preset '{name}' ({f'valid: {valid}' if presets else 'it has none'})"
        )
    return found


@dataclass(frozen=True)
class SegmentSettings:
    """Of messages of lengths with `message_bytes` or more, up to `packets` packets travel as one; 1: none do."""

    packets: int = 1
    message_bytes: int = 0


@dataclass(frozen=True)
class NicCosts:
    """What the way between memory and port costs a host's NIC (engine/hosts/nic_dma.hpp); rate 0: unlimited."""

    pcie_rate_bps: int = 0
    dma_latency_ps: int = 0
    per_message_overhead_ps: int = 0
    per_packet_overhead_ps: int = 0


@dataclass(frozen=True)
class CreditSettings:
    """Flow control by credits on a host's link: `buffer_bytes` for each class, here and at the leaf."""

    classes: tuple[int, ...]
    buffer_bytes: int
    largest_frame_bytes: int


DEFAULT_TRANSPORT = TransportSettings()
NO_SEGMENTS = SegmentSettings()
NO_COSTS = NicCosts()
