"""NCCL's own logs: `NCCL_DEBUG=INFO` with `NCCL_DEBUG_SUBSYS=INIT,COLL`; RCCL's have the same lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from weft.cache import collector_paused
from weft.errors import translated
from weft.jobs.traces.assembling import MAX_RANKS, MAX_TRACE_OPERATIONS, check_count
from weft.jobs.traces.calls.files import any_looks_like, files_of
from weft.jobs.traces.calls.joining import trace_of_calls
from weft.jobs.traces.calls.recorded import (
    MAX_COUNT,
    RECEIVE,
    SEND,
    Place,
    RecordedCall,
    datatype_of,
    operation_of,
    rooted_exchange,
)
from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.memory import STATEMENTS_BETWEEN_CHECKS, check_memory
from weft.jobs.traces.tables.lines import first_lines, lines_of, whole
from weft.quantities.units import shown
from weft.traffic.jobs import JobError

_MARK = " NCCL INFO "
MAX_LINE_CHARACTERS = 8192
_HEAD = re.compile(r"(\S{1,256}):(\d{1,10}):\d{1,10} \[-?\d{1,5}\] NCCL INFO ")
_INIT = re.compile(r"\bcomm (0x[0-9a-f]{1,16}) rank (\d{1,9}) nranks (\d{1,9}) cudaDev (\d{1,5})\b(.*)- Init COMPLETE")
_IDENTITY = re.compile(r"\bcommId (0x[0-9a-f]{1,16})\b")
_CALL = re.compile(
    r"(\w{1,40}): opCount ([0-9a-f]{1,16}) sendbuff .{1,200}? count (\d{1,20}) datatype (\d{1,3}) op \S{1,20} "
    r"root (\d{1,9}) comm (0x[0-9a-f]{1,16}) \[nranks=(\d{1,9})\] stream (\S{1,40})"
)
_TIME = re.compile(r"\[(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\]")
_ROOTED = {"gather": True, "scatter": False}
"""Whether a rooted collective's messages go to the root."""
_Process = tuple[str, int, int]
"""Host, process, device: NCCL's ranks."""


@dataclass
class _Communicator:
    """A communicator: its size, and the process of each of its ranks as far as logs name them."""

    name: str
    size: int
    place: Place
    members: dict[int, _Process] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Line:
    """A call as the log has it; `rank` is of the communicator."""

    call: RecordedCall
    communicator: str
    rank: int
    at_ps: int | None


class NcclLog(TraceFormat):
    """Log files of NCCL: one for each process, or one for all. Other lines are skipped."""

    name = "nccl_log"
    title = "NCCL's log"

    def recognises(self, path: Path) -> bool:
        """Return whether a file begins with lines of NCCL."""
        return any_looks_like(path, lambda each: any(_MARK in line for line in first_lines(each)))

    @collector_paused()
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the job of all calls. Calls of a stream follow each other, calls of one opCount start together."""
        reader = _Reader()
        for file in files_of(path):
            reader.read(file)
        return reader.trace(path)


class _Reader:
    """Collects the lines of all files."""

    def __init__(self) -> None:
        self._communicators: dict[str, _Communicator] = {}
        self._of_pointer: dict[tuple[str, int, str], tuple[_Process, str, int]] = {}
        self._unnamed: Counter[tuple[_Process, int]] = Counter()
        self._calls: dict[_Process, list[_Line]] = {}
        self._count = 0
        self._message_count = 0

    def read(self, file: Path) -> None:
        """Read a file's lines. Raises TraceError, with the line."""
        for number, line in enumerate(lines_of(file), 1):
            if _MARK not in line:
                continue
            place = Place(f"{file}, line", number)
            if len(line) > MAX_LINE_CHARACTERS:
                raise TraceError(f"{len(line)} characters", place=place, valid=f"up to {MAX_LINE_CHARACTERS}")
            head = _HEAD.search(line)
            if head is None:
                continue
            rest = line[head.end() :]
            if found := _INIT.search(rest):
                self._add_rank((head[1], int(head[2])), found, place)
            elif found := _CALL.match(rest):
                self._add_call((head[1], int(head[2])), found, line, place)
            elif ": opCount " in rest:
                raise TraceError(
                    f"unknown form of a call: {shown(rest.strip())}",
                    place=place,
                    valid="NAME: opCount … count … datatype … op … root … comm … [nranks=…] stream …",
                )

    def _add_rank(self, process: tuple[str, int], found: re.Match[str], place: Place) -> None:
        pointer, rank, size, device = found[1], int(found[2]), int(found[3]), int(found[4])
        owner: _Process = (*process, device)
        if not rank < size <= MAX_RANKS:
            raise TraceError(f"rank {rank} of {size}", place=place, valid=f"a rank of up to {MAX_RANKS}")
        identity = _IDENTITY.search(found[5])
        if identity is not None:
            name = f"{identity[1]} of {size} ranks"
        else:
            # Logs before NCCL 2.17 do not say which communicators of different processes are the same.
            name = f"communicator {self._unnamed[owner, size]} of {size} ranks"
            self._unnamed[owner, size] += 1
        known = self._communicators.setdefault(name, _Communicator(name, size, place))
        if known.members.setdefault(rank, owner) != owner:
            raise TraceError(
                f"rank {rank} of communicator {name} is process {owner[1]} of {owner[0]}, and was process "
                f"{known.members[rank][1]} of {known.members[rank][0]}",
                place=place,
                valid="a log of one job",
            )
        self._of_pointer[*process, pointer] = (owner, name, rank)

    def _add_call(self, process: tuple[str, int], found: re.Match[str], line: str, place: Place) -> None:
        operation, sequence, count, datatype, root, pointer, size, stream = found.groups()
        known = self._of_pointer.get((*process, pointer))
        if known is None:
            raise TraceError(
                f"communicator {pointer} of process {process[1]} of {process[0]} is not known",
                place=place,
                valid="after its line “Init COMPLETE”, which NCCL_DEBUG_SUBSYS=INIT,COLL logs",
            )
        owner, name, rank = known
        ranks = self._communicators[name].size
        if int(size) != ranks:
            raise TraceError(f"nranks={int(size)}", place=place, valid=f"{ranks}, as its communicator")
        with translated(ValueError, TraceError, place=str(place)):
            rooted = _ROOTED.get(operation.lower())
            call = RecordedCall(
                "broadcast" if rooted is not None else operation_of(operation),
                whole(0, MAX_COUNT)(count),
                datatype_of(datatype),
                name,
                place,
                whole(0, ranks - 1)(root),
                stream,
                f"{name} {sequence}",
            )
        if rooted is not None:
            self._message_count += ranks
            check_count(self._message_count, 0, str(place))
            call = rooted_exchange(call, rank, ranks, to_root=rooted)
        self._count += 1
        if self._count > MAX_TRACE_OPERATIONS:
            raise TraceError(f"more than {MAX_TRACE_OPERATIONS} calls", place=place)
        if self._count % STATEMENTS_BETWEEN_CHECKS == 0:
            check_memory(self._count, str(place))
        if call.operation in (SEND, RECEIVE) and call.root == rank:
            return  # A copy within the device's memory, as in PyTorch's all-to-all.
        self._calls.setdefault(owner, []).append(_Line(call, name, rank, _time_ps(line)))

    def trace(self, path: Path) -> Trace:
        """Return the job. Raises TraceError if the ranks of a communicator cannot be told."""
        if not self._calls:
            raise TraceError("no calls", place=path, valid="lines that NCCL_DEBUG_SUBSYS=INIT,COLL logs")
        numbers, notes = self._numbers()
        used = {line.communicator for lines in self._calls.values() for line in lines}
        communicators = {name: self._members(self._communicators[name], numbers) for name in sorted(used)}
        start_of, note = self._starts()
        calls = {
            numbers[process]: [replace(line.call, start_ps=start_of(line)) for line in lines]
            for process, lines in sorted(self._calls.items(), key=lambda each: numbers[each[0]])
        }
        with translated(JobError, TraceError, place=path):
            return trace_of_calls(path, calls, communicators, [*notes, note])

    def _numbers(self) -> tuple[dict[_Process, int], list[str]]:
        """Return the rank of each process: in a communicator of all, else by host and device."""
        everybody = {process for each in self._communicators.values() for process in each.members.values()}
        widest = max(self._communicators.values(), key=lambda each: (len(each.members), each.size))
        if len(widest.members) == len(everybody):
            return {process: rank for rank, process in widest.members.items()}, []
        ordered = sorted(everybody, key=lambda each: (len(each[0]), each[0], each[2], each[1]))
        numbers = {process: number for number, process in enumerate(ordered)}
        return numbers, ["no communicator has all ranks, so ranks are numbered by host and device"]

    def _members(self, communicator: _Communicator, numbers: dict[_Process, int]) -> tuple[int, ...]:
        members = communicator.members
        if len(members) == communicator.size:
            return tuple(numbers[members[rank]] for rank in range(communicator.size))
        is_of_all = communicator.size > max(numbers.values())
        if is_of_all and all(numbers[process] == rank for rank, process in members.items()):
            return tuple(range(communicator.size))
        raise TraceError(
            f"the ranks of communicator {communicator.name} are not known: lines of {len(members)} of them",
            place=communicator.place,
            valid="logs of all its ranks",
        )

    def _starts(self) -> tuple[Callable[[_Line], int], str]:
        """Return the earliest start of a call, counted from the first one, and a sentence on it."""
        times = [line.at_ps for lines in self._calls.values() for line in lines]
        known = [at_ps for at_ps in times if at_ps is not None]
        if len(known) < len(times):
            return (lambda _: 0), (
                "the log has no time of each call, so calls follow each other without computation in between "
                "(NCCL_DEBUG_TIMESTAMP_LEVELS=INFO adds times)"
            )
        first = min(known)
        return (lambda line: (line.at_ps or first) - first), (
            "calls start at the logged times of the hosts' clocks, or later"
        )


def _time_ps(line: str) -> int | None:
    """Return the time at the beginning of a line, None without a valid one."""
    found = _TIME.search(line)
    if found is None:
        return None
    try:
        whole_s = int(datetime.fromisoformat(f"{found[1]}T{found[2]}").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None
    return whole_s * 10**12 + int((found[3] or "0").ljust(12, "0"))
