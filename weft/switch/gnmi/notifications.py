"""gNMI notifications: the values of selected leaves, read from switches and encoded as the client asks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext

import grpc
from finsy.proto import gnmi

from weft.switch.daemon.port_service import PortKey
from weft.switch.daemon.wired_switches import WiredSwitch
from weft.switch.gnmi.errors import GnmiError, shown
from weft.switch.gnmi.leaves import KeyValues, Kind, Leaf, Value
from weft.switch.gnmi.paths import Selection
from weft.switch.gnmi.readings import SwitchReading

ENCODINGS = (gnmi.JSON, gnmi.PROTO, gnmi.JSON_IETF)
MAX_UPDATES = 2048
"""Most values in a notification: some 300 KB, as clients take messages of 4 MiB by default."""
ALL_TARGETS = "*"
Place = tuple[Leaf, KeyValues]
"""A leaf of one switch."""
Read = tuple[Selection, KeyValues, Value]


def check_encoding(encoding: int) -> None:
    """Raise GnmiError for an encoding that is not served."""
    if encoding not in ENCODINGS:
        name = gnmi.Encoding.Name(encoding) if encoding in gnmi.Encoding.values() else str(encoding)
        valid = [gnmi.Encoding.Name(each) for each in ENCODINGS]
        raise GnmiError(f"the encoding {name} is not supported", code=grpc.StatusCode.UNIMPLEMENTED, valid=valid)


def encoded(value: Value, leaf: Leaf, encoding: int) -> gnmi.TypedValue:
    """Return a value in one of ENCODINGS."""
    if encoding == gnmi.PROTO:
        if isinstance(value, bool):
            return gnmi.TypedValue(bool_val=value)
        return gnmi.TypedValue(uint_val=value) if isinstance(value, int) else gnmi.TypedValue(string_val=value)
    if encoding == gnmi.JSON_IETF:
        plain = str(value) if leaf.is_wide and isinstance(value, int) and not isinstance(value, bool) else value
        return gnmi.TypedValue(json_ietf_val=json.dumps(plain).encode())
    return gnmi.TypedValue(json_val=json.dumps(value).encode())


def targets(switches: Iterable[WiredSwitch], target: str) -> list[WiredSwitch]:
    """Return the switches that a prefix's target names: one by its name, or all with `*`.

    Raises GnmiError if there is none of that name, or without a target if there are several switches.
    """
    by_name = {each.config.name: each for each in switches}
    if target == ALL_TARGETS or (not target and len(by_name) == 1):
        return list(by_name.values())
    valid = _some([ALL_TARGETS, *by_name])
    if not target:
        # finsy.Switch asks for ports without a target. On this code only it goes on without them; ports of
        # other switches would mislead it.
        raise GnmiError(
            "this server has several switches: name one as the prefix's target",
            code=grpc.StatusCode.UNIMPLEMENTED,
            valid=valid,
        )
    if target not in by_name:
        raise GnmiError(f"unknown target {shown(target)}", code=grpc.StatusCode.NOT_FOUND, valid=valid)
    return [by_name[target]]


def _some(names: Sequence[str], most: int = 16) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names) - 1} switches)" if len(names) > most else "")


class Reader:
    """Reads selected leaves of switches; `states` returns the last known states of ports."""

    def __init__(self, states: Callable[[], Mapping[PortKey, bool]]) -> None:
        self._states = states

    def read(self, wired: WiredSwitch, selections: Iterable[Selection]) -> list[Read]:
        """Return the values of the selected leaves of a switch, all of one moment, each once."""
        chosen = list(selections)
        reading = SwitchReading(wired, self._states())
        counts = any(each.leaf.kind is Kind.COUNTER for each in chosen)
        found: dict[Place, Read] = {}
        with wired.switch.engine.lock() if counts else nullcontext():
            for selection in chosen:
                leaf = selection.leaf
                for keys, instance in leaf.instances(reading, selection.wanted):
                    if (leaf, keys) in found:
                        continue
                    value = leaf.read(instance)
                    if value is not None:
                        found[leaf, keys] = (selection, keys, value)
        return list(found.values())


def notifications(reads: Sequence[Read], encoding: int, target: str) -> Iterator[gnmi.Notification]:
    """Yield values of one switch in notifications of at most MAX_UPDATES; `target` is empty if none was asked for.

    Times are the machine's, in nanoseconds since 1970.
    """
    now_ns = time.time_ns()
    for start in range(0, len(reads), MAX_UPDATES):
        notification = gnmi.Notification(timestamp=now_ns)
        if target:
            notification.prefix.target = target
        for selection, keys, value in reads[start : start + MAX_UPDATES]:
            update = notification.update.add()
            update.path.origin = selection.origin
            left = iter(keys)
            for step in selection.leaf.steps:
                element = update.path.elem.add()
                element.name = step.name
                if step.key is not None:
                    element.key[step.key] = next(left)
            update.val.CopyFrom(encoded(value, selection.leaf, encoding))
        yield notification
