"""Bolt: ports that notify senders of queues, and mark packets for which their link has no room (p4/include/bolt)."""

from __future__ import annotations

from dataclasses import dataclass

import finsy

from weft.controller.entities import Entity, default_action, entry, mac_number
from weft.controller.errors import SettingError
from weft.controller.features.kind import Feature, OfSwitch, Settings
from weft.controller.target import MOST_DEPTH_UNITS, TargetFacts
from weft.topologies import FabricSpec, SwitchSpec
from weft.topologies.addressing import CPU_PORT

NOTIFICATION_SESSION = 2
"""Clone session of notifications (NOTIFICATION_SESSION in p4/include/bolt/headers.p4)."""
RAMP_UP_TOKENS = "ramp_up_tokens"
"""Register of the places of flows that have ended, by port."""
MOST_DEPARTURES = 256
"""Packets of flows that end for which a port keeps the place for others (MaxNumPruTokens of the authors' simulator)."""
_SUPPLY_BITS = 16
_MEGABIT = 10**6


@dataclass(frozen=True)
class BoltSettings:
    """Bolt at every port; off without classes.

    Attributes:
        classes: data classes with senders that take notifications.
        threshold_bytes: queue, left behind by a packet, above which its sender is notified.
        frame_bytes: of a full packet, for which a link must have supply.

    """

    classes: tuple[int, ...] = ()
    threshold_bytes: int = 0
    frame_bytes: int = 0


def supply_per_time_unit(rate_bps: int, target: TargetFacts) -> int:
    """Return what a link sends in a unit of the target's time, in 2^-16 bytes."""
    return (rate_bps * target.ns_per_time_unit << _SUPPLY_BITS) // (8 * 10**9)


def bolt_entities(switch: SwitchSpec, target: TargetFacts, chosen: BoltSettings) -> list[Entity]:
    """Return a switch's entries. Raises SettingError for a threshold beyond what a queue's depth counts."""
    threshold = target.depth_units(chosen.threshold_bytes)
    if threshold > MOST_DEPTH_UNITS:
        most = MOST_DEPTH_UNITS * target.depth_unit_bytes
        raise SettingError(f"a notification threshold of {chosen.threshold_bytes} B", valid=f"at most {most} B")
    found: list[Entity] = [
        default_action("notifier", "set_notifier", mac=mac_number(switch.mac)),
        finsy.P4CloneSessionEntry(NOTIFICATION_SESSION, replicas=[CPU_PORT]),
    ]
    found += [
        entry(
            "bolt_ports",
            {"port": port.number},
            "set_bolt",
            data_classes=sum(1 << each for each in chosen.classes),
            queue_threshold=threshold,
            bytes_per_depth_unit=target.depth_unit_bytes,
            port_rate_mbps=port.link.rate_bps // _MEGABIT,
            supply=supply_per_time_unit(port.link.rate_bps, target),
            full_packet_bytes=chosen.frame_bytes,
            most_departures=MOST_DEPARTURES,
        )
        for port in switch.ports
    ]
    return found


def _entities(_fabric: FabricSpec, settings: Settings) -> OfSwitch:
    chosen = settings.of(BoltSettings)
    if not chosen.classes:
        return lambda _switch: ()
    return lambda switch: bolt_entities(switch, settings.target, chosen)


KIND = Feature(
    name="bolt",
    summary="Ports that notify senders of queues.",
    tables=("bolt_ports", "notifier"),
    entities=_entities,
)
