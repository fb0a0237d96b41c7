"""Conditions on packets, `ipv4.dst_addr == 10.0.0.2 and drop`: parsing, and matching of traced packets.

Each part of a condition is checked over the whole trace of the packet and its copies: it holds if it held at some
moment. So `ipv4.ttl == 63` holds for packets that arrived with a TTL of 63, or to which the program assigned it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from weft.switch.bmv2json import Program
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
    WasDropped,
)
from weft.switch.debug.condition_tokens import ConditionError, Literal, Token, tokens_of
from weft.switch.debug.names import Names, UnknownNameError
from weft.switch.debug.replay import Replay
from weft.switch.trace.events import PacketTrace

DEEPEST = 64
"""Most nested parentheses and negations."""


class Condition:
    """A condition on packets of a program. Raises ConditionError with the wrong place and valid alternatives."""

    def __init__(self, text: str, program: Program) -> None:
        parser = _Parser(tokens_of(text), Names(program))
        self._tree = parser.condition()
        self._atoms = parser.atoms
        self._replay = Replay(program)

    def holds(self, trace: PacketTrace) -> bool:
        """Return whether a packet matches."""
        seen = [False] * len(self._atoms)
        given: set[tuple[str, str]] = set()
        last = None
        for last in self._replay.moments(trace.root):
            given |= last.assigned
            for index, atom in enumerate(self._atoms):
                seen[index] = seen[index] or atom.holds(last, given)
        if last is not None:
            for index, atom in enumerate(self._atoms):
                seen[index] = seen[index] or atom.holds(last, Everything())
        return self._tree(seen)


_Tree = Callable[[list[bool]], bool]
"""Combines the results of the atoms."""


# By hand: six rules are no reason for a library, and errors point at the character.
class _Parser:
    """Recursive descent by precedence: or, and, not, comparison, `&`."""

    def __init__(self, tokens: list[Token], names: Names) -> None:
        self._tokens = tokens
        self._names = names
        self._position = 0
        self._depth = 0
        self.atoms: list[Atom] = []

    def condition(self) -> _Tree:
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

    def _or(self) -> _Tree:
        parts = [self._and()]
        while self._take_if("or", "||"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else lambda seen: any(part(seen) for part in parts)

    def _and(self) -> _Tree:
        parts = [self._not()]
        while self._take_if("and", "&&"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else lambda seen: all(part(seen) for part in parts)

    def _not(self) -> _Tree:
        if not self._take_if("not", "!"):
            return self._primary()
        inner = self._deeper(self._not)
        return lambda seen: not inner(seen)

    def _deeper(self, parse: Callable[[], _Tree]) -> _Tree:
        self._depth += 1
        if self._depth > DEEPEST:
            self._fail(f"more than {DEEPEST} parentheses and negations within each other")
        tree = parse()
        self._depth -= 1
        return tree

    def _primary(self) -> _Tree:
        if self._next.text == "(" and not self._is_operand_in_parentheses():
            self._take()
            tree = self._deeper(self._or)
            self._close()
            return tree
        word = self._next.text if self._next.kind == "word" else ""
        if word in _WORDS:
            self._take()
            return self._atom(_WORDS[word](self))
        return self._comparison()

    def _close(self) -> None:
        if not self._take_if(")"):
            self._fail(f"')' is missing before {self._next.quoted}")

    def _is_operand_in_parentheses(self) -> bool:
        ahead = self._tokens[self._position + 1 : self._position + 5]
        return [token.text for token in ahead[1::2]] == ["&", ")"]

    def _atom(self, atom: Atom) -> _Tree:
        self.atoms.append(atom)
        index = len(self.atoms) - 1
        return lambda seen: seen[index]

    # ---- events

    def _drop(self) -> Atom:
        if self._next.kind == "word" and self._next.text not in ("and", "or"):
            return WasDropped(self._named(self._names.drop_reason, "a reason"))
        return WasDropped(None)

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

    def _comparison(self) -> _Tree:
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
        return lambda seen: there(seen) and not equal(seen)

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


_WORDS: dict[str, Callable[[_Parser], Atom]] = {
    "drop": _Parser._drop,
    "digest": _Parser._digest,
    "table": _Parser._table,
    "action": _Parser._action,
    "state": _Parser._state,
}
_PORTS: dict[str, Callable[[], Operand]] = {"port": InPort, "out_port": OutPort}
