"""Headers that are written back to where they were parsed, instead of all headers anew.

Most packets leave a switch with the headers that they came with. If the parser has extracted them in the deparser's
order, and none has come or gone since, the packet's bytes are right but for headers that a pipeline has written to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from weft.switch.bmv2json import Deparser, Extract, HeaderRef, Parser, ParseState, SetField, Verify
from weft.switch.lowering.layout import StateLayout


@dataclass(slots=True)
class HeadersInPlace:
    """Headers that pipelines write to, numbered in the order in which their code was emitted.

    Attributes:
        extracted: headers that the parser may extract; no others can be valid before any has come or gone.
        out_of_order: parser states after which a packet's headers are not in the deparser's order.
        most: headers that have room for a number.
        names: of the headers that are written to.
        usable: False if headers chosen at run time are written to, or too many.

    """

    extracted: frozenset[str]
    out_of_order: frozenset[str]
    most: int
    names: list[str] = field(default_factory=list)
    usable: bool = True

    def number_written(self, name: str | None) -> int | None:
        """Note a write to a header (None: one chosen at run time) and return its number, if it is to be kept."""
        if name is None:
            self.usable = False
        elif name in self.names:
            return self.names.index(name)
        elif name in self.extracted:
            self.names.append(name)
            self.usable = self.usable and len(self.names) <= self.most
            return len(self.names) - 1 if self.usable else None
        return None


def headers_in_place(
    parser: Parser | None, deparser: Deparser | None, layout: StateLayout, most: int
) -> HeadersInPlace | None:
    """Return what there is to know of a parser before pipelines' code is emitted; None without parser or deparser."""
    if parser is None or deparser is None:
        return None
    places = {name: number for number, name in enumerate(deparser.order) if not layout.blocks[name].variable_bytes}
    names = {state.name: list(_extracted(state)) for state in parser.states.values()}
    extracted = frozenset(name for each in names.values() for name in each if name is not None)
    numbers = {state: [places.get(name or "", -1) for name in each] for state, each in names.items()}
    return HeadersInPlace(extracted, _out_of_order(parser, numbers), most)


def _extracted(state: ParseState) -> Iterator[str | None]:
    """Yield the headers that a state extracts; None for anything else that moves headers."""
    for operation in state.operations:
        match operation:
            case SetField() | Verify():
                pass
            case Extract(target=HeaderRef(name)):
                yield name
            case _:
                yield None


def _out_of_order(parser: Parser, numbers: dict[str, list[int]]) -> frozenset[str]:
    """Return the states that extract a header whose number is not above all that a path to it may have extracted."""
    if parser.initial_state is None:
        return frozenset()
    found = set()
    highest_before = {parser.initial_state: -1}
    waiting = [parser.initial_state]
    while waiting:
        name = waiting.pop()
        highest = highest_before[name]
        for number in numbers[name]:
            if number <= highest:
                found.add(name)
            highest = max(highest, number)
        for transition in parser.states[name].transitions:
            following = transition.next_state
            if following is not None and highest_before.get(following, -2) < highest:
                highest_before[following] = highest
                waiting.append(following)
    return frozenset(found)
