"""Traces of PARAM's commsTraceReplay (its basic format): a JSON list of each rank's communications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from weft.cache import collector_paused
from weft.errors import translated
from weft.jobs.traces.assembling import MAX_RANKS
from weft.jobs.traces.calls.communicators import Communicators, strided
from weft.jobs.traces.calls.files import any_looks_like, files_of, rank_of_name
from weft.jobs.traces.calls.joining import trace_of_calls
from weft.jobs.traces.calls.json_files import Fields, head_of, read_json
from weft.jobs.traces.calls.recorded import MAX_COUNT, RECEIVE, SEND, Place, RecordedCall
from weft.jobs.traces.calls.torch_terms import TorchRecord, call_of_record, record_of
from weft.jobs.traces.calls.waits import WaitOrder
from weft.jobs.traces.definition import ReadOptions, Trace, TraceFormat
from weft.jobs.traces.errors import TraceError
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_NS
from weft.traffic.jobs import JobError

_MOST_NS = 1 << 62
_ROOTED = ("broadcast", "reduce", "gather", "scatter")


class ParamComms(TraceFormat):
    """Files RANK.json."""

    name = "param_comms"
    title = "PARAM's trace of communications"

    def recognises(self, path: Path) -> bool:
        """Return whether a file begins as a list of communications."""
        return any_looks_like(path, _looks_like_trace)

    @collector_paused()
    def read(self, path: Path, options: ReadOptions) -> Trace:
        """Return the job of all communications. Those of a process group follow each other, and waits."""
        communicators, files = Communicators(), files_of(path)
        ranks = [rank_of_name(file) for file in files]
        if len(set(ranks)) < len(ranks):
            raise TraceError("two files of a rank", place=path, valid="names that end in the rank")
        readers = {rank: _Reader(file, rank, communicators) for rank, file in sorted(zip(ranks, files, strict=True))}
        calls = {rank: reader.read() for rank, reader in readers.items()}
        notes = []
        if computations := sum(reader.computations for reader in readers.values()):
            notes.append(f"{counted(computations, 'computation')} without a duration: left out")
        if not all(reader.is_timed for reader in readers.values()):
            calls = {rank: [replace(call, start_ps=0) for call in each] for rank, each in calls.items()}
            notes.append("not all calls have a startTime_ns, so they follow each other without computation in between")
        with translated(JobError, TraceError, place=path):
            return trace_of_calls(path, calls, communicators.ranks, notes)


def _looks_like_trace(path: Path) -> bool:
    head = head_of(path).lstrip()
    return head.startswith(b"[") and head[1:].lstrip().startswith(b"{") and b'"comms"' in head


class _Reader:
    """Reads a rank's trace; `computations` counts those left out, `is_timed` says whether all calls have a start."""

    def __init__(self, file: Path, rank: int, communicators: Communicators) -> None:
        self._file = file
        self._rank = rank
        self._communicators = communicators
        self._groups: dict[int, tuple[int, ...]] = {}
        self.computations = 0
        self.is_timed = True

    def read(self) -> Sequence[RecordedCall]:
        """Return the rank's calls, in order. Raises TraceError, with the entry."""
        entries = []
        for number, held in enumerate(Fields({"trace": read_json(self._file)}, self._file).items("trace")):
            place = Place(f"{self._file}: entry", number)
            entry = Fields(held, place)
            if "comms" in entry:
                entries.append((entry, place))
            elif "compute" in entry:
                self.computations += entry.integer("count", 1, MAX_COUNT, 1)
            else:
                raise TraceError("neither comms nor compute", place=place)
        order = WaitOrder()
        waited = {_request(entry) for entry, _ in entries if entry.text("comms").lower() == "wait"}
        for entry, place in entries:
            name = entry.text("comms").lower()
            if name == "wait":
                order.wait(_request(entry))
            elif name == "init":
                self._add_group(entry)
            elif (call := self._call(entry, name, place)) is not None:
                order.issue(call, _request(entry), is_waited=_request(entry) not in waited)
        return order.calls

    def _add_group(self, entry: Fields) -> None:
        ranks = entry.numbers("global_ranks", MAX_RANKS - 1, [])
        if not ranks:
            ranks = strided(0, 1, entry.integer("world_size", 1, MAX_RANKS))
        self._groups[entry.integer("pg_id", 0, _MOST_NS, 0)] = ranks

    def _call(self, entry: Fields, name: str, place: Place) -> RecordedCall | None:
        ranks = self._ranks_of(entry)
        communicator, own = self._communicators.joined(str(entry.held.get("pg_id") or 0), ranks, self._rank, place)
        record = record_of(
            name.removesuffix("_any_source"),
            entry.text("dtype", ""),
            place,
            in_elements=entry.integer("in_msg_size", 0, MAX_COUNT, 0),
            out_elements=entry.integer("out_msg_size", 0, MAX_COUNT, 0),
            own=own,
            size=len(ranks),
        )
        if record is None:
            return None
        record = replace(record, root=self._root(entry, record, ranks))
        if record.operation.startswith("alltoall"):
            shares = {side: entry.numbers(side, MAX_COUNT, []) for side in ("in_split", "out_split")}
            record = replace(record, in_split=shares["in_split"], out_split=shares["out_split"])
        self.is_timed = self.is_timed and "startTime_ns" in entry
        call = call_of_record(record, communicator, place, self._communicators)
        return replace(call, start_ps=entry.integer("startTime_ns", 0, _MOST_NS, 0) * PS_PER_NS)

    def _ranks_of(self, entry: Fields) -> tuple[int, ...]:
        known = self._groups.get(entry.integer("pg_id", 0, _MOST_NS, 0))
        size = entry.integer("world_size", 1, MAX_RANKS, len(known) if known else 1)
        if known is None and "world_size" in entry:
            return strided(0, 1, size)
        if known is None or len(known) != size:
            raise TraceError(
                f"the ranks of process group {entry.held.get('pg_id')} are not known",
                place=entry.place,
                valid="world_size, or an earlier init with global_ranks",
            )
        return known

    def _root(self, entry: Fields, record: TorchRecord, ranks: tuple[int, ...]) -> int:
        """Return the place in the group of the root, or of a message's other end."""
        if record.operation in (SEND, RECEIVE):
            rank = entry.integer("dst_rank" if record.operation == SEND else "src_rank", 0, MAX_RANKS - 1)
        elif record.operation in _ROOTED and "root" in entry:
            rank = entry.integer("root", 0, MAX_RANKS - 1)
        else:
            return 0
        if rank not in ranks:
            raise TraceError(f"rank {rank}", place=entry.place, valid=f"one of {list(ranks)[:20]}")
        return ranks.index(rank)


def _request(entry: Fields) -> tuple[object, ...]:
    """Return the number of the request with which a later entry waits."""
    value = entry.held.get("req")
    return tuple(map(str, value[:2])) if isinstance(value, list) else (str(value),)
