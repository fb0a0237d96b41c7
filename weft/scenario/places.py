"""Where the keys of a scenario stand, for errors: lines of a file, options of a command."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.errors import BadInputError, Refusal
from weft.scenario.dotted import key_of, split_path

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
    options of a command have set, and these options.
    """

    name: str
    tree: Any = None
    options: Mapping[str, str] = field(default_factory=dict)

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
