"""Finds the files of a trace: a file, or a folder with files of each rank."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from weft.jobs.traces.assembling import MAX_RANKS
from weft.jobs.traces.errors import TraceError

MOST_TRIED = 8
"""As many files of a folder are looked at to recognise a format."""


def files_of(path: Path) -> list[Path]:
    """Return the file, or a folder's files, in order of their names' numbers; hidden files and folders are left out.

    Raises TraceError for a folder without files or with too many, OSError for a missing path.
    """
    if not path.is_dir():
        return [path]
    found = [each for each in path.iterdir() if each.is_file() and not each.name.startswith(".")]
    if not 0 < len(found) <= MAX_RANKS:
        raise TraceError(f"{len(found)} files", place=path, valid=f"1 to {MAX_RANKS}")
    return sorted(found, key=lambda each: (len(each.name), each.name))


def any_looks_like(path: Path, looks_like: Callable[[Path], bool]) -> bool:
    """Return whether a file, or one of the first files of a folder, looks like a format."""
    if path.is_file():
        return looks_like(path)
    if not path.is_dir():
        return False
    return any(looks_like(each) for each in sorted(path.iterdir())[:MOST_TRIED] if each.is_file())


_LAST_NUMBER = re.compile(r"(?<![0-9])([0-9]{1,9})(?:\.[A-Za-z]+)*$")


def rank_of_name(path: Path, default: int | None = None) -> int:
    """Return the rank that a file's name ends in, before its suffixes.

    Raises TraceError for other names without a default.
    """
    found = _LAST_NUMBER.search(path.name)
    if found is None and default is not None:
        return default
    if found is None or int(found[1]) >= MAX_RANKS:
        raise TraceError("the rank is not known", place=path, valid="a name that ends in the rank, as in NAME_0.json")
    return int(found[1])
