"""Typed access to the fields of a network file's JSON; errors name place, value and choices."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

from weft.quantities.limits import MAX_DELAY_PS, MAX_QUEUE_CAPACITY_BYTES, MAX_RATE_BPS
from weft.quantities.units import PS_PER_MS, PS_PER_S, PS_PER_US, shown
from weft.topologies.addressing import MAX_INTERFACE_NAME_LENGTH, MAX_PORTS
from weft.topologies.errors import MOST_PATH_CHARACTERS, TopologyError
from weft.topologies.networks.model import PACKET_BYTES

"""Most characters of a path."""
_MOST_NAME_BYTES = 255
"""Most bytes of one file or folder name in Linux file systems."""
MIN_RATE_BPS = 10**4
# Units of Linux's tc, to which Mininet passes a delay; tc reads a number without a unit as microseconds.
_TC_UNITS = {
    "": PS_PER_US,
    "us": PS_PER_US,
    "usec": PS_PER_US,
    "usecs": PS_PER_US,
    "ms": PS_PER_MS,
    "msec": PS_PER_MS,
    "msecs": PS_PER_MS,
    "s": PS_PER_S,
    "sec": PS_PER_S,
    "secs": PS_PER_S,
}
_TC_TIME = re.compile(r"\A\s*([0-9]{1,9}(?:\.[0-9]{0,9})?)\s*([a-z]*)\s*\Z")
_NAME = re.compile(r"\A[A-Za-z][A-Za-z0-9_]*\Z")
_MAC = re.compile(r"\A[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}\Z")
# Leaves room for `-eth` and three digits of a port.
_LONGEST_NAME = MAX_INTERFACE_NAME_LENGTH - len("-eth") - 1
_MOST_COMMANDS = 1000
_QUEUES = 8


class Fields:
    """A JSON object at a place."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, Mapping):
            raise TopologyError(f"{shown(value)} is not an object", place=place, valid="{…}")
        self._values = value
        self.place = place

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def get(self, name: str) -> Any:
        """Return a value unchecked; None if it is missing."""
        return self._values.get(name)

    def child(self, name: str) -> Fields:
        """Return a nested object; an empty one if it is missing."""
        value = self._values.get(name)
        return Fields({} if value is None else value, f"{self.place}.{name}" if self.place else name)

    def at(self, name: str) -> str:
        """Return a value's place in the file, for errors."""
        return f"{self.place}.{name}" if self.place else name

    def text(self, name: str) -> str | None:
        """Return a text; None if it is missing."""
        value = self._values.get(name)
        if value is not None and not (isinstance(value, str) and value and "\0" not in value):
            raise TopologyError(f"{shown(value)} is not a text", place=self.at(name), valid="a text")
        return value

    def path(self, name: str, folder: Path) -> Path | None:
        """Return a file's path, resolved against `folder`; None if it is missing."""
        text = self.text(name)
        if text is None:
            return None
        if len(text) > MOST_PATH_CHARACTERS or any(len(part.encode()) > _MOST_NAME_BYTES for part in text.split("/")):
            raise TopologyError(
                f"{shown(text)} is too long a path",
                place=self.at(name),
                valid=f"{MOST_PATH_CHARACTERS:,} characters, {_MOST_NAME_BYTES} bytes of each name in it",
            )
        return (folder / text).resolve()

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; empty if it is missing."""
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(each, str) and "\0" not in each for each in value):
            raise TopologyError(f"{shown(value)} is not a list of texts", place=self.at(name), valid='["…", …]')
        if len(value) > _MOST_COMMANDS:
            raise TopologyError(f"has {len(value)} items", place=self.at(name), valid=f"at most {_MOST_COMMANDS}")
        return tuple(value)

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean; `default` if it is missing."""
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise TopologyError(f"{shown(value)} is not valid", place=self.at(name), valid="true, false")
        return value

    def whole(self, name: str, low: int, high: int) -> int | None:
        """Return a whole number in a range, given as number or text; None if it is missing."""
        value = self._values.get(name)
        return None if value is None else whole_number(value, low, high, self.at(name))


def whole_number(value: object, low: int, high: int, place: str) -> int:
    """Return a whole number in a range, given as number or text. Raises TopologyError."""
    number: object = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,12}", value) else value
    if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
        raise TopologyError(f"{shown(value)} is out of range", place=place, valid=f"{low} to {high}")
    return number


def node_name(name: str, place: str) -> str:
    """Check a node's name, which becomes part of interface names, and return it. Raises TopologyError."""
    if not _NAME.match(name) or len(name) > _LONGEST_NAME:
        raise TopologyError(
            f"{shown(name)} is not a name for a node",
            place=place,
            valid=f"a letter, then letters, digits and _, at most {_LONGEST_NAME} characters",
        )
    return name


def delay_ps(value: object, place: str, number_unit_ps: int) -> int:
    """Return a delay in ps, given as text for Linux's tc (`5ms`) or as a number of units. Raises TopologyError."""
    if isinstance(value, str):
        match = _TC_TIME.match(value)
        if match is None or match[2] not in _TC_UNITS:
            raise TopologyError(f"{shown(value)} is not a delay", place=place, valid="such as 5ms, 10us, 0.5s")
        picoseconds = round(float(match[1]) * _TC_UNITS[match[2]])
    elif isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_DELAY_PS:
        picoseconds = round(value * number_unit_ps)
    else:
        raise TopologyError(f"{shown(value)} is not a delay", place=place, valid='such as 5, "5ms"')
    if not 0 <= picoseconds <= MAX_DELAY_PS:
        raise TopologyError(f"{shown(value)} is out of range", place=place, valid=f"0 to {MAX_DELAY_PS // PS_PER_MS}ms")
    return picoseconds


def _number(value: object) -> int | float:
    """Return a number unchanged, NaN for anything else. JSON integers may be too large for a float."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def rate_bps(value: object, place: str) -> int:
    """Return a bandwidth in b/s, given in Mbit/s as in Mininet. Raises TopologyError."""
    low, high = MIN_RATE_BPS / 10**6, MAX_RATE_BPS / 10**6
    number = _number(value)
    if not low <= number <= high:
        raise TopologyError(f"{shown(value)} is not a bandwidth", place=place, valid=f"{low:g} to {high:g}, in Mbit/s")
    return round(number * 10**6)


def queue_bytes(value: object, place: str) -> int:
    """Return a queue's size in bytes, given in packets. Raises TopologyError."""
    return PACKET_BYTES * whole_number(value, 1, MAX_QUEUE_CAPACITY_BYTES // PACKET_BYTES, place)


def loss_probability(value: object, place: str) -> float:
    """Return a loss probability, given in per cent. Raises TopologyError."""
    number = _number(value)
    if not 0 <= number < 100:
        raise TopologyError(f"{shown(value)} is not a loss", place=place, valid="0 to less than 100, in per cent")
    return number / 100


def ipv4_interface(value: object, place: str) -> str:
    """Return a host's IPv4 address with its prefix length. Raises TopologyError."""
    try:
        found = IPv4Interface(value) if isinstance(value, str) and "/" in value else None
    except ValueError:
        found = None
    if found is None or found.is_multicast or found.is_unspecified or found.is_loopback:
        raise TopologyError(
            f"{shown(value)} is not a host's IPv4 address with its prefix length",
            place=place,
            valid="such as 10.0.1.1/24",
        )
    return str(found)


def ipv4_address(value: object, place: str) -> str:
    """Return an IPv4 address. Raises TopologyError."""
    try:
        return str(IPv4Address(value))
    except ValueError:
        raise TopologyError(f"{shown(value)} is not an IPv4 address", place=place, valid="such as 10.0.1.1") from None


def mac_address(value: object, place: str) -> str:
    """Return a unicast MAC address in lower case. Raises TopologyError."""
    if not isinstance(value, str) or not _MAC.match(value) or int(value[:2], 16) & 1:
        raise TopologyError(
            f"{shown(value)} is not a host's MAC address", place=place, valid="such as 08:00:00:00:01:11"
        )
    return value.lower()


def priority_queues(value: object, place: str) -> bool:
    """Return whether a switch keeps priorities apart, given how many queues a port has. Raises TopologyError."""
    return value is not None and whole_number(value, 1, _QUEUES, place) > 1


def switch_port(value: object, place: str) -> int:
    """Return a switch's port number. Raises TopologyError."""
    return whole_number(value, 1, MAX_PORTS, place)


def link_items(fields: Fields, shortest: int, longest: int) -> list[tuple[str, Sequence[Any]]]:
    """Return pairs of place and item for the list `links`. Raises TopologyError."""
    links = fields.get("links")
    if not isinstance(links, list):
        raise TopologyError(f"{shown(links)} is not a list", place=fields.at("links"), valid="[[…], …]")
    items: list[tuple[str, Sequence[Any]]] = []
    for number, link in enumerate(links):
        place = f"{fields.at('links')}[{number}]"
        if not isinstance(link, list) or not shortest <= len(link) <= longest:
            raise TopologyError(
                f"{shown(link)} is not a link", place=place, valid=f"a list of {shortest} to {longest} items"
            )
        for end in link[:2]:
            if not isinstance(end, str):
                raise TopologyError(f"{shown(end)} is not the name of a node", place=place, valid="a text")
        items.append((place, link))
    return items
