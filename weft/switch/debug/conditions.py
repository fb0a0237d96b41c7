"""Conditions on packets, `ipv4.dst_addr == 10.0.0.2 and drop`: parsing, and matching of traced packets.

Each part of a condition is checked over the whole trace of the packet and its copies: it holds if it held at some
moment. So `ipv4.ttl == 63` holds for packets that arrived with a TTL of 63, or to which the program assigned it.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from weft.switch.bmv2json import FieldRef, HeaderRef, KeyField, Program
from weft.switch.debug.atoms import (
    COMPARISONS,
    ActionWas,
    Atom,
    BothThere,
    Compared,
    Everything,
    FieldValue,
    HeaderThere,
    InPort,
    Number,
    Operand,
    OutPort,
    SentDigest,
    StateWas,
    TableWas,
    WasAbsorbed,
    WasDropped,
    metadata_of,
)
from weft.switch.debug.condition_tokens import ConditionError, Literal, Token, tokens_of
from weft.switch.debug.names import Names, UnknownNameError
from weft.switch.debug.replay import Replay
from weft.switch.trace.absorption import absorbing_calls
from weft.switch.trace.events import PacketTrace

DEEPEST = 64
"""Most nested parentheses and negations."""


class Condition:
    """A condition on packets of a program. Raises ConditionError with the wrong place and valid alternatives."""

    def __init__(self, text: str, program: Program) -> None:
        parser = _Parser(tokens_of(text), Names(program), may_absorb=any(absorbing_calls(program)))
        self.tree = parser.condition()
        self.atoms = tuple(parser.atoms)
        self._replay = Replay(program)

    def holds(self, trace: PacketTrace) -> bool:
        """Return whether a packet matches."""
        seen = [False] * len(self.atoms)
        given: dict[str, set[tuple[str, str]]] = {}
        last = None
        for last in self._replay.moments(trace.root):
            if last.copy not in given:
                given[last.copy] = set(given.get(last.copy.rpartition(".")[0], ()))
            given[last.copy] |= last.assigned
            for index, atom in enumerate(self.atoms):
                seen[index] = seen[index] or atom.holds(last, given[last.copy])
        if last is not None:
            given_anywhere = set().union(*given.values())
            for index, atom in enumerate(self.atoms):
                if not seen[index] and metadata_of(atom, last.packet) - given_anywhere:
                    seen[index] = atom.holds(last, Everything())
        return self.tree.holds(seen)


def check_syntax(text: str) -> None:
    """Check a condition without a program: all but its names and widths. Raises ConditionError."""
    _SyntaxParser(tokens_of(text), _AnyNames(), may_absorb=False).condition()


@dataclass(frozen=True, slots=True)
class Part:
    """An atom by its number, or a combination of parts: "not" of one, "and" and "or" of several."""

    operator: typing.Literal["atom", "not", "and", "or"]
    index: int = 0
    parts: tuple[Part, ...] = ()

    def holds(self, seen: Sequence[bool]) -> bool:
        """Combine the results of the atoms."""
        match self.operator:
            case "atom":
                return seen[self.index]
            case "not":
                return not self.parts[0].holds(seen)
            case "and":
                return all(part.holds(seen) for part in self.parts)
            case "or":
                return any(part.holds(seen) for part in self.parts)


# By hand: six rules are no reason for a library, and errors point at the character.
class _Parser:
    """Recursive descent by precedence: or, and, not, comparison, `&`."""

    def __init__(self, tokens: list[Token], names: Names | _AnyNames, *, may_absorb: bool) -> None:
        self._tokens = tokens
        self._may_absorb = may_absorb
        self._names = names
        self._position = 0
        self._depth = 0
        self.atoms: list[Atom] = []

    def condition(self) -> Part:
        """Parse the whole text."""
        tree = self._or()
        if self._next.kind != "end":
            self._fail(f"{self._next.quoted} after the condition's end (valid: and, or)")
        return tree

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _take(self) -> Token:
        token = self._next
        self._position += 1
        return token

    def _take_if(self, *texts: str) -> bool:
        if self._next.kind in ("word", "sign") and self._next.text in texts:
            self._position += 1
            return True
        return False

    def _fail(self, problem: str, token: Token | None = None) -> NoReturn:
        raise ConditionError((token or self._next).column, problem)

    def _or(self) -> Part:
        parts = [self._and()]
        while self._take_if("or", "||"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else Part("or", parts=tuple(parts))

    def _and(self) -> Part:
        parts = [self._not()]
        while self._take_if("and", "&&"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else Part("and", parts=tuple(parts))

    def _not(self) -> Part:
        if not self._take_if("not", "!"):
            return self._primary()
        return Part("not", parts=(self._deeper(self._not),))

    def _deeper(self, parse: Callable[[], Part]) -> Part:
        self._depth += 1
        if self._depth > DEEPEST:
            self._fail(f"more than {DEEPEST} parentheses and negations within each other")
        tree = parse()
        self._depth -= 1
        return tree

    def _primary(self) -> Part:
        if self._next.text == "(" and not self._is_operand_in_parentheses():
            self._take()
            tree = self._deeper(self._or)
            self._close()
            return tree
        word = self._next.text if self._next.kind == "word" else ""
        if word in _WORDS:
            self._take()
            made = self._atom(_WORDS[word](self))
            # A packet that the switch took in is marked to be dropped, but nothing is lost.
            return self._but_not_absorbed(made) if word == "drop" and self._may_absorb else made
        return self._comparison()

    def _close(self) -> None:
        if not self._take_if(")"):
            self._fail(f"')' is missing before {self._next.quoted}")

    def _is_operand_in_parentheses(self) -> bool:
        ahead = self._tokens[self._position + 1 : self._position + 5]
        return [token.text for token in ahead[1::2]] == ["&", ")"]

    def _atom(self, atom: Atom) -> Part:
        self.atoms.append(atom)
        return Part("atom", len(self.atoms) - 1)

    # ---- events

    def _drop(self) -> Atom:
        if self._next.kind == "word" and self._next.text not in ("and", "or"):
            return WasDropped(self._named(self._names.drop_reason, "a reason"))
        return WasDropped(None)

    def _but_not_absorbed(self, dropped: Part) -> Part:
        return Part("and", parts=(dropped, Part("not", parts=(self._atom(WasAbsorbed()),))))

    def _absorbed(self) -> Atom:
        return WasAbsorbed()

    def _digest(self) -> Atom:
        return SentDigest()

    def _table(self) -> Atom:
        name = self._named(self._names.table, "a table")
        for outcome in (True, False):
            if self._take_if("hit" if outcome else "miss"):
                return TableWas(name, outcome)
        if self._take_if("entry"):
            if self._next.kind != "text":
                self._fail('an entry is given as text, as traces show it: table NAME entry "10.0.1.0/24"')
            keys = self._names.keys(name)
            widths, names = tuple(key.field.width_bits for key in keys), tuple(key.name for key in keys)
            return TableWas(name, True, self._take().text, widths, names)
        return TableWas(name, None)

    def _action(self) -> Atom:
        return ActionWas(self._names.action_ids(self._named(self._names.action, "an action")))

    def _state(self) -> Atom:
        return StateWas(self._named(self._names.state, "a parser state"))

    def _named(self, find: Callable[[str], str], what: str) -> str:
        token = self._take()
        if token.kind not in ("word", "text"):
            self._fail(f"the name of {what} is missing before {token.quoted}", token)
        try:
            return find(token.text)
        except UnknownNameError as error:
            self._fail(str(error), token)

    # ---- comparisons

    def _comparison(self) -> Part:
        first = self._next
        if first.kind == "word" and (header := self._names.header(first.text.removesuffix(".isValid()"))):
            self._take()
            return self._atom(HeaderThere(header.name))
        left = self._operand()
        if self._next.text not in COMPARISONS:
            if left.width_bits != 1:
                self._fail(f"{first.quoted} is to be compared with something (valid: {', '.join(COMPARISONS)})")
            return self._atom(Compared("==", left, Number(Literal(1))))
        sign = self._take().text
        second = self._next
        right = self._operand()
        self._check_widths(left, right, first, second)
        if sign != "!=":
            return self._atom(Compared(sign, left, right))
        there, equal = self._atom(BothThere(left, right)), self._atom(Compared("==", left, right))
        return Part("and", parts=(there, Part("not", parts=(equal,))))

    def _check_widths(self, left: Operand, right: Operand, first: Token, second: Token) -> None:
        if isinstance(left, Number) and isinstance(right, Number):
            self._fail(f"{first.quoted} and {second.quoted} are both numbers", first)
        for number, other, token in ((right, left, second), (left, right, first)):
            if not isinstance(number, Number) or other.width_bits is None:
                continue
            needs = number.literal.width_bits or max(1, number.literal.value.bit_length())
            if needs > other.width_bits or number.literal.width_bits not in (None, other.width_bits):
                name = (first if token is second else second).text
                self._fail(f"{token.quoted} has {needs} bits, but '{name}' has {other.width_bits}", token)

    def _operand(self) -> Operand:
        if self._take_if("("):
            operand = self._operand()
            self._close()
            return operand
        operand = self._value()
        if self._take_if("&"):
            token = self._take()
            if token.literal is None or not isinstance(operand, FieldValue):
                self._fail("'&' stands between a field and a number", token)
            return FieldValue(operand.ref, token.literal.value)
        return operand

    def _value(self) -> Operand:
        token = self._take()
        if token.literal is not None:
            return Number(token.literal)
        if token.kind != "word":
            self._fail(f"a field, a number or a condition is missing before {token.quoted}", token)
        if token.text in _PORTS:
            return _PORTS[token.text]()
        try:
            constant = self._names.constant(token.text)
            if constant is not None:
                return Number(Literal(constant))
            return FieldValue(self._names.field(token.text))
        except UnknownNameError as error:
            self._fail(str(error), token)


class _SyntaxParser(_Parser):
    def _check_widths(self, left: Operand, right: Operand, first: Token, second: Token) -> None:
        if isinstance(left, Number) and isinstance(right, Number):
            super()._check_widths(left, right, first, second)


class _AnyNames:
    """Stands for the names of a program that is not compiled yet: every name is one of a field of one bit.

    A bit may stand alone, as a header's name may.
    """

    def field(self, text: str) -> FieldRef:
        return FieldRef("", text, 1, False)

    def header(self, _text: str) -> HeaderRef | None:
        return None

    def constant(self, _text: str) -> int | None:
        return None

    def table(self, text: str) -> str:
        return text

    def action(self, text: str) -> str:
        return text

    def state(self, text: str) -> str:
        return text

    def keys(self, _table: str) -> tuple[KeyField, ...]:
        return ()

    def action_ids(self, _name: str) -> frozenset[int]:
        return frozenset()

    def drop_reason(self, text: str) -> str:
        return text


_WORDS: dict[str, Callable[[_Parser], Atom]] = {
    "drop": _Parser._drop,
    "absorbed": _Parser._absorbed,
    "digest": _Parser._digest,
    "table": _Parser._table,
    "action": _Parser._action,
    "state": _Parser._state,
}
_PORTS: dict[str, Callable[[], Operand]] = {"port": InPort, "out_port": OutPort}
