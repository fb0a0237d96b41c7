"""Coverage in lcov's format (geninfo(1), "FILES"), which genhtml, editors and build services read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.switch.coverage.model import Branch, ProgramCoverage


def lcov_text(coverages: Iterable[ProgramCoverage]) -> str:
    """A tracefile: a record for each source file; actions and parser states are its functions."""
    files: dict[str, _File] = {}
    for coverage in coverages:
        for file, lines in coverage.lines.items():
            found = files.setdefault(file, _File())
            for line, count in lines.items():
                found.lines[line] = found.lines.get(line, 0) + count
        for branch in coverage.branches.values():
            files.setdefault(branch.file, _File()).add_branch(branch)
        for name, (file, line) in coverage.functions.items():
            count = coverage.actions.get(name, coverage.states.get(name, 0))
            functions = files.setdefault(file, _File()).functions
            functions[name] = line, functions.get(name, (line, 0))[1] + count
    return "".join(f"{line}\n" for name in sorted(files) for line in files[name].records(name))


class _File:
    def __init__(self) -> None:
        self.lines: dict[int, int] = {}
        self.functions: dict[str, tuple[int, int]] = {}
        self._branches: dict[tuple[int, str], tuple[int, int]] = {}

    def add_branch(self, branch: Branch) -> None:
        key = branch.line, branch.text
        true, false = self._branches.get(key, (0, 0))
        self._branches[key] = true + branch.true, false + branch.false

    def records(self, name: str) -> Iterator[str]:
        yield "TN:"
        yield f"SF:{name}"
        for function, (line, _) in self.functions.items():
            yield f"FN:{line},{function}"
        for function, (_, count) in self.functions.items():
            yield f"FNDA:{count},{function}"
        yield f"FNF:{len(self.functions)}"
        yield f"FNH:{sum(count > 0 for _, count in self.functions.values())}"
        for block, ((line, _), outcomes) in enumerate(sorted(self._branches.items())):
            for number, taken in enumerate(outcomes):
                # "-": the condition was never evaluated
                yield f"BRDA:{line},{block},{number},{taken if any(outcomes) else '-'}"
        yield f"BRF:{2 * len(self._branches)}"
        yield f"BRH:{sum(taken > 0 for outcomes in self._branches.values() for taken in outcomes)}"
        for line, count in sorted(self.lines.items()):
            yield f"DA:{line},{count}"
        yield f"LF:{len(self.lines)}"
        yield f"LH:{sum(count > 0 for count in self.lines.values())}"
        yield "end_of_record"
