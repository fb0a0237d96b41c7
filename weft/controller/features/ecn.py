"""ECN thresholds per port and class, in the units of the target (DCQCN, SIGCOMM 2015, section 3.1).

Marking starts above Kmin, rises linearly to Pmax at Kmax and is certain above. P4 has no division at run
time, so the slope is installed as fixed point: Pmax x 2^32 / (Kmax - Kmin), per unit of queue depth.

Marking uses the queue depth when a packet leaves (`dequeue`), as in switches with a shared buffer and in HPCC's
simulations, or when it arrives (`enqueue`), which is one queueing delay old when the mark leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

import finsy

from weft.controller.entities import entry, exact_arguments
from weft.controller.errors import SettingError
from weft.controller.features.identity import TrafficClassSettings
from weft.controller.features.kind import Feature, OfSwitch, Row, Settings, port_name
from weft.controller.features.virtual_lanes import lane_classes
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.lanes import ONE_LANE, VirtualLanes
from weft.controller.target import MOST_DEPTH_UNITS, TargetFacts
from weft.quantities.traffic_classes import DATA_CLASS
from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.topologies import FabricSpec, SwitchSpec

if TYPE_CHECKING:
    from weft.controller.lab import Lab
    from weft.controller.session import SwitchSession

TABLE = "ecn_thresholds"
EcnDepth = Literal["dequeue", "enqueue"]
"""Queue depth that decides about marking: when the packet leaves, or when it arrives."""
DEFAULT_ECN_DEPTH: EcnDepth = "dequeue"
CLASSES = 8
_NEVER_BYTES = (1 << 63) - 1
_SLOPE_BITS = 32
_SLOPE_ONE = 1 << 32
_ACTIONS: dict[EcnDepth, str] = {"dequeue": "set_ecn", "enqueue": "set_ecn_at_enqueue"}


@dataclass(frozen=True)
class EcnProfile:
    """Thresholds of one class: queue depths in bytes, and the marking probability at `kmax_bytes`."""

    kmin_bytes: int
    kmax_bytes: int
    pmax: float

    def __post_init__(self) -> None:
        if self.kmin_bytes < 0:
            raise SettingError(f"kmin_bytes={self.kmin_bytes} is out of range", valid="0 or more")
        if self.kmax_bytes < self.kmin_bytes:
            raise SettingError(f"kmax_bytes={self.kmax_bytes} is below kmin_bytes={self.kmin_bytes}")
        if not 0 <= self.pmax <= 1:
            raise SettingError(f"pmax={self.pmax} is out of range", valid="0 to 1")


@dataclass(frozen=True)
class EcnScale:
    """Thresholds for ports of any rate: how long queues as deep as they take to drain.

    `least_bytes` is the least depth, and the least distance of the two.
    """

    kmin_ps: int
    kmax_ps: int
    pmax: float
    least_bytes: int = 0

    def profile(self, rate_bps: int) -> EcnProfile:
        """Return the thresholds at a rate."""
        return _profile(self, rate_bps)


@lru_cache(maxsize=256)
def _profile(scale: EcnScale, rate_bps: int) -> EcnProfile:
    kmin_bytes, kmax_bytes = (time_ps * rate_bps // (8 * PS_PER_S) for time_ps in (scale.kmin_ps, scale.kmax_ps))
    kmin_bytes = max(kmin_bytes, scale.least_bytes)
    return EcnProfile(kmin_bytes, max(kmax_bytes, kmin_bytes + scale.least_bytes), scale.pmax)


DCQCN_SCALE = EcnScale(kmin_ps=32 * PS_PER_US, kmax_ps=128 * PS_PER_US, pmax=0.2)
"""HPCC's settings for DCQCN (SIGCOMM 2019, section 5.1): 100 KB and 400 KB per 25 Gb/s."""


@dataclass(frozen=True)
class EcnSettings:
    """ECN marking at every port.

    Attributes:
        profiles: thresholds by class; None scales the data classes to each port's rate, {} disables marking.
        at: queue depth that decides about marking.
        scales: of data classes with another scale than DCQCN's.

    """

    profiles: Mapping[int, EcnProfile] | None = None
    at: EcnDepth = DEFAULT_ECN_DEPTH
    scales: Mapping[int, EcnScale] = field(default_factory=dict)

    def profiles_at(self, rate_bps: int, data: Sequence[int] = (DATA_CLASS,)) -> Mapping[int, EcnProfile]:
        """Return the thresholds by class of a port; `data` are the data classes."""
        if self.profiles is not None:
            return self.profiles
        return {each: self.scales.get(each, DCQCN_SCALE).profile(rate_bps) for each in data}

    def marks_from_bytes(self, rate_bps: int, data: Sequence[int] = (DATA_CLASS,)) -> int:
        """Return the depth from which a port marks packets of any class; more than any queue holds if it never does."""
        kmins_bytes = (profile.kmin_bytes for profile in self.profiles_at(rate_bps, data).values())
        return min(kmins_bytes, default=_NEVER_BYTES)


@dataclass(frozen=True)
class SplitSettings:
    """Whether segments represent several packets; ports split them into packets where marking is possible.

    Attributes:
        splits: whether segments are used.
        marking: as ports know it, which split segments from its depths on.

    """

    splits: bool = False
    marking: EcnSettings = EcnSettings()


@dataclass(frozen=True)
class EcnThresholds:
    """Thresholds as the switch stores them: depths in its unit, and the fixed-point slope."""

    kmin: int
    kmax: int
    slope: int


def require_marks_by_packet(
    fabric: FabricSpec, chosen: EcnSettings, split: SplitSettings, data: Sequence[int] = (DATA_CLASS,)
) -> None:
    """Check that ports split segments before they mark them. Raises SettingError."""
    if not split.splits:
        return
    if chosen.at != "dequeue":
        raise SettingError(f"segments are not marked by the depth at {chosen.at!r}", valid="'dequeue'")
    for rate_bps in {port.link.rate_bps for switch in fabric.switches for port in switch.ports}:
        least = split.marking.marks_from_bytes(rate_bps, data)
        for kmin_bytes in (profile.kmin_bytes for profile in chosen.profiles_at(rate_bps, data).values()):
            if kmin_bytes < least:
                raise SettingError(
                    f"kmin_bytes={kmin_bytes} would mark whole segments, which ports of {rate_bps} bit/s split from "
                    f"{least} B on",
                    valid=f"{least} or more",
                )


def thresholds(profile: EcnProfile, target: TargetFacts) -> EcnThresholds:
    """Convert a profile to the target's units.

    Raises:
        SettingError: a threshold exceeds the 19-bit queue depth.

    """
    kmin = target.depth_units(profile.kmin_bytes)
    kmax = target.depth_units(profile.kmax_bytes)
    if kmax > MOST_DEPTH_UNITS:
        raise SettingError(
            f"kmax_bytes={profile.kmax_bytes} is {kmax} {target.depth_unit} of {target.depth_unit_bytes} B",
            valid=f"at most {MOST_DEPTH_UNITS} {target.depth_unit}, {MOST_DEPTH_UNITS * target.depth_unit_bytes} bytes",
        )
    if kmax == kmin:
        return EcnThresholds(kmin, kmax, 0)
    slope = min(round(profile.pmax * _SLOPE_ONE / (kmax - kmin)), (1 << _SLOPE_BITS) - 1)
    return EcnThresholds(kmin, kmax, slope)


def profile_of(installed: EcnThresholds, target: TargetFacts) -> EcnProfile:
    """Convert thresholds read from a switch back to bytes and a probability."""
    unit = target.depth_unit_bytes
    pmax = installed.slope * (installed.kmax - installed.kmin) / _SLOPE_ONE
    return EcnProfile(installed.kmin * unit, installed.kmax * unit, min(1.0, pmax))


@lru_cache(maxsize=1 << 13)
def threshold_entity(
    port: int,
    priority_class: int,
    profile: EcnProfile,
    target: TargetFacts,
    at: EcnDepth = DEFAULT_ECN_DEPTH,
) -> finsy.P4TableEntry:
    """Return the entry of `ecn_thresholds` for one port and class; all switches share equal entries.

    Raises:
        SettingError: the program does not support a class, threshold or depth.

    """
    if not 0 <= priority_class < CLASSES:
        raise SettingError(f"class {priority_class} is out of range", valid=f"0 to {CLASSES - 1}")
    if at not in _ACTIONS:
        raise SettingError(f"ECN cannot mark by the depth at {at!r}", valid=get_args(EcnDepth))
    values = thresholds(profile, target)
    match = {"port": port, "class": priority_class}
    return entry(TABLE, match, _ACTIONS[at], kmin=values.kmin, kmax=values.kmax, slope=values.slope)


def ecn_entities(
    switch: SwitchSpec,
    target: TargetFacts,
    chosen: EcnSettings = EcnSettings(),
    lanes: VirtualLanes = ONE_LANE,
    data: Sequence[int] = (DATA_CLASS,),
) -> list[finsy.P4TableEntry]:
    """Return the entries of all ports of a switch.

    Args:
        switch: the switch.
        target: provides the units.
        chosen: thresholds, and the queue depth that decides about marking.
        lanes: virtual lanes of the routes; each lane of a class has the class's profile.
        data: the data classes.

    """
    return [
        threshold_entity(port.number, lane, profile, target, chosen.at)
        for port in switch.ports
        for priority_class, profile in chosen.profiles_at(port.link.rate_bps, data).items()
        for lane in lane_classes(priority_class, lanes)
    ]


def read_thresholds(entry: finsy.P4TableEntry) -> tuple[int, int, EcnDepth | None, EcnThresholds]:
    """Return port, class, deciding depth and thresholds of an entry read from a switch.

    The depth is None if the program uses another action.
    """
    match: Mapping[str, int] = entry.match or {}
    action, arguments = entry.action, exact_arguments(entry.action)
    name = action.name if isinstance(action, finsy.P4TableAction) else ""
    at = next((at for at, known in _ACTIONS.items() if known == name), None)
    values = EcnThresholds(int(arguments["kmin"]), int(arguments["kmax"]), int(arguments["slope"]))
    return match["port"], match["class"], at, values


async def ecn_rows(session: SwitchSession, spec: SwitchSpec | None, lab: Lab) -> list[Row]:
    """Return rows with thresholds by port and class, in bytes and in the target's unit."""
    rows = []
    for found in await session.read([finsy.P4TableEntry(TABLE)]):
        port, priority_class, at, values = read_thresholds(found)
        profile = profile_of(values, lab.facts)
        rows.append(
            {
                "switch": session.name,
                "port": port_name(spec, port),
                "class": priority_class,
                "at": at,
                "kmin_bytes": profile.kmin_bytes,
                "kmax_bytes": profile.kmax_bytes,
                "pmax": round(profile.pmax, 6),
                "kmin": values.kmin,
                "kmax": values.kmax,
                "slope": values.slope,
                "unit": lab.facts.depth_unit,
            }
        )
    return sorted(rows, key=lambda row: (int(row["port"].split()[0]), row["class"]))


def _entities(fabric: FabricSpec, settings: Settings) -> OfSwitch:
    chosen = settings.of(EcnSettings)
    kind = ROUTING_KINDS.named(settings.routing)
    lanes = kind.lanes_of_planes(fabric)
    data = settings.of(TrafficClassSettings).data
    require_marks_by_packet(fabric, chosen, settings.of(SplitSettings), data)
    return lambda switch: ecn_entities(switch, settings.target, chosen, lanes[switch.plane], data)


KIND = Feature(
    name="ecn",
    summary="Thresholds by port and class.",
    tables=(TABLE,),
    entities=_entities,
    rows=ecn_rows,
)
