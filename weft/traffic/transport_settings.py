"""How a host's queue pairs send: congestion control, retransmission, paths, acknowledgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from weft.engine import (
    CongestionPreset,
    congestion_control_kind,
    mrc_defaults,
    path_choice_kind,
    path_choice_names,
    rc_defaults,
    record_types,
    uet_defaults,
)
from weft.quantities.definitions import SIZE, PositiveTime, Rate, ShortTime, Time, whole, without_unit
from weft.quantities.example import Example
from weft.quantities.names import Name
from weft.quantities.traffic_classes import DATA_CLASS
from weft.traffic.ev_profiles import MAX_EVS
from weft.traffic.extensions import congestion_needs, engine_name
from weft.traffic.messages import OneOf
from weft.traffic.transports.registry import TRANSPORT_KINDS

if TYPE_CHECKING:
    from weft.engine._core import RcOptions
    from weft.traffic.transports.kind import TransportKind

ProtocolName = Annotated[str, Name("transport", lambda: TRANSPORT_KINDS), OneOf(tuple(TRANSPORT_KINDS))]
PATHS = ("flow", *path_choice_names())
MAX_SPRAY_PATHS = 1 << 14
MRC_DEFAULTS, UET_DEFAULTS = mrc_defaults(), uet_defaults()
DEFAULTS = rc_defaults()
"""The engine's, of its options (engine/hosts/rc_config.hpp)."""
MAX_OUTSTANDING_READS = 128
"""Reads that a requester awaits at a time (kMaxOutstandingReads in engine/hosts/rc_config.cpp)."""

MAX_CREDIT_ADVANCE_BYTES = 2**30
MAX_WIMM = MRC_DEFAULTS["max_wimm"]
"""WRITEs with immediate of a queue pair of MRC: a packet each, in the largest window of packets."""

MAX_PDCS = (1 << 15) - 1
"""PDCs of UET that a NIC may hold in each role (kMostPdcs in engine/hosts/uet/pdc_table.hpp)."""

# Other keys that examples of MRC's and UET's need.
_WITH_MRC = (".protocol=mrc", "int=false")
_WITH_UET = (".protocol=uet", "int=false")

# Of controls that do not need an acknowledgement of each packet: acknowledgements take rate from data that goes the
# other way.
_ACK_INTERVAL_PACKETS = 8

# Parameters of choices of path that have keys of their own.
_KEYS_OF_PATHS = {"flowlet": {"gap_ps": "flowlet_gap"}, "spray": {"paths": "spray_paths"}}


@dataclass(frozen=True)
class CongestionSettings:
    """Congestion control of a traffic class.

    The keys of a scenario's section, which reads `parameters` with units; hosts get them in the engine's units, by its
    names, and a class of the user's with an absolute path.
    """

    congestion_control: Annotated[str, Example("dcqcn")] = "fixed-window"
    """One of Weft's; path/to/file.cpp:NAME, a control of yours in C++; or path/to/file.py:Class, a
    `weft.CongestionControl` of yours."""
    preset: Annotated[str | None, Example("connectx", (".congestion_control=dcqcn",))] = None
    """A set of parameters that the congestion control declares; by default its first."""
    parameters: Annotated[dict[str, Any], Example("{increase_timer: 55us}", (".congestion_control=dcqcn",))] = field(
        default_factory=dict
    )
    """Parameters of the congestion control, such as `{increase_timer: 55us}`; the rest comes from the preset.

    Your own class gets them as keyword arguments.
    """


@dataclass(frozen=True)
class TransportSettings(CongestionSettings):
    """Options of every queue pair: the keys of a scenario's section `transport`, which hosts take as they are.

    A key that is an option of the engine's queue pairs, too (`RcOptions`), reaches them by its name. None: made for
    the path, or for the congestion control.
    """

    protocol: Annotated[ProtocolName, Example("mrc", ("int=false",))] = "rc"
    """`rc`, RoCEv2's reliable connection; `mrc`, Multipath Reliable Connection, which sprays packets over entropy
    values, with `congestion_control: nscc` and `retransmission: selective-repeat` by default (docs/mrc.md); or `uet`,
    Ultra Ethernet Transport, with `congestion_control: nscc` and what `service` needs by default (docs/uet.md)."""
    ev_count: Annotated[int, whole(1, MAX_EVS), Example("256", _WITH_MRC)] = MRC_DEFAULTS["ev_count"]
    """`mrc`: entropy values that packets take in turn."""
    ev_backups: Annotated[int, whole(0, MAX_EVS), Example("64", _WITH_MRC)] = MRC_DEFAULTS["ev_backups"]
    """`mrc`: spare entropy values, which replace those with a failed path."""
    ev_min_active: Annotated[int, whole(0, MAX_EVS), Example("32", _WITH_MRC)] = MRC_DEFAULTS["ev_min_active"]
    """`mrc`: entropy values of a queue pair that stay active even if their paths fail."""
    max_wimm: Annotated[int, whole(1, MAX_WIMM), Example("32", _WITH_MRC)] = MRC_DEFAULTS["max_wimm"]
    """`mrc`: WRITEs with immediate that a queue pair has under way at once; further messages wait."""
    probe_interval: Annotated[PositiveTime, Example("20us", _WITH_MRC)] = MRC_DEFAULTS["probe_interval_ps"]
    """`mrc`: time between probes of an entropy value with a failed path."""
    service: Annotated[Literal["rud", "rod", "rudi", "uud"], Example("rod", _WITH_UET)] = "rud"
    """`uet`: delivery, `rud` (reliable, unordered; `path: reps` by default), `rod` (reliable, ordered; one path),
    `rudi` (of what may be done twice: flows, reads of remote memory, programs) or `uud` (datagrams, for programs alone;
    `path: spray` by default) (docs/uet.md)."""
    max_pdcs: Annotated[int, whole(1, MAX_PDCS), Example("64", _WITH_UET)] = UET_DEFAULTS["max_pdcs"]
    """`uet`: packet delivery contexts (PDCs) that a host holds at once as initiator, and as many as target."""
    pdc_idle: Annotated[PositiveTime, Example("20us", _WITH_UET)] = UET_DEFAULTS["pdc_idle_ps"]
    """`uet`: an initiator closes a PDC after so long with nothing to do."""
    receiver_credits: Annotated[bool, Example("true", _WITH_UET)] = False
    """`uet`: receiver-credit congestion control (RCCC) besides `congestion_control`: hosts send what receivers grant,
    all senders in turn, no faster than a receiver's link."""
    credit_advance: Annotated[
        Annotated[int, SIZE.between(0, MAX_CREDIT_ADVANCE_BYTES)],
        Example("4KiB", (*_WITH_UET, ".receiver_credits=true")),
    ] = UET_DEFAULTS["advance_bytes"]
    """`uet`: what a sender may have sent over a new PDC before a receiver grants credit."""
    retransmission: Literal["go-back-n", "selective-repeat"] = "go-back-n"
    """Packets sent again after a loss."""
    retransmission_timeout: Annotated[PositiveTime | None, Example("200us")] = None
    """By default as long as the path needs: four round trips and the time to drain one full queue; with PFC or credits,
    the memory of all switches on the longest path."""
    reordering_window: Annotated[Time | None, Example("40us")] = None
    """By how much later a packet may have been sent that overtakes another without its counting as lost. By default
    nothing on one path; a round trip where hosts or switches spray; and the retransmission timeout where they do so in
    a class that PFC or credits keep from being lost: only a queue can hold a packet up there. It widens when a packet
    that counted as lost arrives after all, up to a quarter of the retransmission timeout (RFC 8985, section 6.2)."""
    path: Annotated[str, Example("flowlet")] = "flow"
    """How packets choose among equal paths: all of a `flow` take one, one of Weft's choices (below), or
    path/to/file.py:Class, a `weft.PathChoice` of yours."""
    path_parameters: Annotated[dict[str, Any], Example("{threshold: 0.4}", (".path=plb",))] = field(
        default_factory=dict
    )
    """Parameters of the choice of path; your own class gets them as keyword arguments."""
    spray_paths: Annotated[int, whole(1, MAX_SPRAY_PATHS)] = MAX_SPRAY_PATHS
    """Entropies that `spray` draws from."""
    flowlet_gap: PositiveTime | None = None
    """A pause so long lets `flowlet` choose again; by default a round trip."""
    ack_interval: Annotated[int, whole(1, 1024, example="4")] | None = None
    """Packets that ask for an acknowledgement together; by default as the congestion control needs."""
    max_outstanding_reads: Annotated[int, whole(1, MAX_OUTSTANDING_READS)] = DEFAULTS["max_outstanding_reads"]
    """READs that a queue pair has under way at once; further ones wait."""
    cnp_interval: Annotated[Time | None, Example("50us")] = None
    """A receiver's CNPs for a flow come at most so often; by default as the preset has it."""
    notification_threshold: Annotated[
        Annotated[int, SIZE] | None, Example("8KiB", (".congestion_control=bolt", "clock=virtual"))
    ] = None
    """With a congestion control that takes notifications (`bolt`): queue that a packet leaves behind above which its
    sender is notified; by default a full packet."""
    connections: Literal["fresh", "kept"] = "fresh"
    """`fresh` ones for every run of an item of the traffic, so that its figures do not depend on earlier runs, or
    `kept` with all that they have learnt."""
    classes: Mapping[int, CongestionSettings] = field(default_factory=dict)
    """Separate congestion controls for some classes of data."""

    @property
    def sprays(self) -> bool:
        """Whether hosts send packets of a flow over several paths at once, by one of Weft's choices of path."""
        return self.kind.sprays or (self.path in PATHS[1:] and path_choice_kind(self.path).reorders)

    @property
    def kind(self) -> TransportKind:
        """The transport that queue pairs are of."""
        return TRANSPORT_KINDS[self.protocol].variant(self)

    @property
    def path_keys(self) -> dict[str, float]:
        """Parameters of the choice of path that have keys of their own, by the engine's names."""
        keys = _KEYS_OF_PATHS.get(self.path, {})
        given = {parameter: getattr(self, key) for parameter, key in keys.items()}
        return {parameter: value for parameter, value in given.items() if value is not None}

    def of_class(self, traffic_class: int) -> TransportSettings:
        """Return the options of the queue pairs whose data travel in a class."""
        own = self.classes.get(traffic_class)
        return self if own is None else replace(self, classes={}, **vars(own))

    @property
    def ack_interval_in_force(self) -> int:
        """How many packets ask for an acknowledgement together."""
        if self.ack_interval:
            return self.ack_interval
        return 1 if congestion_needs(self.congestion_control).every_acknowledgement else _ACK_INTERVAL_PACKETS

    @property
    def cnp_interval_in_force(self) -> int:
        """Least time between a receiver's CNPs for a flow."""
        if self.cnp_interval is not None:
            return self.cnp_interval
        preset = preset_of(self.congestion_control, self.preset)
        return preset.cnp_interval_ps if preset else DEFAULTS["cnp_interval_ps"]

    def queue_pair_options(
        self,
        base_round_trip_ps: int,
        least_timeout_ps: int,
        traits: PathTraits,
        traffic_class: int = DATA_CLASS,
    ) -> RcOptions:
        """Return the keys that are options of queue pairs, by the engine's names, defaults filled in.

        Args:
            base_round_trip_ps: of the idle path.
            least_timeout_ps: the timeout where neither scenario nor `traits` has one.
            traits: of the paths.
            traffic_class: in which the data travel.
        """
        timeout_ps = self.retransmission_timeout or traits.least_timeout_ps or least_timeout_ps
        in_force = vars(self) | {
            "retransmission_timeout": timeout_ps,
            "reordering_window": self._reordering_window(
                base_round_trip_ps, timeout_ps, traffic_class in traits.lossless_classes, traits
            ),
            "ack_interval": self.ack_interval_in_force,
            "cnp_interval": self.cnp_interval_in_force,
        }
        given = ((option, in_force.get(key)) for option, key in _KEYS_OF_OPTIONS.items())
        return cast("RcOptions", {option: value for option, value in given if value is not None})

    def _reordering_window(self, base_round_trip_ps: int, timeout_ps: int, lossless: bool, traits: PathTraits) -> int:
        """Return how much later than a packet one of its class may have been sent that arrives before it.

        Where nothing is dropped, a packet that is overtaken waits on its path: one that is missing for as long as the
        retransmission timeout counts as lost, and none sooner, as with adapters under adaptive routing.
        """
        if self.reordering_window is not None:
            return self.reordering_window
        if lossless and (self.sprays or self.path != "flow" or traits.sprayed_by_switches):
            return timeout_ps
        return base_round_trip_ps if self.sprays or traits.sprayed_by_switches else 0


_KEYS_OF_OPTIONS = {option: without_unit(option) for option in record_types()["RcOptions"]}


@dataclass(frozen=True)
class PathTraits:
    """How the fabric treats packets on its paths, for those defaults of the transport that depend on it.

    `least_timeout_ps`: how long a full queue takes to drain; 0: unknown. `sprayed_by_switches`: packets come in another
    order than they were sent in, whatever the host's own choice of path. `lossless_classes` lose nothing under
    congestion, by flow control on all links.
    """

    least_timeout_ps: int = 0
    sprayed_by_switches: bool = False
    lossless_classes: tuple[int, ...] = ()


def preset_of(congestion_control: str, name: str | None) -> CongestionPreset | None:
    """Return a preset of a congestion control, its default where no name is given; None if it has none.

    Raises ValueError naming the valid ones.
    """
    native = engine_name(congestion_control)
    presets = [] if native is None else congestion_control_kind(native).presets
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
    """Cost of the way between a host's memory and the link: the keys of a scenario's section `nic`."""

    pcie_rate: Rate | None = None
    """Payload rate in each direction, shared by all ports; unlimited by default."""
    dma_latency: ShortTime = 0
    """From the end of a transfer until its bytes are there."""
    per_message_overhead: ShortTime = 0
    """Before the first packet of a message that is sent."""
    per_packet_overhead: ShortTime = 0
    """Before each data packet, in either direction."""

    def options(self) -> dict[str, int]:
        """Return the costs by the engine's names (engine/hosts/nic_dma.hpp)."""
        return {
            "pcie_rate_bps": self.pcie_rate or 0,
            "dma_latency_ps": self.dma_latency,
            "per_message_overhead_ps": self.per_message_overhead,
            "per_packet_overhead_ps": self.per_packet_overhead,
        }


@dataclass(frozen=True)
class CreditSettings:
    """Flow control by credits on a host's link: `buffer_bytes` for each class, here and at the leaf."""

    classes: tuple[int, ...]
    buffer_bytes: int
    largest_frame_bytes: int


DEFAULT_TRANSPORT = TransportSettings()
NO_TRAITS = PathTraits()
NO_SEGMENTS = SegmentSettings()
NO_COSTS = NicCosts()
