"""Coverage of a program: counts by line, branch, action, state, table and entry; as JSON, and merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from weft.switch.bmv2json import Action, Conditional, ParseState, Program
from weft.switch.coverage.choices import Choice, choices
from weft.switch.coverage.sources import Counted, Source, located, lookups, shown_tables
from weft.switch.trace.places import (
    ActionRun,
    Branched,
    PrimitiveRun,
    StateEntered,
    primitive_place,
)

MOST_ENTRIES = 100_000
"""Most entries of a program with recorded hits; further ones are only counted."""
_Key = TypeVar("_Key", str, int)


class Branch(BaseModel):
    """A condition: its place, its text, and how often it was false and true."""

    model_config = ConfigDict(extra="forbid")

    file: str
    line: int
    text: str
    false: int
    true: int


class ProgramCoverage(BaseModel):
    """Coverage of one program. Counts are passes of packets: 0 was never reached.

    `lines`: by file and line. `actions`, `states`: by name. `tables`: misses and hits.
    `choices`: by their text in the program.
    `entries`: by table and match as shown in traces; `entries_left_out` are beyond MOST_ENTRIES.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    content_hash: str = Field(pattern="^[0-9a-f]{64}$")
    lines: dict[str, dict[int, int]]
    branches: dict[str, Branch]
    actions: dict[str, int]
    states: dict[str, int]
    functions: dict[str, Source]
    """Where actions and states begin, if known."""
    tables: dict[str, tuple[int, int]]
    entries: dict[str, dict[str, int]]
    entries_left_out: int = 0
    choices: dict[str, Choice] = Field(default_factory=dict)

    def add(self, other: ProgramCoverage) -> None:
        """Add the counts of another run of the same program."""
        for file, lines in other.lines.items():
            _add(self.lines.setdefault(file, {}), lines)
        for name, branch in other.branches.items():
            own = self.branches.setdefault(name, branch.model_copy(update={"false": 0, "true": 0}))
            own.false, own.true = own.false + branch.false, own.true + branch.true
        _add(self.actions, other.actions)
        _add(self.states, other.states)
        self.functions |= other.functions
        for name, (misses, hits) in other.tables.items():
            before = self.tables.get(name, (0, 0))
            self.tables[name] = before[0] + misses, before[1] + hits
        for table, entries in other.entries.items():
            _add(self.entries.setdefault(table, {}), entries)
        for name, choice in other.choices.items():
            if name in self.choices:
                self.choices[name].add(choice)
            else:
                self.choices[name] = choice.model_copy(deep=True)
        self.entries_left_out = max(self.entries_left_out, other.entries_left_out)


def _add(to: dict[_Key, int], counts: dict[_Key, int]) -> None:
    for key, count in counts.items():
        to[key] = to.get(key, 0) + count


def program_coverage(program: Program, counts: Counted, entries: dict[str, Counter[str]]) -> ProgramCoverage:
    """Return coverage by source line and name from counts by place."""
    lines: dict[str, dict[int, int]] = {}
    for source, count in _sources(program, counts):
        if (place := located(source)) is not None:
            file, line = place
            known = lines.setdefault(file, {})
            known[line] = max(known.get(line, 0), count)
    found = choices(program, counts, entries)
    for choice in found.values():
        for case in choice.cases if choice.file and choice.kind in ("select", "entries") else ():
            known = lines.setdefault(choice.file, {})
            known[case.line] = max(known.get(case.line, 0), case.count)
    kept, left_out = _bounded(entries)
    return ProgramCoverage(
        name=PurePath(program.source).name or "program",
        content_hash=program.content_hash,
        lines={file: dict(sorted(known.items())) for file, known in sorted(lines.items())},
        branches=dict(_branches(program, counts)),
        actions=_actions(program, counts),
        states={name: counts[StateEntered(name)][0] for name, _ in _states(program)},
        functions=dict(_functions(program)),
        tables={table.name: lookups(table, counts) for table in shown_tables(program)},
        entries=kept,
        entries_left_out=left_out,
        choices=found,
    )


def _shown_actions(program: Program) -> Iterator[Action]:
    # An action without a control's name stands for statements of an apply block.
    return (action for action in program.actions.values() if "." in action.name or action.name == "NoAction")


def _states(program: Program) -> Iterator[tuple[str, ParseState]]:
    for parser in program.parsers.values():
        yield from parser.states.items()


def _conditionals(program: Program) -> Iterator[Conditional]:
    for pipeline in program.pipelines.values():
        yield from (node for node in pipeline.nodes.values() if isinstance(node, Conditional))


def _sources(program: Program, counts: Counted) -> Iterator[tuple[str | None, int]]:
    for name, state in _states(program):
        yield state.source, counts[StateEntered(name)][0]
    for node in _conditionals(program):
        yield node.source, sum(counts[Branched(node.name)])
    for table in shown_tables(program):
        yield table.source, sum(lookups(table, counts))
    for place, outcomes in counts.items():
        if isinstance(place, PrimitiveRun):
            yield place.call.source, sum(outcomes)


def _branches(program: Program, counts: Counted) -> Iterator[tuple[str, Branch]]:
    found: list[tuple[str | None, tuple[int, ...]]] = [
        (node.source, counts[Branched(node.name)]) for node in _conditionals(program)
    ]
    found += [
        (place.call.source, outcomes)
        for place, outcomes in counts.items()
        if isinstance(place, PrimitiveRun) and place.call.name == "_jump_if_zero"
    ]
    branches: dict[str, Branch] = {}
    for source, (false, true) in found:
        if source is None or (at := located(source)) is None:
            continue
        text = source.partition(": ")[2]
        # A control applied in several places has a copy of its conditions in each.
        branch = branches.setdefault(source, Branch(file=at[0], line=at[1], text=text, false=0, true=0))
        branch.false, branch.true = branch.false + false, branch.true + true
    yield from branches.items()


def _actions(program: Program, counts: Counted) -> dict[str, int]:
    found: dict[str, int] = {}
    by_id = {place.action_id: outcomes[0] for place, outcomes in counts.items() if isinstance(place, ActionRun)}
    for action in _shown_actions(program):
        found[action.name] = found.get(action.name, 0) + by_id[action.id]
    return found


def _functions(program: Program) -> Iterator[tuple[str, Source]]:
    for action in _shown_actions(program):
        for call in action.primitives:
            if (at := located(primitive_place(program, call).call.source)) is not None:
                yield action.name, at
                break
    for name, state in _states(program):
        if (at := located(state.source)) is not None:
            yield name, at


def _bounded(entries: dict[str, Counter[str]]) -> tuple[dict[str, dict[str, int]], int]:
    left, left_out = MOST_ENTRIES, 0
    kept: dict[str, dict[str, int]] = {}
    for table, hits in entries.items():
        # Entries that were never hit come first, as they matter most.
        chosen = sorted(hits.items(), key=lambda item: (item[1] > 0, item[0]))[:left]
        kept[table] = dict(chosen)
        left -= len(chosen)
        left_out += len(hits) - len(chosen)
    return kept, left_out


def merged(coverages: Iterable[ProgramCoverage]) -> list[ProgramCoverage]:
    """Return one coverage for each program, in order of first occurrence."""
    by_hash: dict[str, ProgramCoverage] = {}
    for each in coverages:
        known = by_hash.get(each.content_hash)
        if known is None:
            by_hash[each.content_hash] = each.model_copy(deep=True)
        else:
            known.add(each)
    return list(by_hash.values())
