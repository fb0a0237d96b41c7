"""Counts habits of prose that make docstrings hard to read; `python tests/plain_english.py` lists where they are.

The limits are what click, pydantic and rich have, with some room (../tests/test_house.py holds Weft to them).
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.paths import ROOT

FOLDERS = ("weft",)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


@dataclass(frozen=True)
class Docstring:
    """A docstring of a module, class, function or attribute."""

    path: Path
    line: int
    text: str


@dataclass(frozen=True)
class Habit:
    """A habit, and how often it may occur: per 10,000 words, or in all where it is about openings."""

    name: str
    pattern: re.Pattern[str]
    limit: float
    is_opening: bool = False


HABITS = (
    Habit("whose", re.compile(r"\bwhose\b", re.IGNORECASE), 3),
    Habit("that of, those of", re.compile(r"\b(?:that|those)\s+of\b", re.IGNORECASE), 2),
    Habit("beside", re.compile(r"\bbeside\b", re.IGNORECASE), 1),
    Habit("opens with What or Of", re.compile(r"\s*(?:What|Of)\b"), 20, is_opening=True),
)


def docstrings(paths: Sequence[Path]) -> Iterator[Docstring]:
    """Yield the docstrings of Python files, in order."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            body = getattr(node, "body", None)
            if not isinstance(body, list):
                continue
            may_have_own = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            for number, statement in enumerate(body):
                if not (
                    isinstance(statement, ast.Expr)
                    and isinstance(statement.value, ast.Constant)
                    and isinstance(statement.value.value, str)
                ):
                    continue
                follows_a_name = number > 0 and isinstance(body[number - 1], (ast.Assign, ast.AnnAssign))
                if follows_a_name or (may_have_own and number == 0):
                    yield Docstring(path, statement.lineno, statement.value.value)


def words(found: Sequence[Docstring]) -> int:
    """Return how many words docstrings have."""
    return sum(len(_WORD.findall(each.text)) for each in found)


def places(habit: Habit, found: Sequence[Docstring]) -> list[Docstring]:
    """Return the docstrings with a habit, once for each time."""
    if habit.is_opening:
        return [each for each in found if habit.pattern.match(each.text)]
    return [each for each in found for _ in habit.pattern.finditer(each.text)]


def amount(habit: Habit, found: Sequence[Docstring]) -> float:
    """Return what `limit` bounds."""
    number = len(places(habit, found))
    return number if habit.is_opening else 10_000 * number / max(1, words(found))


def python_files(folders: Sequence[str] = FOLDERS) -> list[Path]:
    """Return the Python files below folders of the repository, sorted."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def main(arguments: Sequence[str]) -> int:
    """Print each habit's amount, and with file names or folders as arguments where it is. Return 1 above a limit."""
    paths = python_files()
    if arguments:
        wanted = [Path(each).resolve() for each in arguments]
        paths = [path for path in paths if any(path == each or each in path.parents for each in wanted)]
    found = list(docstrings(paths))
    print(f"{len(found)} docstrings, {words(found)} words")
    too_many = False
    for habit in HABITS:
        measured = amount(habit, found)
        unit = "" if habit.is_opening else " per 10,000 words"
        print(f"{habit.name}: {measured:.4g}{unit} (at most {habit.limit:g}); {len(places(habit, found))} in all")
        too_many |= measured > habit.limit
        if arguments:
            for each in places(habit, found):
                print(f"  {each.path.relative_to(ROOT)}:{each.line}: {' '.join(each.text.split())[:140]}")
    return int(too_many)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
