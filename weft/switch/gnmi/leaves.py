"""The leaves that gNMI serves: their paths, declared here only, and how each is read.

OpenConfig's leaves have the names, units and meanings of the public models (github.com/openconfig/public):
openconfig-interfaces, openconfig-if-ethernet, openconfig-p4rt and openconfig-qos. These have no leaves for ECN marks,
pauses of priority flow control or the present depth of queues, so Weft has a tree for them, with the origin `weft`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from weft.quantities.traffic_classes import CLASSES
from weft.quantities.units import PS_PER_NS
from weft.switch.gnmi.readings import PortReading, SwitchReading

OPENCONFIG, WEFT = "openconfig", "weft"
ORIGINS = (OPENCONFIG, WEFT)
Value: TypeAlias = bool | int | str
KeyValues: TypeAlias = tuple[str, ...]
Filters: TypeAlias = tuple[str | None, ...]
"""Wanted key values; None wants all."""


class Kind(Enum):
    """How a leaf changes: never, with a port's state (reported on change), or with packets (sampled)."""

    CONSTANT = "constant"
    STATE = "state"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True)
class Step:
    """An element of a leaf's path, with the key of a list."""

    name: str
    key: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A leaf of a tree: `read` takes an instance of its level, and returns None if that instance has no such leaf.

    `is_wide`: an integer of 64 bits, which JSON_IETF writes as a string (RFC 7951, section 6.1).
    """

    origin: str
    steps: tuple[Step, ...]
    kind: Kind
    read: Callable[[Any], Value | None]
    instances: Callable[[SwitchReading, Filters], Iterator[tuple[KeyValues, Any]]]
    is_wide: bool

    def __str__(self) -> str:
        """The path, with the names of keys."""
        return "/" + "/".join(each.name + (f"[{each.key}]" if each.key else "") for each in self.steps)


def _of_switch(reading: SwitchReading, _wanted: Filters) -> Iterator[tuple[KeyValues, SwitchReading]]:
    yield (), reading


def _drops(reading: SwitchReading, wanted: Filters) -> Iterator[tuple[KeyValues, tuple[str, int]]]:
    for reason, packets in reading.drops.items():
        if wanted[0] in (None, reason):
            yield (reason,), (reason, packets)


def _ports(reading: SwitchReading, wanted: Filters) -> Iterator[tuple[KeyValues, PortReading]]:
    name = wanted[0]
    if name is not None:  # a client may name each of many ports
        if name in reading.ports:
            yield (name,), reading.ports[name]
        return
    for name, port in reading.ports.items():
        yield (name,), port


_CLASS_NAMES = tuple(map(str, range(CLASSES)))
_NUMBERS = {name: (number,) for number, name in enumerate(_CLASS_NAMES)}


def _classes(reading: SwitchReading, wanted: Filters) -> Iterator[tuple[KeyValues, tuple[PortReading, int]]]:
    numbers = range(CLASSES) if wanted[1] is None else _NUMBERS.get(wanted[1], ())
    if numbers:  # a client may name many queues that are not there
        for (name,), port in _ports(reading, wanted[:1]):
            for number in numbers:
                yield (name, _CLASS_NAMES[number]), (port, number)


_STEP = re.compile(r"([^\[\]]+)(?:\[([^\[\]]+)\])?")


def _leaf(
    path: str,
    read: Callable[[Any], Value | None],
    instances: Callable[[SwitchReading, Filters], Iterator[tuple[KeyValues, Any]]],
    kind: Kind = Kind.COUNTER,
    origin: str = OPENCONFIG,
    is_wide: bool | None = None,
) -> Leaf:
    found = [_STEP.fullmatch(each) for each in path.split("/")]
    steps = tuple(Step(each[1], each[2]) for each in found if each is not None)
    assert len(steps) == len(found), path
    return Leaf(origin, steps, kind, read, instances, kind is Kind.COUNTER if is_wide is None else is_wide)


def _of_interface(path: str, read: Callable[[PortReading], Value | None], kind: Kind = Kind.COUNTER) -> Leaf:
    return _leaf(f"interfaces/interface[name]/{path}", read, _ports, kind)


def _of_queue(path: str, read: Callable[[tuple[PortReading, int]], Value], kind: Kind = Kind.COUNTER) -> Leaf:
    place = f"qos/interfaces/interface[interface-id]/output/queues/queue[name]/{path}"
    return _leaf(place, read, _classes, kind)


def _of_port(path: str, read: Callable[[PortReading], Value | None], kind: Kind = Kind.COUNTER) -> Leaf:
    is_wide = True if path == "rate-bps" else None
    return _leaf(f"ports/port[name]/state/{path}", read, _ports, kind, WEFT, is_wide)


def _of_class(path: str, read: Callable[[tuple[PortReading, int]], Value | None], kind: Kind = Kind.COUNTER) -> Leaf:
    return _leaf(f"ports/port[name]/classes/class[id]/state/{path}", read, _classes, kind, WEFT)


def _of_pauses(field: str, unit: int = 1) -> Callable[[tuple[PortReading, int]], int | None]:
    def read(place: tuple[PortReading, int]) -> int | None:
        port, number = place
        pfc: Any = port.pfc(number)
        return None if pfc is None else pfc[field] // unit

    return read


def _status(is_up: bool) -> str:
    return "UP" if is_up else "DOWN"


def _id(port: PortReading) -> int | None:
    return port.number or None  # 0 is no port in openconfig-p4rt


def _is_paused(place: tuple[PortReading, int]) -> bool | None:
    port, number = place
    pfc = port.pfc(number)
    return None if pfc is None else pfc["is_paused"]


def _buffer(field: str) -> Callable[[SwitchReading], int | None]:
    def read(switch: SwitchReading) -> int | None:
        buffer: Any = switch.buffer
        return None if buffer is None else buffer[field]

    return read


def _dropped(field: str) -> Callable[[PortReading], int]:
    def read(port: PortReading) -> int:
        transmit: Any = port.stats["transmit"]
        return int(transmit[field]["packets"])

    return read


def _lost(port: PortReading) -> int:
    link = port.stats["link"]
    return link["lost_packets"] + link["corrupted_packets"] + link["cut"]["packets"]


def _mac(port: PortReading) -> int | None:
    mac = port.stats.get("mac")
    return None if mac is None else mac["control_taken"]["packets"]


LEAVES: tuple[Leaf, ...] = (
    _of_interface("name", lambda port: port.name, Kind.CONSTANT),
    _of_interface("state/name", lambda port: port.name, Kind.CONSTANT),
    _of_interface("state/type", lambda _port: "iana-if-type:ethernetCsmacd", Kind.CONSTANT),
    # finsy and Stratum take ifindex for the port's number in P4Runtime; openconfig-p4rt has `id` for it.
    _of_interface("state/ifindex", lambda port: port.number, Kind.CONSTANT),
    _of_interface("state/id", _id, Kind.CONSTANT),
    _of_interface("state/enabled", lambda port: port.is_enabled, Kind.STATE),
    _of_interface("state/admin-status", lambda port: _status(port.is_enabled), Kind.STATE),
    _of_interface("state/oper-status", lambda port: _status(port.is_up), Kind.STATE),
    _of_interface("state/counters/in-octets", lambda port: port.received[1]),
    _of_interface("state/counters/in-pkts", lambda port: port.received[0]),
    _of_interface("state/counters/in-discards", lambda port: port.receive_discards),
    _of_interface("state/counters/in-errors", lambda port: port.receive_errors),
    _of_interface("state/counters/in-fcs-errors", lambda port: port.checksum_errors),
    _of_interface("state/counters/out-octets", lambda port: port.stats["transmit"]["transmitted"]["bytes"]),
    _of_interface("state/counters/out-pkts", lambda port: port.stats["transmit"]["transmitted"]["packets"]),
    _of_interface("state/counters/out-discards", lambda port: port.send_discards),
    _of_interface("state/counters/out-errors", lambda port: port.send_errors),
    _of_interface("ethernet/state/counters/in-mac-control-frames", _mac),
    _of_interface(
        "ethernet/state/counters/out-mac-control-frames",
        lambda port: port.stats["transmit"]["control_transmitted"]["packets"],
    ),
    _leaf(
        "qos/interfaces/interface[interface-id]/state/interface-id",
        lambda port: port.name,
        _ports,
        Kind.CONSTANT,
    ),
    _of_queue("state/name", lambda place: _CLASS_NAMES[place[1]], Kind.CONSTANT),
    _of_queue("state/transmit-pkts", lambda place: place[0].queue(place[1])["transmitted"]["packets"]),
    _of_queue("state/transmit-octets", lambda place: place[0].queue(place[1])["transmitted"]["bytes"]),
    _of_queue("state/dropped-pkts", lambda place: place[0].queue(place[1])["tail_dropped"]["packets"]),
    _of_queue("state/dropped-octets", lambda place: place[0].queue(place[1])["tail_dropped"]["bytes"]),
    _leaf("switch/state/name", lambda switch: switch.name, _of_switch, Kind.CONSTANT, WEFT),
    _leaf("switch/state/device-id", lambda switch: switch.device_id, _of_switch, Kind.CONSTANT, WEFT, True),
    _leaf(
        "switch/state/emulated-time-ns",
        lambda switch: switch.wired.switch.engine.now_ps // PS_PER_NS,
        _of_switch,
        origin=WEFT,
    ),
    _leaf(
        "switch/state/received-pkts",
        lambda switch: switch.wired.switch.native.received_packets,
        _of_switch,
        origin=WEFT,
    ),
    _leaf("switch/state/buffer-used-octets", _buffer("used_bytes"), _of_switch, origin=WEFT),
    _leaf("switch/state/buffer-capacity-octets", _buffer("capacity_bytes"), _of_switch, Kind.CONSTANT, WEFT, True),
    _leaf("switch/drops/drop[reason]/state/reason", lambda drop: drop[0], _drops, Kind.CONSTANT, WEFT),
    _leaf("switch/drops/drop[reason]/state/dropped-pkts", lambda drop: drop[1], _drops, origin=WEFT),
    _of_port("name", lambda port: port.name, Kind.CONSTANT),
    _of_port("rate-bps", lambda port: port.wired.config.rate_bps or None, Kind.CONSTANT),
    _of_port("queue-depth-octets", lambda port: port.stats["transmit"]["queue_depth_bytes"]),
    _of_port("max-queue-depth-octets", lambda port: port.stats["transmit"]["max_queue_depth_bytes"]),
    _of_port("ecn-marked-pkts", lambda port: port.marked),
    _of_port("dropped-queue-full-pkts", _dropped("tail_dropped")),
    _of_port("dropped-headroom-pkts", _dropped("headroom_dropped")),
    _of_port("dropped-down-pkts", _dropped("down_dropped")),
    _of_port("dropped-egress-pkts", _dropped("egress_dropped")),
    _of_port("dropped-trimmed-pkts", _dropped("trim_dropped")),
    _of_port("dropped-storm-pkts", _dropped("storm_dropped")),
    _of_port("dropped-storm-arrival-pkts", _dropped("storm_arrival_dropped")),
    _of_port("link-lost-pkts", _lost),
    _of_class("id", lambda place: place[1], Kind.CONSTANT),
    _of_class("queue-depth-octets", lambda place: place[0].queue(place[1])["queue_depth_bytes"]),
    _of_class("trimmed-pkts", lambda place: place[0].queue(place[1])["trimmed"]["packets"]),
    _of_class("trimmed-octets", lambda place: place[0].queue(place[1])["trimmed"]["bytes"]),
    _of_class("pfc-pauses-sent", _of_pauses("pauses_sent")),
    _of_class("pfc-pauses-received", _of_pauses("pauses_received")),
    _of_class("pfc-paused-emulated-ns", _of_pauses("paused_ps", PS_PER_NS)),
    _of_class("pfc-is-paused", _is_paused),
)
