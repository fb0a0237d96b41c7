"""The parts of a condition, each of which is checked at every moment of a packet's trace."""

from __future__ import annotations

import operator
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from weft.switch.bmv2json import FieldRef
from weft.switch.debug.condition_tokens import Literal
from weft.switch.debug.replay import Moment
from weft.switch.oracle.state import PacketState
from weft.switch.trace.absorption import absorbs
from weft.switch.trace.events import DigestSent, Dropped, Received, Sent, Step
from weft.switch.trace.places import ActionRun, PrimitiveRun, StateEntered, TableApplied
from weft.switch.trace.values import key_text

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
PORT_BITS = 9
Given: TypeAlias = Set[tuple[str, str]]
"""Metadata fields assigned so far, by instance and name."""


class Everything(frozenset[tuple[str, str]]):
    """The set of all fields, used at the end of a trace: unassigned metadata are then 0."""

    def __contains__(self, _field: object) -> bool:
        return True


class Atom(Protocol):
    """A part of a condition that holds or not at each moment."""

    def holds(self, moment: Moment, given: Given) -> bool:
        """True if it holds after this event."""


# ---- operands of comparisons


@dataclass(frozen=True, slots=True)
class Number:
    """A literal."""

    literal: Literal

    @property
    def width_bits(self) -> int | None:
        """None: as wide as the other operand."""
        return None

    def value(self, _moment: Moment, _given: Given) -> int | None:
        """The literal's value, always."""
        return self.literal.value


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A field, or its bits selected by `mask`."""

    ref: FieldRef
    mask: int | None = None

    @property
    def width_bits(self) -> int | None:
        """Width of the field."""
        return self.ref.width_bits

    def value(self, moment: Moment, given: Given) -> int | None:
        """The value; None while its header is invalid, and for metadata until they are assigned."""
        header = moment.packet.headers[self.ref.header]
        there = (self.ref.header, self.ref.field) in given if header.metadata else header.valid
        return self.of(moment.packet) if there else None

    def of(self, packet: PacketState) -> int:
        """The unsigned value."""
        value = packet.get(self.ref) & ((1 << self.ref.width_bits) - 1)
        return value if self.mask is None else value & self.mask


@dataclass(frozen=True, slots=True)
class InPort:
    """The ingress port of the packet."""

    width_bits: int | None = PORT_BITS

    def value(self, moment: Moment, _given: Given) -> int | None:
        """The port when the packet arrives, else None."""
        event = moment.event
        return event.port if isinstance(event, Received) and event.instance_type == 0 else None


@dataclass(frozen=True, slots=True)
class OutPort:
    """The egress port of the packet or a copy."""

    width_bits: int | None = PORT_BITS

    def value(self, moment: Moment, _given: Given) -> int | None:
        """The port when the packet leaves, else None."""
        return moment.event.port if isinstance(moment.event, Sent) else None


Operand: TypeAlias = Number | FieldValue | InPort | OutPort


# ---- atoms


def metadata_of(atom: Atom, packet: PacketState) -> set[tuple[str, str]]:
    """Return the metadata fields that a comparison reads, by instance and name."""
    operands = (atom.left, atom.right) if isinstance(atom, BothThere | Compared) else ()
    refs = (operand.ref for operand in operands if isinstance(operand, FieldValue))
    return {(ref.header, ref.field) for ref in refs if packet.headers[ref.header].metadata}


@dataclass(frozen=True, slots=True)
class BothThere:
    """Both sides of a comparison have values."""

    left: Operand
    right: Operand

    def holds(self, moment: Moment, given: Given) -> bool:
        """See Atom."""
        return self.left.value(moment, given) is not None and self.right.value(moment, given) is not None


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison; a prefix compares only its bits."""

    sign: str
    left: Operand
    right: Operand

    def holds(self, moment: Moment, given: Given) -> bool:
        """See Atom."""
        left, right = self.left.value(moment, given), self.right.value(moment, given)
        if left is None or right is None:
            return False
        for side in (self.left, self.right):
            if isinstance(side, Number) and side.literal.mask is not None:
                left, right = left & side.literal.mask, right & side.literal.mask
        return COMPARISONS[self.sign](left, right)


@dataclass(frozen=True, slots=True)
class HeaderThere:
    """A header is valid."""

    header: str

    def holds(self, moment: Moment, _given: Given) -> bool:
        """See Atom."""
        return moment.packet.headers[self.header].valid


@dataclass(frozen=True, slots=True)
class TableWas:
    """A table was applied; `hit` None: with any outcome. `entry`: the entry's match as shown in traces."""

    table: str
    hit: bool | None
    entry: str | None = None
    widths_bits: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def holds(self, moment: Moment, _given: Given) -> bool:
        """See Atom."""
        event = moment.event
        if not isinstance(event, Step) or not isinstance(event.place, TableApplied):
            return False
        if event.place.table != self.table:
            return False
        if self.hit is None:
            return True
        if self.entry is None or event.match is None:
            return self.hit == (event.match is not None)
        return key_text(event.match[0], self.widths_bits, self.names) == self.entry


@dataclass(frozen=True, slots=True)
class ActionWas:
    """An action ran."""

    action_ids: frozenset[int]

    def holds(self, moment: Moment, _given: Given) -> bool:
        """See Atom."""
        event = moment.event
        if not isinstance(event, Step) or not isinstance(event.place, ActionRun):
            return False
        return event.place.action_id in self.action_ids


@dataclass(frozen=True, slots=True)
class StateWas:
    """A parser state was entered."""

    state: str

    def holds(self, moment: Moment, _given: Given) -> bool:
        """See Atom."""
        event = moment.event
        return isinstance(event, Step) and event.place == StateEntered(self.state)


@dataclass(frozen=True, slots=True)
class WasDropped:
    """The packet or a copy of it was dropped; `reason` None: for any reason."""

    reason: str | None

    def holds(self, moment: Moment, _given: Given) -> bool:
        """See Atom."""
        event = moment.event
        return isinstance(event, Dropped) and self.reason in (None, event.reason)


@dataclass(frozen=True, slots=True)
class SentDigest:
    """The packet or a copy of it sent a digest to the controller."""

    def holds(self, moment: Moment, _given: Given) -> bool:
        """See Atom."""
        return isinstance(moment.event, DigestSent)


@dataclass(frozen=True, slots=True)
class WasAbsorbed:
    """The switch took the packet in, such as a contribution that it added up (switch/trace/absorption.py)."""

    def holds(self, moment: Moment, _given: Given) -> bool:
        """See Atom."""
        event = moment.event
        return isinstance(event, Step) and isinstance(event.place, PrimitiveRun) and absorbs(event.place.call)
