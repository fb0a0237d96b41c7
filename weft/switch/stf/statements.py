"""Parsed statements of an STF script: names and values as written, not yet resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from weft.switch.stf.errors import Place


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A value for a key field.

    A wildcard digit has zeros in `value` and ones in `wildcard_mask`; at most one of the other three is set:
    `/prefix_length`, `&&&mask`, `->high`.
    """

    text: str
    value: int
    wildcard_mask: int = 0
    prefix_length: int | None = None
    mask: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class ActionText:
    """An action and its arguments; unnamed ones (None) are in the order of the parameters."""

    name: str
    arguments: tuple[tuple[str | None, int], ...]


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet enters by a port."""

    place: Place
    port: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Expect:
    """The next packet of a port: hexadecimal digits, `*` for any; None leaves the contents open.

    Without `whole` the packet may be longer.
    """

    place: Place
    port: int
    digits: str | None
    whole: bool


@dataclass(frozen=True, slots=True)
class NoPacket:
    """Expect that the last packet leaves by no port."""

    place: Place


@dataclass(frozen=True, slots=True)
class Add:
    """A table entry; the larger priority wins. `entry_id` is its name for later lines."""

    place: Place
    table: str
    priority: int | None
    key: tuple[tuple[str, KeyValue], ...]
    action: ActionText
    entry_id: str | None


@dataclass(frozen=True, slots=True)
class SetDefault:
    """Set a table's default action."""

    place: Place
    table: str
    action: ActionText


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove the entry with this id; None: all entries that the script added."""

    place: Place
    entry_id: str | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until earlier packets have been processed."""

    place: Place


@dataclass(frozen=True, slots=True)
class CheckCounter:
    """Compare a counter cell, by index, or an entry's direct counter, by the entry's id, with a number."""

    place: Place
    counter: str
    cell: int | str
    unit: str
    comparison: str
    number: int


@dataclass(frozen=True, slots=True)
class SwitchCommand:
    """A command of BMv2's command line: `mirroring_add`, `mc_mgrp_create`, `register_write`…

    `name` is the object's name, if the command has one; `rates` are (per microsecond, burst).
    """

    place: Place
    command: str
    name: str
    numbers: tuple[int, ...]
    rates: tuple[tuple[float, int], ...] = ()


Statement: TypeAlias = Packet | Expect | NoPacket | Add | SetDefault | Remove | Wait | CheckCounter | SwitchCommand
