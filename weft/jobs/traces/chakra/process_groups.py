"""The process groups of a Chakra trace: a JSON object of names and ranks, as ASTRA-sim reads it."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from weft.cache import read_bytes
from weft.errors import translated
from weft.jobs.traces.assembling import JobAssembler
from weft.jobs.traces.errors import TraceError
from weft.quantities.json_problems import described
from weft.traffic.jobs import Group, JobError

MAX_FILE_BYTES = 1 << 28
EVERYBODY = ("", "0")
"""Default names of the group of all ranks."""


class _Recorded(BaseModel):
    """The parts of a group recorded by PyTorch that Weft reads."""

    pg_name: str
    ranks: list[int]


_RECORDED = TypeAdapter(list[_Recorded])


class ProcessGroups:
    """The groups of a trace, by the names that nodes use."""

    def __init__(self, job: JobAssembler, rank_count: int, path: Path | None) -> None:
        self.rank_count = rank_count
        self._job = job
        self._numbers: dict[str, int] = {}
        self._members: list[frozenset[int]] = []
        for name, ranks in (_read(path) if path else {}).items():
            self._add(name, ranks, str(path))

    def _add(self, name: str, ranks: tuple[int, ...], place: str) -> int:
        for rank in ranks:
            if not 0 <= rank < self.rank_count:
                raise TraceError(
                    f"process group {name!r} has rank {rank}",
                    place=place,
                    valid=f"0 to {self.rank_count - 1}",
                )
        with translated(JobError, TraceError, place=place):
            self._numbers[name] = self._job.add_group(Group(name, ranks))
        self._members.append(frozenset(ranks))
        return self._numbers[name]

    def add_recorded(self, text: str, place: str) -> None:
        """Add the groups that PyTorch recorded in a METADATA node; a known name must have the same ranks.

        The text is a Python list with one string of JSON. A group without ranks has all. Raises TraceError.
        """
        try:
            groups = _RECORDED.validate_json(text[2:-2])
        except ValidationError as error:
            raise TraceError(f"no list of process groups: {described(error.errors()[0])}", place=place) from None
        for each in groups:
            ranks = tuple(each.ranks) or tuple(range(self.rank_count))
            number = self._numbers.get(each.pg_name)
            if number is None:
                self._add(each.pg_name, ranks, place)
            elif self._job.groups[number].ranks != ranks:
                raise TraceError(f"process group {each.pg_name!r} has other ranks than elsewhere", place=place)

    def number(self, name: str, rank: int, place: str) -> int:
        """Return the number of a group. Raises TraceError, with `place`, if it does not exist or lacks the rank."""
        number = self._numbers.get(name)
        if number is None and name in EVERYBODY:
            number = self._add(name, tuple(range(self.rank_count)), place)
            for other in EVERYBODY:
                self._numbers.setdefault(other, number)
        if number is None:
            valid = ", ".join(map(repr, list(self._numbers)[:20])) or "none, as there is no file of process groups"
            raise TraceError(f"no process group {name!r}", place=place, valid=valid)
        if rank not in self._members[number]:
            raise TraceError(f"rank {rank} is not in process group {name!r}", place=place)
        return number

    def rename(self, names: list[str], source: str) -> None:
        """Rename the groups, in order; nodes keep using the file's names. Raises TraceError for bad names."""
        if len(names) != len(self._job.groups):
            raise TraceError(f"{len(names)} names for {len(self._job.groups)} process groups", place=source)
        with translated(JobError, TraceError, place=source):
            self._job.groups = [Group(name, group.ranks) for name, group in zip(names, self._job.groups, strict=True)]


def _read(path: Path) -> dict[str, tuple[int, ...]]:
    try:
        groups = json.loads(read_bytes(path, MAX_FILE_BYTES))
    except (ValueError, RecursionError) as error:
        raise TraceError(f"is not valid JSON: {error}", place=path) from None
    if not isinstance(groups, dict):
        raise TraceError("is no JSON object of names and lists of ranks", place=path)
    for name, ranks in groups.items():
        if not isinstance(ranks, list) or any(type(rank) is not int for rank in ranks):
            raise TraceError(f"process group {name!r} is no list of ranks", place=path)
    return {name: tuple(ranks) for name, ranks in groups.items()}
