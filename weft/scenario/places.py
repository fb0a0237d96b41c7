"""Where the keys of a scenario stand, for errors: lines of a file, options of a command."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weft.errors import BadInputError, Refusal
from weft.scenario.dotted import key_of, split_path
from weft.scenario.presets import PRESET_KEY

Path = Sequence[str | int]


class KeyProblem(BadInputError):
    """A key of a scenario that cannot be used: what is wrong, and with which key."""

    def __init__(self, key: str, problem: str | Exception, *, valid: str | Iterable[object] = "") -> None:
        super().__init__(problem, place=key, valid=valid)
        self.key = key


@dataclass(frozen=True)
class Places:
    """The places of a scenario's keys.

    `name` is the file, or whatever holds them all; `tree` what was read, with its lines; `options` the keys that
    options of a command have set, and these options; `below` keys that the file has by naming what has them, such as a
    preset, and `below_name` its name.
    """

    name: str
    tree: Any = None
    options: Mapping[str, str] = field(default_factory=dict)
    below: Mapping[str, Any] = field(default_factory=dict)
    below_name: str = ""

    def above(self, below: Mapping[str, Any], name: str) -> Places:
        """Return the places of the same keys, on top of those that a preset has."""
        return replace(self, below=below, below_name=name)

    def of(self, path: Path) -> str:
        """Return the place of a key, or of what holds it: `file.yaml:3`, `--set fabric.planes`."""
        for length in range(len(path), 0, -1):
            option = self.options.get(key_of(path[:length]))
            if option is not None:
                return option
        line, is_exact = _line_of(self.tree, path)
        if not is_exact:
            below = [option for key, option in self.options.items() if key.startswith(f"{key_of(path)}.")]
            if below:
                return below[0]
            if _depth(self.below, path) > _depth(self.tree, path):
                return f"{self.of([PRESET_KEY])} ({self.below_name})"
        return self.name if line is None else f"{self.name}:{line}"

    @contextlib.contextmanager
    def locating(self) -> Iterator[None]:
        """Raise problems with a key as BadInputError, with the key's place in front."""
        try:
            yield
        except KeyProblem as problem:
            raise self.located(problem) from None

    def located(self, problem: KeyProblem) -> BadInputError:
        """Return a problem with its place in front."""
        return self.located_at(split_path(problem.key), problem)

    def located_at(self, path: Path, problem: Refusal) -> BadInputError:
        """Return a problem of a key with the key's place in front; an option that set the key stands for its name."""
        place, key = self.of(path), key_of(path)
        if self.options.get(key) == place:
            within = f"{problem.place}: ".removeprefix(f"{key}: ").removesuffix(": ")
            problem = problem.moved(within)
        return BadInputError(problem, place=place)


def _line_of(tree: Any, path: Path) -> tuple[int | None, bool]:
    """Return the line of a key, or else of what holds it, and whether it is its own."""
    line = None
    for part in path:
        marks = getattr(tree, "lc", None)
        try:
            if marks is not None:
                line = (marks.item(part) if isinstance(tree, list) else marks.key(part))[0] + 1
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            return line, False
    return line, bool(path)


def _depth(tree: Any, path: Path) -> int:
    """Return how many parts of a path lead through a tree."""
    for depth, part in enumerate(path):
        try:
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            return depth
    return len(path)
