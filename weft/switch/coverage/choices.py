"""Branches with several outcomes: selects, switches on a table's action, hit or miss, a program's entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from weft.switch.backend.program_entries import constant_table_entries
from weft.switch.bmv2json import ParseState, Program, Table, Transition, TransitionKind
from weft.switch.coverage.sources import Counted, located, lookups, shown_tables
from weft.switch.trace.places import choice_place, select_place
from weft.switch.trace.values import key_text

NO_MATCH = "noMatch"
"""The state that compilers add for values without a match in a select."""


class Case(BaseModel):
    """One outcome: its text in the program, its line (0: unknown), and how often it was taken."""

    model_config = ConfigDict(extra="forbid")

    text: str
    line: int
    count: int


class Choice(BaseModel):
    """A place with several outcomes: a select, a switch on a table's action, a table's hit or miss, its entries.

    `file` is empty if unknown.
    """

    model_config = ConfigDict(extra="forbid")

    kind: Literal["select", "switch", "hit", "entries"]
    file: str
    cases: list[Case]

    def add(self, other: Choice) -> None:
        """Add the counts of another run of the same program."""
        known = {(case.text, case.line): case for case in self.cases}
        for more in other.cases:
            own = known.get((more.text, more.line))
            if own is None:  # recorded by a Weft version with other cases
                self.cases.append(more.model_copy())
            else:
                own.count += more.count


def choices(program: Program, counts: Counted, entries: Mapping[str, Counter[str]]) -> dict[str, Choice]:
    """Return all choices of a program, by description; `entries` are hits by table and match."""
    found: dict[str, Choice] = {}
    for parser in program.parsers.values():
        for state in parser.states.values():
            if state.transition_key and len(state.transitions) > 1:
                found[f"select in {state.name}"] = _select(state, counts)
    for table in shown_tables(program):
        if table.branches_on_hit and table.hit_next != table.miss_next:
            found[f"{table.name}.apply().hit"] = _hit(table, counts)
        if choice_place(table) is not None:
            found[f"switch ({table.name}.apply().action_run)"] = _switch(table, counts)
        if table.constant_entries:
            found[f"entries of {table.name}"] = _entries(table, counts, entries.get(table.name, Counter()))
    return found


def _choice(
    kind: Literal["select", "switch", "hit", "entries"],
    source: str | None,
    cases: Iterable[tuple[str, str | None, int]],
) -> Choice:
    """Return a choice with its cases: text, place (None: the choice's place) and how often it was taken."""
    file, line = located(source) or ("", 0)
    found: dict[tuple[str, int], Case] = {}
    for text, own_source, count in cases:
        own_file, own_line = located(own_source) or (file, line)
        file = file or own_file
        # A case with ranges has several transitions.
        case = found.setdefault((text, own_line), Case(text=text, line=own_line, count=0))
        case.count += count
    return Choice(kind=kind, file=file, cases=list(found.values()))


def _select(state: ParseState, counts: Counted) -> Choice:
    return _choice("select", state.source, _select_cases(state, counts[select_place(state)]))


def _select_cases(state: ParseState, counts: tuple[int, ...]) -> Iterator[tuple[str, str | None, int]]:
    for transition, count in zip(state.transitions, counts, strict=False):
        yield _case_text(transition, state), transition.source, count
    if all(transition.kind is not TransitionKind.DEFAULT for transition in state.transitions):
        yield "no case matches", None, counts[-1]


def _case_text(transition: Transition, state: ParseState) -> str:
    if transition.next_state == NO_MATCH:
        return "no case matches"
    if transition.source is not None:
        return transition.source.partition(": ")[2].removesuffix(";").strip()
    digits = -(-state.key_width_bits // 4)
    match transition.kind:
        case TransitionKind.DEFAULT:
            value = "default"
        case TransitionKind.VALUE_SET:
            value = str(transition.value_set)
        case TransitionKind.VALUE:
            mask = "" if transition.mask is None else f" &&& {transition.mask:#0{digits + 2}x}"
            value = f"{transition.value:#0{digits + 2}x}{mask}"
    return f"{value}: {transition.next_state or 'accept'}"


def _hit(table: Table, counts: Counted) -> Choice:
    misses, hits = lookups(table, counts)
    return _choice("hit", table.source, (("false", None, misses), ("true", None, hits)))


def _switch(table: Table, counts: Counted) -> Choice:
    place = choice_place(table)
    assert place is not None
    taken = zip(table.actions, counts[place], strict=False)
    return _choice("switch", table.source, ((action.name, None, count) for action, count in taken))


def _entries(table: Table, counts: Counted, hits: Counter[str]) -> Choice:
    widths, names = [key.field.width_bits for key in table.key], [key.name for key in table.key]
    texts = (key_text(entry.key, widths, names) for entry in constant_table_entries(table))
    cases = [(text, entry.source, hits[text]) for text, entry in zip(texts, table.constant_entries, strict=True)]
    return _choice("entries", table.source, [*cases, ("no entry matches", None, lookups(table, counts)[0])])
