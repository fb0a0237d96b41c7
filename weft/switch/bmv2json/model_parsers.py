"""Parsers and deparsers, as the loader has checked them.

Source: behavioral-model docs/JSON_format.md, format version 2.x.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from weft.switch.bmv2json.expressions import (
    Expression,
    FieldRef,
    HeaderRef,
    Lookahead,
    StackField,
    StackRef,
    UnionStackField,
)
from weft.switch.bmv2json.primitives import PrimitiveCall

PARSER_STEP_LIMIT = 4096
"""Most states that a packet may pass through in a parser; one more is the error ParserTimeout.

Every executor enforces it.
"""


@dataclass(frozen=True, slots=True)
class UnionStackMember:
    """The next union of a union stack, as its member `member` (target of an extraction)."""

    stack: str
    member: str


@dataclass(frozen=True, slots=True)
class Extract:
    """Extract a header; `length_bits` is the width of its variable-length field, if it has one."""

    target: HeaderRef | StackRef | UnionStackMember
    length_bits: Expression | None = None


@dataclass(frozen=True, slots=True)
class SetField:
    """Assign in the parser; the source may be a Lookahead."""

    target: FieldRef
    source: Expression


@dataclass(frozen=True, slots=True)
class Verify:
    """Stop parsing with the value of `error` unless `condition` holds."""

    condition: Expression
    error: Expression


@dataclass(frozen=True, slots=True)
class Advance:
    """Skip `bits` (a multiple of 8) of the packet."""

    bits: Expression


@dataclass(frozen=True, slots=True)
class ParserPrimitive:
    """An action primitive called from a parser state."""

    call: PrimitiveCall


ParserOperation: TypeAlias = Extract | SetField | Verify | Advance | ParserPrimitive


TransitionKeyField: TypeAlias = FieldRef | StackField | UnionStackField | Lookahead


class TransitionKind(enum.Enum):
    """How a transition is selected."""

    DEFAULT = "default"
    VALUE = "hexstr"
    VALUE_SET = "parse_vset"


@dataclass(frozen=True, slots=True)
class Transition:
    """Taken if key & mask == value & mask.

    Values are the key fields, each padded to whole bytes, concatenated.

    `mask` None is all ones; `next_state` None ends the parser.
    """

    kind: TransitionKind
    next_state: str | None
    value: int = 0
    mask: int | None = None
    value_set: str | None = None
    source: str | None = None
    """The case in the P4 program, as in PrimitiveCall; p4c does not record it."""

    def fits(self, key: int) -> bool | None:
        """Return whether the transition fits a key; None if a value set decides."""
        match self.kind:
            case TransitionKind.DEFAULT:
                return True
            case TransitionKind.VALUE_SET:
                return None
        mask = -1 if self.mask is None else self.mask
        return key & mask == self.value & mask


@dataclass(frozen=True, slots=True)
class ParseState:
    """Operations, then the first transition that fits.

    If none does, parsing ends without error (as in BMv2).
    """

    name: str
    id: int
    operations: tuple[ParserOperation, ...]
    transition_key: tuple[TransitionKeyField, ...]
    transitions: tuple[Transition, ...]
    source: str | None = None
    """Its place in the P4 program, as in PrimitiveCall; p4c does not record it."""

    @property
    def key_width_bits(self) -> int:
        """Width of the concatenated key, each field padded to whole bytes."""
        return sum((field.width_bits + 7) // 8 * 8 for field in self.transition_key)

    def transition(self, key: int) -> Transition | None:
        """Return the transition taken for a key; None if none fits or a value set decides."""
        for each in self.transitions:
            fits = each.fits(key)
            if fits or fits is None:
                return each if fits else None
        return None


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser; `initial_state` None accepts immediately."""

    name: str
    id: int
    initial_state: str | None
    states: Mapping[str, ParseState]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A parser value set; `width_bits` is the width of a value without padding."""

    name: str
    id: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class Deparser:
    """`order` are header instance names; `primitives` run before anything is written."""

    name: str
    id: int
    order: tuple[str, ...]
    primitives: tuple[PrimitiveCall, ...] = ()
