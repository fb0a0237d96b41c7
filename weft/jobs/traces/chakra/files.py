"""Finds the files of a Chakra trace, from its prefix, its folder, or one of the files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from weft.jobs.traces.assembling import MAX_RANKS
from weft.jobs.traces.errors import TraceError

SUFFIX = ".et"
MOST_NAMED = 20
_FILE = re.compile(r"(.+)\.(0|[1-9][0-9]{0,9})\.et", re.DOTALL)


@dataclass(frozen=True)
class ChakraFiles:
    """The files of a trace: one for each rank, in order, and one for the process groups, if any."""

    name: str
    ranks: tuple[Path, ...]
    groups: Path | None


def rank_file(prefix: Path, rank: int) -> Path:
    """Return the name of a rank's file."""
    return prefix.with_name(f"{prefix.name}.{rank}{SUFFIX}")


def groups_file(prefix: Path) -> Path:
    """Return the name of the file of process groups."""
    return prefix.with_name(f"{prefix.name}.json")


def found_files(path: Path, groups: Path | None) -> ChakraFiles:
    """Return the files of a trace; `path` is its prefix, its folder, or one file.

    Raises TraceError if no file or rank is found, if ranks are missing, or if a folder has several traces.
    """
    folder, name = (path, None) if path.is_dir() else (path.parent, path.name)
    if name is not None and (match := _FILE.fullmatch(name)):
        name = match[1]
    found: dict[str, set[int]] = {}
    if folder.is_dir():
        for each in folder.iterdir():
            if (match := _FILE.fullmatch(each.name)) and name in (None, match[1]):
                found.setdefault(match[1], set()).add(int(match[2]))
    if not found:
        raise TraceError(f"no files {name or 'NAME'}.RANK{SUFFIX} in {folder}", place=path)
    if len(found) > 1:
        raise TraceError("several traces", place=path, valid=f"one of {', '.join(sorted(found)[:MOST_NAMED])}")
    ((name, ranks),) = found.items()
    prefix = folder / name
    _check_ranks(prefix, ranks)
    beside = groups_file(prefix)
    if groups is None and beside.is_file():
        groups = beside
    return ChakraFiles(name, tuple(rank_file(prefix, rank) for rank in range(len(ranks))), groups)


def _check_ranks(prefix: Path, ranks: set[int]) -> None:
    if len(ranks) > MAX_RANKS:
        raise TraceError(f"{prefix}: {len(ranks)} ranks", valid=f"up to {MAX_RANKS}")
    last = max(ranks)
    if last >= len(ranks):
        missing = [str(rank) for rank in islice((each for each in count() if each not in ranks), MOST_NAMED)]
        shown = ", ".join(missing[: last + 1 - len(ranks)])
        more = last + 1 - len(ranks) - MOST_NAMED
        if more > 0:
            shown += f" and {more} more"
        raise TraceError(f"{prefix}: files of ranks {shown} are missing; there is one of rank {last}")
