"""Logs of NCCL calls as CSV, one line per call, with the data that `NCCL_DEBUG_SUBSYS=COLL` prints."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from weft.cache import collector_paused
from weft.errors import InvalidValueError, translated
from weft.jobs.traces.assembling import MAX_RANKS, JobAssembler, RankAssembler, whole_call
from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.tables.lines import Row, csv_rows, first_lines, header_of, whole
from weft.quantities.units import parse_time_ps, shown
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.jobs import NO_STREAM, Group, JobError, OperationsError

NEEDED = ("rank", "operation", "count", "datatype", "communicator")
OPTIONAL = ("root", "stream", "group", "start")
MAX_COUNT = 1 << 46
_DATATYPES = {
    "int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "float16": 2, "float32": 4,
    "float64": 8, "bfloat16": 2, "float8e4m3": 1, "float8e5m2": 1,
}  # fmt: skip
"""Bytes of an element; NCCL prints the index in this list (ncclDataType_t)."""
_COLLECTIVES = {
    "allreduce": "allreduce",
    "allgather": "allgather",
    "reducescatter": "reducescatter",
    "broadcast": "broadcast",
    "bcast": "broadcast",
    "reduce": "reduce",
    "alltoall": "alltoall",
}
_PER_RANK = ("allgather", "reducescatter", "alltoall")
"""Collectives for which NCCL counts the elements for or from each rank."""
_SEND, _RECEIVE = "send", "recv"


def _element_bytes(text: str) -> int:
    name = text.lower().removeprefix("nccl")
    if name.isdigit() and len(name) < 3 and int(name) < len(_DATATYPES):
        return list(_DATATYPES.values())[int(name)]
    if name in _DATATYPES:
        return _DATATYPES[name]
    raise InvalidValueError(f"{shown(text)}", valid=f"{', '.join(_DATATYPES)}, or NCCL's number")


def _datatype(text: str) -> str:
    """Return the name of a type that `_element_bytes` has accepted."""
    name = text.lower().removeprefix("nccl")
    return list(_DATATYPES)[int(name)] if name.isdigit() else name


def _operation(text: str) -> str:
    name = text.lower().removeprefix("nccl")
    if name in _COLLECTIVES or name in (_SEND, _RECEIVE):
        return name
    raise InvalidValueError(f"{shown(text)}", valid=(*_COLLECTIVES, _SEND, _RECEIVE))


@dataclass
class _Rank:
    """A rank's operations, and for each stream the last group with its operations and what these follow."""

    assembler: RankAssembler = field(default_factory=RankAssembler)
    last: dict[str, tuple[str, list[int], list[int]]] = field(default_factory=dict)
    lines: array[int] = field(default_factory=lambda: array("q"))

    def awaited(self, stream: str, group: str) -> list[int]:
        """Return the operations that the next one of a stream follows; operations of a group start together."""
        last_group, own, before = self.last.get(stream, ("", [], []))
        return before if group and group == last_group else own

    def note(self, stream: str, group: str, operation: int, awaited: list[int]) -> None:
        """Record an operation as the last of a stream, together with others of its group."""
        last_group, own, _ = self.last.get(stream, ("", [], []))
        is_with_them = group and group == last_group
        self.last[stream] = (group, [*own, operation] if is_with_them else [operation], awaited)


class NcclCsv(TraceFormat):
    """A CSV file of calls, in the order in which each rank makes them.

    Columns: rank, operation (AllReduce, …, Send, Recv), NCCL's count and datatype, communicator (a name shared by all
    its ranks), and optionally root (the peer for Send and Recv; numbered within the communicator), stream, group
    (ncclGroupStart: calls of a stream with the same name start together) and start (the earliest time).
    """

    name = "nccl_csv"
    title = "a CSV log of NCCL's calls"

    def recognises(self, path: Path) -> bool:
        """Return whether the first line has the columns."""
        return set(NEEDED) <= set(header_of(first_lines(path)))

    @collector_paused()
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the job of all calls. Calls of a rank's stream follow each other."""
        job = JobAssembler(path.stem)
        with translated(JobError, TraceError, place=path):
            ranks = _read(path, job)
            for number, each in enumerate(ranks):
                job.add_rank(number, each.assembler, str(path))
            made = job.job()
        return Trace(made, locate=lambda rank, operation: f"{path}, line {ranks[rank].lines[operation]}")


def _read(path: Path, job: JobAssembler) -> list[_Rank]:
    rows, rank = list(csv_rows(path, NEEDED, OPTIONAL)), whole(0, MAX_RANKS - 1)
    calls = _Calls()
    groups = _add_groups(job, ((row.read("communicator", str), row.read("rank", rank)) for row in rows))
    ranks = _ranks(path, groups)
    for row in rows:
        number = row.read("rank", rank)
        own = ranks[number]
        try:
            _add_call(job, calls, own, number, row)
        except (OperationsError, ValueError) as error:
            raise TraceError(error, place=row.place) from None
        own.lines.extend([row.line] * (len(own.assembler.operations) - len(own.lines)))
    return ranks


def _add_groups(job: JobAssembler, uses: Iterable[tuple[str, int]]) -> list[tuple[int, ...]]:
    """Add a group for each communicator with the ranks that use it; return all groups' ranks."""
    members: dict[str, set[int]] = {}
    for name, rank in uses:
        members.setdefault(name, set()).add(rank)
    for name, ranks in members.items():
        job.add_group(Group(name, tuple(sorted(ranks))))
    return [group.ranks for group in job.groups]


def _ranks(path: Path, groups: list[tuple[int, ...]]) -> list[_Rank]:
    found = {rank for ranks in groups for rank in ranks}
    if not found:
        raise TraceError("no calls", place=path)
    missing = [str(rank) for rank in range(max(found)) if rank not in found]
    if missing:
        more = f" and {len(missing) - 20} more" if len(missing) > 20 else ""
        raise TraceError(f"calls of ranks {', '.join(missing[:20])}{more} are missing", place=path)
    return [_Rank() for _ in range(len(found))]


class _Calls:
    """Collectives of each communicator as its first rank called them; all other ranks must match."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, int]] = Counter()
        self._first: dict[tuple[int, int], tuple[str, str]] = {}

    def check(self, group: int, rank: int, row: Row) -> None:
        """Check a rank's next collective. Raises TraceError, with both places, if it differs."""
        count = row.read("count", whole(0, MAX_COUNT))
        what = f"{row.read('operation', _operation)} of {count} {_datatype(row.cells['datatype'])}"
        if root := row.cells.get("root"):
            what += f", root {root}"
        number = self._counts[group, rank]
        self._counts[group, rank] += 1
        first, place = self._first.setdefault((group, number), (what, row.place))
        if what != first:
            raise TraceError(f"{what}, where {place} has {first}", place=row.place, valid="the same of all ranks")


def _add_call(job: JobAssembler, calls: _Calls, own: _Rank, rank: int, row: Row) -> None:
    number = job.group_number(row.read("communicator", str))
    assert number is not None, "a group for each communicator"
    members = job.groups[number].ranks
    operation = row.read("operation", _operation)
    size_bytes = row.read("count", whole(0, MAX_COUNT)) * row.read("datatype", _element_bytes)
    stream, group = row.read("stream", str, ""), row.read("group", str, "")
    awaited = own.awaited(stream, group)
    builder = own.assembler.operations
    start_ps = row.read("start", parse_time_ps, 0)
    after = [*awaited, builder.timer(start_ps)] if start_ps else awaited
    name = row.cells["operation"]
    if operation in (_SEND, _RECEIVE):
        peer = members[row.read("root", whole(0, len(members) - 1))]
        if peer == rank:
            raise TraceError(f"rank {rank} exchanges a message with itself", place=row.place)
        add = builder.send if operation == _SEND else builder.receive
        added = add(own.assembler.peer_slot(peer), size_bytes, number, after=after, name=name)
    else:
        calls.check(number, rank, row)
        collective = _COLLECTIVES[operation]
        root = row.read("root", whole(0, len(members) - 1), 0) if COLLECTIVE_KINDS[collective].has_root else 0
        size_bytes *= len(members) if collective in _PER_RANK else 1
        call = whole_call(collective, size_bytes, len(members), root)
        if call is None:
            added = builder.compute(0, stream=NO_STREAM, after=after, name=name)
        else:
            slot = own.assembler.group_slot(number)
            added = builder.collective(slot, job.call_number(call), after=after, name=name)
    own.note(stream, group, added, awaited)
