"""Coverage in lcov's format (geninfo(1), "FILES"), which genhtml, editors and build services read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TypeAlias

from weft.switch.coverage.choices import Choice
from weft.switch.coverage.model import Branch, ProgramCoverage

_Outcome: TypeAlias = tuple[int, str]


def lcov_text(coverages: Iterable[ProgramCoverage]) -> str:
    """Return a tracefile with a record for each source file; actions and parser states are its functions."""
    files: dict[str, _File] = {}
    for coverage in coverages:
        for file, lines in coverage.lines.items():
            found = files.setdefault(file, _File())
            for line, count in lines.items():
                found.lines[line] = found.lines.get(line, 0) + count
        for branch in coverage.branches.values():
            files.setdefault(branch.file, _File()).add_branch(branch)
        for name, choice in coverage.choices.items():
            if choice.file:
                files.setdefault(choice.file, _File()).add_choice(name, choice)
        for name, (file, line) in coverage.functions.items():
            count = coverage.actions.get(name, coverage.states.get(name, 0))
            functions = files.setdefault(file, _File()).functions
            functions[name] = line, functions.get(name, (line, 0))[1] + count
    return "".join(f"{line}\n" for name in sorted(files) for line in files[name].records(name))


class _File:
    def __init__(self) -> None:
        self.lines: dict[int, int] = {}
        self.functions: dict[str, tuple[int, int]] = {}
        # Counts of the outcomes of conditions and choices, by place, then by line and text of the outcome. Programs
        # that share a file need not have the same cases in it.
        self._branches: dict[tuple[int, str], Counter[_Outcome]] = {}

    def add_branch(self, branch: Branch) -> None:
        counts = {(branch.line, "true"): branch.true, (branch.line, "false"): branch.false}
        self._add((branch.line, branch.text), counts)

    def add_choice(self, name: str, choice: Choice) -> None:
        self._add((choice.cases[0].line, name), {(case.line, case.text): case.count for case in choice.cases})

    def _add(self, key: tuple[int, str], counts: dict[_Outcome, int]) -> None:
        self._branches.setdefault(key, Counter()).update(counts)

    def records(self, name: str) -> Iterator[str]:
        yield "TN:"
        yield f"SF:{name}"
        for function, (line, _) in self.functions.items():
            yield f"FN:{line},{function}"
        for function, (_, count) in self.functions.items():
            yield f"FNDA:{count},{function}"
        yield f"FNF:{len(self.functions)}"
        yield f"FNH:{sum(count > 0 for _, count in self.functions.values())}"
        for block, (_, outcomes) in enumerate(sorted(self._branches.items(), key=itemgetter(0))):
            is_known = any(outcomes.values())
            for number, ((line, _), taken) in enumerate(outcomes.items()):
                # "-": the condition was never evaluated
                yield f"BRDA:{line},{block},{number},{taken if is_known else '-'}"
        counts = [taken for outcomes in self._branches.values() for taken in outcomes.values()]
        yield f"BRF:{len(counts)}"
        yield f"BRH:{sum(taken > 0 for taken in counts)}"
        for line, count in sorted(self.lines.items()):
            yield f"DA:{line},{count}"
        yield f"LF:{len(self.lines)}"
        yield f"LH:{sum(count > 0 for count in self.lines.values())}"
        yield "end_of_record"
